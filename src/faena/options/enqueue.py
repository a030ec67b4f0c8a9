"""The options of one enqueue call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
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
"""Some time in the year 2112: what the scripts can count exactly, with priorities added."""
_APART: Final = (("delay", "at"), ("unique", "replace"), ("attempts", "retry"))
"""Of each pair a call can give one."""
_TELLS: Final = re.compile(r"[fg]:[^:\s]+:[^:\s]+:[^:\s]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueueOptions:
    """What one enqueue call says about its job."""

    tenant: str | None = None
    """The organisation the job belongs to; None is the queue's common tenant."""

    key: str | None = None
    """A finer ordering key inside the tenant."""

    delay: Duration | None = None
    """How long the job waits before it is ready; None and "0s" are at once."""

    at: datetime | None = None
    """When the job is ready, in the place of a delay; one that is past by then is at once."""

    expires: Duration | datetime | None = None
    """When it is too late to start it: such a job is cancelled with the code EXPIRED, and so is
    one that is given an instant that is past."""

    priority: int | None = None
    """1 (soonest) to 100, or a level's name; None asks the task, then the queue."""

    id: str | None = None
    """The job's id; None makes one. The same id with the same payload is the same job."""

    unique: Unique | str | None = None
    """What counts as a duplicate; a plain text is a key unique while its job lives."""

    replace: str | None = None
    """A key, in the place of `unique`: of the jobs that wait under it only the newest stays."""

    on_conflict: OnConflict = "raise"
    """What to do when `id` is taken by another job: raise JobConflict, or keep that one. Without
    an id it is refused."""

    durability: Durability | str = _MEMORY
    """What must be safe before the call returns: "memory", "replicated(n)" or "fsynced"."""

    headers: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    """Texts that travel beside the payload: at most 64, each at most 4096 characters."""

    timeout: Duration | None = None
    """How long one attempt may run; None asks the task, then the queue, then the priority."""

    attempts: int | None = None
    """How many attempts the job has at most, 1 to 1000; None asks the retry policy."""

    retry: Retry | None = None
    """Its retry policy; None asks the task, then the queue. What those give up on still counts."""

    patience: Duration | None = None
    """How long this call tries to reach the broker; None asks the app."""

    cost: Mapping[str, int] | None = field(default=None, hash=False)
    """Estimates for the queue's limits by cost, such as {"tokens": 1200}; what is not named asks
    the task, and is 1 then."""

    tells: str | None = field(init=False, default=None)
    """The flow or group that is told of the job's end; only `telling` sets it."""

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
                f"expires must be later than the job is ready, got {shown(self.expires)}",
                field="expires",
                value=self.expires,
            )

    def _check_debounce(self) -> None:
        """A wait of the job's own would be ignored, where the claim has one."""
        if self.claim is None or not self.claim.delay_us:
            return
        for name in ("at", "delay"):
            if getattr(self, name) is not None:
                raise ConfigError(
                    f"{name} must not be given with Unique.debounce, which puts its job off "
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
    """Microseconds of an aware datetime; one before 1970 is as past as 1970 itself."""
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
    """Refuse a word on conflicts where there is no id to be in conflict over."""
    if options.on_conflict == "raise" or options.id is not None:
        return
    raise ArgumentError(
        f"on_conflict must come with id=, which is what jobs conflict over, "
        f"got {shown(options.on_conflict)} without",
        field="on_conflict",
        value=options.on_conflict,
    )


def telling(options: EnqueueOptions, tells: str) -> EnqueueOptions:
    """The same options, of a job whose end a flow or a group is told of."""
    told = replace(options)
    derive(told, "tells", check_tells(tells))
    return told


def check_tells(tells: str) -> str:
    """Return what names a flow's node or a group, `kind:queue:id:name`; the name may be empty."""
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
            f"headers must be a mapping of at most {_MOST_HEADERS} texts, "
            f"got {type(given).__name__}",
            field="headers",
        )
    for name, text in given.items():
        check_label("header name", name)
        if not _is_header(text):  # its text may be a secret, so the error does not repeat it
            raise ConfigError(
                f"header {name} must be a text of at most {_LONGEST_HEADER} characters of UTF-8, "
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
    """The options that many jobs have in common: anything but an id."""
    if given.get("id") is not None:
        raise ConfigError(
            f"id must be that of one job, got {shown(given['id'])} for a list of them: "
            f"write task.draft(payload, id=…) for each item",
            field="id",
            value=given["id"],
        )
    return build(EnqueueOptions, "enqueue", given) if given else _PLAIN


def merged(call: EnqueueOptions, draft: EnqueueOptions) -> EnqueueOptions:
    """The options of a draft, and of the call where the draft says nothing."""
    if call is draft or call == _PLAIN:
        return draft
    names = [one.name for one in fields(EnqueueOptions) if one.init]
    given = {name: getattr(draft, name) for name in names if _says(draft, name)}
    spoken = {other for pair in _APART for other in pair if given.keys() & set(pair)}
    rest = {name: getattr(call, name) for name in names if name not in {*given, *spoken}}
    both: dict[str, Any] = {**rest, **given, "headers": {**call.headers, **draft.headers}}
    result, tells = EnqueueOptions(**both), draft.tells or call.tells
    return result if tells is None else telling(result, tells)


def _says(options: EnqueueOptions, name: str) -> bool:
    return getattr(options, name) != getattr(_PLAIN, name)
