"""Records of schedules, and what to do when one is due. Pure: the same in every process."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from faena.engine.calls.scheduling import Stored
from faena.errors import PayloadError
from faena.scheduling.catch_up import chosen, latest, missed
from faena.scheduling.options import Terms
from faena.values.names import check_name

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Mark(msgspec.Struct, frozen=True):
    """Who did something, and when."""

    by: str
    at: int


class Edit(msgspec.Struct, frozen=True):
    """An option that was changed at run time; its value in code no longer applies."""

    value: Any
    by: str
    at: int


class Intent(msgspec.Struct, frozen=True):
    """An instant whose job is being sent to another shard than the record's."""

    instant: int
    shard: str
    epoch: int


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule as it is stored."""

    base: dict[str, Any]
    """The options as last declared in code, or as created at run time."""
    since: Mark
    """Who created it, and when."""
    declared_at: int | None = None
    """When code last declared it; None if it was created at run time."""
    edits: dict[str, Edit] = {}
    paused: Mark | None = None
    fired: int = 0
    last: int | None = None
    """The last instant that was fired."""
    intent: Intent | None = None

    @property
    def terms(self) -> Terms:
        """The options in effect: edited values, and else those of `base`."""
        edited = {name: edit.value for name, edit in self.edits.items()}
        return msgspec.convert({**self.base, **edited}, Terms)

    def first_due(self, after: int) -> int | None:
        """The first due instant after an instant; None while it is paused, and at its end."""
        terms = self.terms
        is_over = terms.count is not None and self.fired >= terms.count
        if self.paused is not None or is_over:
            return None
        return terms.following(after if self.last is None else max(after, self.last))

    def after_firing(self, instant: int) -> Record:
        """The record after an instant was fired."""
        return msgspec.structs.replace(self, fired=self.fired + 1, last=instant, intent=None)

    def pack(self) -> bytes:
        """The record as bytes for the server."""
        return _encode(self)


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Record)


def unpack(packed: bytes) -> Record:
    """Read a record from the server's bytes."""
    try:
        return _decoder.decode(packed)
    except msgspec.MsgspecError as error:
        raise PayloadError(f"the record of a schedule must be readable: {error}") from None


class Schedule(NamedTuple):
    """A schedule as read from the server."""

    name: str
    version: str
    """Empty if the schedule is only in code."""
    record: Record
    due: int | None

    @classmethod
    def of(cls, stored: Stored) -> Schedule:
        """Read a stored schedule; raises PayloadError if another version wrote it."""
        return cls(stored.name, stored.version, unpack(stored.record), stored.due)


class Verdict(NamedTuple):
    """What to do with a due schedule."""

    fire: int | None
    """The instant to fire, if any."""
    missed: tuple[int, ...]
    """The first of the missed instants, to report."""
    number: int
    """How many were missed in all."""
    due: int | None
    """The next due instant."""
    record: Record
    """The record afterwards."""


def decide(record: Record, due: int, now: int) -> Verdict:
    """Decide what to do with a schedule that has been due since `due`."""
    terms = record.terms
    last = latest(terms, due, now)
    fire = chosen(terms, due, last, now)
    overdue, number = missed(terms, due, last if fire is None else fire, now)
    if fire is None:
        return Verdict(None, overdue, number, record.first_due(last), record)
    after = record.after_firing(fire)
    return Verdict(fire, overdue, number, after.first_due(fire), after)


def jitter_us(name: str, instant: int, most_us: int) -> int:
    """The delay of an instant's job: the same in every process."""
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
