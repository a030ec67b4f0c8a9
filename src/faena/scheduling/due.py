"""What is to be done about a schedule that is due: pure computation, the same in every process.

An instant is *missed* when it is still to be fired a minute after, or when the next one has come
meanwhile. Of those the schedule's `missed` says how many are fired all the same: none, the latest,
or the latest so many; whatever is missed is told. The others are fired.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from faena.errors import PayloadError
from faena.scheduling.terms import Terms
from faena.values.names import check_name

GRACE_US: Final = 60_000_000
"""How late an instant may be fired and not count as missed."""

TOLD: Final = 20
"""Missed instants that are named one by one."""

COUNTED: Final = 1_000
"""Missed instants that are counted: a longer outage makes no difference to anybody."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Mark(msgspec.Struct, frozen=True):
    """Who did something, and when."""

    by: str
    at: int


class Edit(msgspec.Struct, frozen=True):
    """A term that was changed at run time: code decides it no more."""

    value: Any
    by: str
    at: int


class Intent(msgspec.Struct, frozen=True):
    """An instant whose job is on its way to another shard than the record's."""

    instant: int
    shard: str = msgspec.field(name="home")
    epoch: int


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule as it is stored."""

    base: dict[str, Any]
    """The terms as code declared them last, or as it was created with at run time."""
    since: Mark
    """Who made it."""
    declared_at: int | None = None
    """When code declared it last; None when it was created at run time."""
    edits: dict[str, Edit] = {}
    paused: Mark | None = None
    fired: int = 0
    last: int | None = None
    """The last instant that was fired."""
    intent: Intent | None = None

    @property
    def terms(self) -> Terms:
        """What counts: what was edited, and for the rest what code says."""
        edited = {name: edit.value for name, edit in self.edits.items()}
        return msgspec.convert({**self.base, **edited}, Terms)

    def first_due(self, after: int) -> int | None:
        """When it is due next, seen from an instant; None while it is paused, and when over."""
        terms = self.terms
        is_over = terms.count is not None and self.fired >= terms.count
        if self.paused is not None or is_over:
            return None
        return terms.following(after if self.last is None else max(after, self.last))

    def pack(self) -> bytes:
        """As the server keeps it."""
        return _encode(self)


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Record)


def unpack(packed: bytes) -> Record:
    """A record as the server has it."""
    try:
        return _decoder.decode(packed)
    except msgspec.MsgspecError as error:
        raise PayloadError(f"the record of a schedule must be readable: {error}") from None


class Verdict(NamedTuple):
    """What to do about a schedule that is due."""

    fire: int | None
    """The instant to make a job for."""
    missed: tuple[int, ...]
    """Instants to tell of, the first so many."""
    number: int
    """How many were missed in all."""
    due: int | None
    """When it is due next."""
    record: Record
    """As it is afterwards."""


def decide(record: Record, due: int, now: int) -> Verdict:
    """What to do about a schedule that has been due since an instant."""
    terms = record.terms
    last = _latest(terms, due, now)
    fire = _chosen(terms, due, last, now)
    missed, number = _missed(terms, due, last if fire is None else fire, now)
    if fire is None:
        return Verdict(None, missed, number, record.first_due(last), record)
    after = msgspec.structs.replace(record, fired=record.fired + 1, last=fire, intent=None)
    return Verdict(fire, missed, number, after.first_due(fire), after)


def _chosen(terms: Terms, due: int, last: int, now: int) -> int | None:
    """The next instant to be fired, out of those from `due` to `last`."""
    most = terms.most_missed
    if most == 0:
        return None if now - last > GRACE_US else last
    if most == 1:
        return last
    ahead = due
    for _ in range(most):
        following = terms.following(ahead)
        if following is None or following > last:
            return due
        ahead = following
    first = last
    for _ in range(most - 1):
        first = _latest(terms, due, first - 1)
    return first


def _missed(terms: Terms, due: int, fire: int, now: int) -> tuple[tuple[int, ...], int]:
    """Those up to `fire` that are overdue or overtaken."""
    missed: list[int] = []
    number, instant = 0, due
    while instant < fire and number < COUNTED:
        missed.append(instant)
        number += 1
        instant = terms.following(instant) or fire
    following = terms.following(fire)
    if now - fire > GRACE_US or (following is not None and following <= now):
        missed.append(fire)
        number += 1
    return tuple(missed[:TOLD]), number


def _latest(terms: Terms, due: int, now: int) -> int:
    """The last instant from `due`, which is one, up to `now`.

    Whether another one follows before `now` can only turn from yes to no as time goes on, so that
    it is found by halving, whatever the outage and however frequent the instants.
    """
    following = terms.following(due)
    if following is None or following > now:
        return due
    low, high = following, now  # something fires at `low`, and nothing after `high` until now
    while True:
        following = terms.following(low)
        if following is None or following > now:
            return low
        middle = (following + high) // 2
        beyond = terms.following(middle)
        if beyond is None or beyond > now:
            low, high = following, middle
        else:
            low = beyond


def jitter_us(name: str, instant: int, most_us: int) -> int:
    """By how much an instant's job is put off: the same in every process."""
    if not most_us:
        return 0
    digest = hashlib.blake2b(f"{name} {instant}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % most_us


def job_id(name: str, instant: int) -> str:
    """The id of an instant's job: nightly@20261115T020000Z."""
    moment = _EPOCH + timedelta(microseconds=instant)
    micro = f".{moment.microsecond:06d}" if moment.microsecond else ""
    return f"{name}@{moment:%Y%m%dT%H%M%S}{micro}Z"


def check_schedule(name: Any) -> str:
    """The name of a schedule."""
    return check_name("schedule name", name)
