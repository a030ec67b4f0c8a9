"""The options of one enqueue call."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from faena.errors import ArgumentError, ConfigError, as_argument, shown
from faena.options.cost import estimates
from faena.options.durability import Durability
from faena.options.fields import (
    attempt_us,
    build,
    check_choice,
    check_is,
    derive,
    optional_us,
)
from faena.options.priority import priority_of
from faena.options.unique import Unique
from faena.retry import MOST_ATTEMPTS, Retry, Terms
from faena.values.duration import Duration, to_us
from faena.values.ids import as_label
from faena.values.names import check_label, is_utf8
from faena.values.numbers import keep_whole

OnConflict = Literal["raise", "keep"]

_MEMORY: Final = Durability()
_MOST_HEADERS: Final = 64
_LONGEST_HEADER: Final = 4_096
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_US: Final = 2**52
"""In the year 2112: scripts can count up to here exactly, with priorities added."""
_APART: Final = (("delay", "at"), ("unique", "replace"), ("attempts", "retry"))
"""Pairs of which a call may give only one."""
_TELLS: Final = re.compile(r"[fgo]:[^:\s]+:[^:\s]+:[^:\s]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueueOptions:
    """The options of one job."""

    tenant: str | None = None
    """The customer that the job is for; None: no tenant."""

    key: str | None = None
    """A finer ordering key inside the tenant."""

    delay: Duration | None = None
    """How long the job waits before it is ready; None and "0s": it is ready at once."""

    at: datetime | None = None
    """When the job becomes ready, instead of `delay`; an instant in the past: at once."""

    expires: Duration | datetime | None = None
    """When it is too late to start: the job is then cancelled with the code EXPIRED, at once if the
    instant is in the past."""

    priority: int | None = None
    """1 (soonest) to 100, or a level's name; None: the task's, else the queue's."""

    id: str | None = None
    """The job's id; None: a new one. The same id with the same payload is the same job."""

    unique: Unique | str | None = None
    """What counts as a duplicate; a plain string is a key that is unique while its job lives."""

    replace: str | None = None
    """A key, instead of `unique`: the job replaces a waiting one with the same key."""

    on_conflict: OnConflict = "raise"
    """What to do when another job has this `id`: raise JobConflict, or keep that job. Needs an
    `id`."""

    durability: Durability | str = _MEMORY
    """How safely the job must be stored before the call returns: "memory", "replicated(n)" or
    "fsynced"."""

    headers: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    """Strings stored with the payload: at most 64, each of at most 4096 characters."""

    timeout: Duration | None = None
    """How long one attempt may run; None: as the task, else the queue, else the priority says."""

    attempts: int | None = None
    """The most attempts, 1 to 1000; None: as many as the retry policy says."""

    retry: Retry | None = None
    """Its retry policy; None: the task's, else the queue's. Their `give_up_on` always applies."""

    patience: Duration | None = None
    """How long this call tries to reach the broker; None: the app's `patience`."""

    cost: Mapping[str, int] | None = field(default=None, hash=False)
    """Estimates for the queue's limits by cost, such as {"tokens": 1200}; units not named here: the
    task's estimate, else 1."""

    tells: str | None = field(init=False, default=None)
    """The flow, group or outbox to notify when the job ends; only `telling` sets it."""

    sent_by_us: int = field(init=False, default=0)
    """The server refuses the job after this instant, or if it has come and gone; only `telling`
    sets it. 0: no such check."""

    claim: Unique | None = field(init=False, repr=False, compare=False)
    """What `unique` or `replace` asks for."""
    terms: Terms | None = field(init=False, repr=False, compare=False)
    at_us: int = field(init=False, repr=False, compare=False)
    lasts_us: int = field(init=False, repr=False, compare=False)
    expires_us: int = field(init=False, repr=False, compare=False)
    delay_us: int = field(init=False, repr=False, compare=False)
    timeout_us: int | None = field(init=False, repr=False, compare=False)
    patience_s: float | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            self._check()
        except ConfigError as error:
            raise as_argument(error) from None

    def _check(self) -> None:
        for one, other in _APART:
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise ConfigError(f"{one} and {other} must not both be given", field=other)
        for name in ("tenant", "key", "id", "replace"):
            if getattr(self, name) is not None:
                derive(self, name, as_label(name, getattr(self, name)))
        if self.priority is not None:
            derive(self, "priority", priority_of(self.priority))
        if self.unique is not None:
            derive(self, "unique", Unique.of(self.unique))
        if self.cost is not None:
            derive(self, "cost", estimates(self.cost))
        if self.durability is not _MEMORY:
            derive(self, "durability", Durability.of(self.durability))
        derive(self, "claim", Unique.replace(self.replace) if self.replace else self.unique)
        derive(self, "headers", _headers(self.headers))
        derive(self, "timeout_us", attempt_us(self.timeout))
        patience_us = optional_us("patience", self.patience)
        derive(self, "patience_s", None if patience_us is None else patience_us / 1e6)
        check_choice("on_conflict", self.on_conflict, ("raise", "keep"))
        self._set_times()
        self._set_retry()

    def _set_times(self) -> None:
        derive(self, "delay_us", optional_us("delay", self.delay) or 0)
        derive(self, "at_us", 0 if self.at is None else _instant("at", self.at))
        is_instant = isinstance(self.expires, datetime)
        lasts = None if is_instant else self.expires
        derive(self, "lasts_us", 0 if lasts is None else _lasts_us(lasts))
        derive(self, "expires_us", _instant("expires", self.expires) if is_instant else 0)
        self._check_debounce()
        if 0 < self.lasts_us <= self.delay_us or 0 < self.expires_us <= self.at_us:
            raise ConfigError(
                f"expires must be after the job becomes ready, got {shown(self.expires)}",
                field="expires",
                value=self.expires,
            )

    def _check_debounce(self) -> None:
        """Refuse a delay of the job's own: debounce sets the delay."""
        if self.claim is None or not self.claim.delay_us:
            return
        for name in ("at", "delay"):
            if getattr(self, name) is not None:
                raise ConfigError(
                    f"{name} must not be given with Unique.debounce, which delays the job "
                    f"itself: use replace=, or the delay of Unique.debounce",
                    field=name,
                    value=getattr(self, name),
                )

    def _set_retry(self) -> None:
        if self.attempts is not None:
            keep_whole(self, "attempts", least=1, most=MOST_ATTEMPTS)
        if self.retry is not None:
            check_is("retry", self.retry, Retry)
        derive(self, "terms", None if self.retry is None else self.retry.terms())


def _lasts_us(expires: Any) -> int:
    return to_us("expires", expires, least_us=1_000, other=", or a datetime with a time zone")


def _instant(what: str, value: Any) -> int:
    """Microseconds of an aware datetime; one before 1970 counts as 1970."""
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise ConfigError(
            f"{what} must be a datetime with a time zone, such as datetime.now(UTC), "
            f"got {shown(value)}",
            field=what,
            value=value,
        )
    us = max(1, (value - _EPOCH) // timedelta(microseconds=1))
    if us > _LAST_US:
        raise ConfigError(
            f"{what} must be before the year 2112, got {shown(value)}", field=what, value=value
        )
    return us


def check_conflict(options: EnqueueOptions) -> None:
    """Refuse `on_conflict` without an id: only jobs with the same id conflict."""
    if options.on_conflict == "raise" or options.id is not None:
        return
    raise ArgumentError(
        f"on_conflict must be given together with id=, got {shown(options.on_conflict)} alone: "
        f"only jobs with the same id conflict",
        field="on_conflict",
        value=options.on_conflict,
    )


def telling(options: EnqueueOptions, tells: str, *, sent_by_us: int = 0) -> EnqueueOptions:
    """The same options, for a job whose end must be reported to a flow, a group or an outbox."""
    told = copy.copy(options)
    derive(told, "tells", check_tells(tells))
    derive(told, "sent_by_us", sent_by_us)
    return told


def check_tells(tells: str) -> str:
    """Return `tells` if it names a flow's node or a group: `kind:queue:id:name`, or no name."""
    if not _TELLS.fullmatch(tells):
        raise ConfigError(
            f"id of a flow or a group must be 'id' or 'queue/id', got {shown(tells)}",
            field="id",
            value=tells,
        )
    return tells


def _headers(given: Any) -> dict[str, str]:
    if given == {}:
        return {}
    if not isinstance(given, Mapping) or len(given) > _MOST_HEADERS:
        raise ConfigError(
            f"headers must be a mapping of at most {_MOST_HEADERS} strings, "
            f"got {type(given).__name__}",
            field="headers",
        )
    for name, text in given.items():
        check_label("header name", name)
        if not _is_header(text):  # it may be secret, so the error does not repeat it
            raise ConfigError(
                f"header {name} must be a UTF-8 string of at most {_LONGEST_HEADER} characters, "
                f"got {type(text).__name__}",
                field=name,
            )
    return dict(given)


def _is_header(text: Any) -> bool:
    if not isinstance(text, str) or len(text) > _LONGEST_HEADER:
        return False
    return is_utf8(text)


_PLAIN: Final = EnqueueOptions()


def of_one(given: Mapping[str, Any]) -> EnqueueOptions:
    """The options of one job."""
    if not given:
        return _PLAIN
    options = build(EnqueueOptions, "enqueue", given)
    check_conflict(options)
    return options


def of_many(given: Mapping[str, Any]) -> EnqueueOptions:
    """The options that many jobs share: any but `id`."""
    if given.get("id") is not None:
        raise ConfigError(
            f"id must be given for each job, got {shown(given['id'])} for a whole list: "
            f"use task.draft(payload, id=…) for each item",
            field="id",
            value=given["id"],
        )
    return build(EnqueueOptions, "enqueue", given) if given else _PLAIN


def merged(call: EnqueueOptions, draft: EnqueueOptions) -> EnqueueOptions:
    """The options of a draft, completed by those of the call."""
    if call is draft or call == _PLAIN:
        return draft
    names = [one.name for one in fields(EnqueueOptions) if one.init]
    given = {name: getattr(draft, name) for name in names if _says(draft, name)}
    spoken = {other for pair in _APART for other in pair if given.keys() & set(pair)}
    rest = {name: getattr(call, name) for name in names if name not in {*given, *spoken}}
    both: dict[str, Any] = {**rest, **given, "headers": {**call.headers, **draft.headers}}
    result, tells = EnqueueOptions(**both), draft.tells or call.tells
    return result if tells is None else telling(result, tells, sent_by_us=draft.sent_by_us)


def _says(options: EnqueueOptions, name: str) -> bool:
    return getattr(options, name) != getattr(_PLAIN, name)
