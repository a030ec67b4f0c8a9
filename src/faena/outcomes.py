"""How an attempt ends: what a handler may raise on purpose, and the outcome of each ending.

return value        Completed
raise anything      Retried, or Buried when attempts are used up
raise Snooze        Snoozed      run again later, no attempt used
raise Discard       Buried       dead now, whatever attempts are left
raise RateLimited   Limited      the provider asked to wait: the queue, or the tenant, is held, no
                                 attempt used
UpstreamUnavailable Limited      no call may be made now: the queue, the tenant or the job waits, no
                                 attempt used
cancelled           Cancelled
claimed too late    Expired      cancelled, never run
worker stops        Released     ready again at its old position, no attempt used
"""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar, Final, Literal

import msgspec

from faena.errors import ConfigError, nearest, shown
from faena.values import duration
from faena.values.names import check_words
from faena.values.numbers import check_whole

Scope = Literal["queue", "tenant"]

_SCOPES: Final = ("queue", "tenant")
_MOST_SNOOZES: Final = 1_000_000
_UNSAID_US: Final = 60_000_000
"""The wait when a provider refused without saying for how long."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Signal(Exception):
    """Base of what a handler raises to choose its outcome."""


class Snooze(Signal):
    """Run this job again after `delay`; no attempt is used.

    `reason` is shown with the job while it waits. After `most` snoozes of a job, 1 to 1,000,000,
    the next one buries it with the code SNOOZED_TOO_OFTEN, whatever attempts are left.
    """

    def __init__(
        self, delay: timedelta | str, *, reason: str = "", most: int | None = None
    ) -> None:
        self.delay_us = duration.to_us("snooze delay", delay)
        self.reason = _text("reason", reason)
        super().__init__(f"snoozed for {delay}{f': {reason}' if reason else ''}")
        self.most = None if most is None else check_whole("most", most, least=1, most=_MOST_SNOOZES)


class Discard(Signal):
    """Give up the job now: it goes to the dead-letter desk with `reason`.

    It is never retried automatically. The desk finds and groups jobs by the error's `code`.
    """

    code: str | None = None

    def __init__(self, reason: str, *, code: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        if code is not None:
            self.code = check_words("code", code)


class RateLimited(Signal):
    """The provider asked to wait; no attempt is used.

    `retry_after` is the value of a `Retry-After` header (seconds as a number or a string, or an
    HTTP date) or a duration. An instant in the past means no wait. None, or a string that cannot be
    read, means one minute: a provider's odd answer costs no attempt. `scope="queue"` holds the
    whole queue for every worker, "tenant" only this tenant's jobs; in a queue without lanes,
    "tenant" delays this job alone.
    """

    def __init__(
        self, retry_after: float | timedelta | str | None = None, scope: Scope = "queue"
    ) -> None:
        if scope not in _SCOPES:
            raise ConfigError(
                f"scope must be a known scope, got {shown(scope)}; {nearest(scope, _SCOPES)}",
                field="scope",
                value=scope,
            )
        self.retry_after_us, self.retry_at_us = _promise_us(retry_after)
        self.scope: Scope = scope
        asked = retry_after if self.retry_at_us else duration.describe(self.retry_after_us)
        super().__init__(f"rate limited {'until' if self.retry_at_us else 'for'} {asked}")

    def wait_us(self, now: int) -> int:
        """How long to wait from `now`; both in microseconds, by the server's clock."""
        if self.retry_at_us is None or not now:
            return self.retry_after_us
        return min(max(0, self.retry_at_us - now), duration.LONGEST_US)


class UpstreamUnavailable(Signal):
    """No call to an upstream may be made now; ask again after `retry_after` seconds.

    A handler may let it pass: the job waits and no attempt is used. `upstream` is its name,
    `reason` one of open, probing, recovering, rate_limited, limit, tenant_limit, budget,
    tenant_budget, total_budget, reserved, tenant_reserved and panic.
    """

    def __init__(
        self, upstream: str, reason: str, wait_us: int, *, is_for_tenant: bool = False
    ) -> None:
        self.upstream = upstream
        self.reason = reason
        self.wait_us = wait_us
        self.is_for_tenant = is_for_tenant
        """Whether only the calls for this tenant must wait."""
        words = f" for {duration.describe(wait_us // 1000 * 1000)}" if wait_us else ""
        super().__init__(f"upstream {upstream} takes no calls{words}: {reason}")

    @property
    def retry_after(self) -> float:
        """Seconds after which to ask again; 0 when that cannot be told."""
        return self.wait_us / 1e6


def _text(what: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise ConfigError(f"{what} must be a string, got {shown(value)}", field=what, value=value)


def _promise_us(retry_after: Any) -> tuple[int, int | None]:
    """How long to wait, or the instant to wait for; one in the past means no wait."""
    match retry_after:
        case None:
            return _UNSAID_US, None
        case int() | float():
            return _seconds_us(retry_after), None
        case timedelta():
            us = retry_after // timedelta(microseconds=1)
            return min(max(0, us), duration.LONGEST_US), None
        case str():
            return _header_us(retry_after.strip())
        case _:
            raise ConfigError(
                f"retry_after must be seconds, a duration, the value of a Retry-After header or "
                f"None, got {shown(retry_after)}",
                field="retry_after",
                value=retry_after,
            )


def _seconds_us(seconds: float) -> int:
    if isinstance(seconds, float) and not math.isfinite(seconds):
        raise ConfigError(
            f"retry_after must be a finite number of seconds, got {seconds}",
            field="retry_after",
            value=seconds,
        )
    return int(min(max(0, seconds), duration.LONGEST_US // 1_000_000) * 1_000_000)


def _header_us(text: str) -> tuple[int, int | None]:
    """Reads a header; one that cannot be read counts as none."""
    with suppress(ValueError, ConfigError):  # `inf` raises ConfigError
        return _seconds_us(float(text)), None
    with suppress(ConfigError):
        return duration.to_us("retry_after", text), None
    with suppress(ValueError, TypeError, OverflowError):
        at = parsedate_to_datetime(text)
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return _UNSAID_US, (at - _EPOCH) // timedelta(microseconds=1)
    return _UNSAID_US, None


class ErrorRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of a failed attempt. Never the payload."""

    name: str
    message: str
    code: str | None = None
    stack: str | None = None
    attempt: int = 0
    """Which one, from 1; 0 if no handler was called."""
    worker: str | None = None
    at: int = 0
    """When it failed, in the server's microseconds."""
    started_at: int = 0
    """When the attempt began; 0 if unknown."""
    fields: tuple[tuple[str, str], ...] = ()


class DeathNote(msgspec.Struct, frozen=True, array_like=True):
    """What the dead-letter desk records about a buried job, in the order its script reads."""

    task: str = ""
    """Empty when the job could not be read."""
    tenant: str = ""
    name: str = ""
    code: str = ""
    fingerprint: str = ""
    sample: str = ""
    """The message, without the parts that differ between errors of the same kind."""
    retry_us: int = 0
    """When to retry the job automatically, if that is enabled then; 0 for never."""
    most: int = 0
    """The most automatic retries in its whole line of retries."""


class Completed(msgspec.Struct, frozen=True):
    """The handler returned; `result` is its encoded value, empty for None."""

    kind: ClassVar[str] = "complete"
    result: bytes = b""
    dropped: str = ""
    """Why the value could not be kept, if so."""


COMPLETED: Final = Completed()
"""The outcome of most jobs."""


class Retried(msgspec.Struct, frozen=True):
    """The attempt failed and another follows after `delay_us`."""

    kind: ClassVar[str] = "retry"
    delay_us: int
    error: ErrorRecord


class Buried(msgspec.Struct, frozen=True):
    """The job is dead."""

    kind: ClassVar[str] = "bury"
    error: ErrorRecord
    has_run: bool = True
    """False when no handler was called, so that no attempt is used."""
    note: DeathNote | None = None


class Cancelled(msgspec.Struct, frozen=True):
    """The handler was stopped because the job's cancellation was requested."""

    kind: ClassVar[str] = "cancel"
    error: ErrorRecord


class Expired(msgspec.Struct, frozen=True):
    """The job was claimed too late to be started; no attempt used."""

    kind: ClassVar[str] = "expire"
    error: ErrorRecord


class Snoozed(msgspec.Struct, frozen=True):
    """The job runs again after `delay_us`; no attempt used."""

    kind: ClassVar[str] = "snooze"
    delay_us: int
    reason: str | None = None
    """The handler's reason, perhaps empty; None when no handler asked for the snooze."""
    is_parked: bool = False
    """Whether the worker puts it off, not its handler; `reason` then says why."""


class Limited(msgspec.Struct, frozen=True):
    """The queue, or the tenant, is held for `delay_us` and the job is ready again; no attempt
    used."""

    delay_us: int
    scope: Scope = "queue"
    reason: str = "rate_limited"
    """Of the hold."""

    @property
    def kind(self) -> str:
        return "limited" if self.scope == "queue" else "tenant_limited"


class Released(msgspec.Struct, frozen=True):
    """The job is ready again; no attempt used."""

    kind: ClassVar[str] = "release"
    priority: int = 0
    """The priority it has from now on; 0: it keeps its priority and its position."""


Outcome = Completed | Retried | Buried | Cancelled | Expired | Snoozed | Limited | Released
