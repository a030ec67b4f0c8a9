"""Every error Faena raises, as one tree.

    FaenaError                  carries .op, the operation that failed
    ├── ConfigError             raised before any I/O: the field, its value, what would be valid
    │   ├── ArgumentError       the same for an argument of one call: an id, an instant, a header
    │   └── UnknownQueue        the app has no queue of this name; also a KeyError
    ├── StoreError              the broker failed
    │   ├── StoreUnavailable    it cannot be reached now; try again
    │   ├── StoreRejected       it refused: out of memory, read-only, no permission
    │   ├── NotDeclared         no program has declared the queue on this server yet
    │   ├── ArchiveUnreadable   an archive is missing, truncated, damaged or tampered with
    │   ├── ShardsChanged       the routing table is out of date; the client retries automatically
    │   └── ScriptError         a script failed unexpectedly
    ├── PayloadError            cannot be encoded, decoded or validated, or is too large
    ├── BatchError              a batch handler did not return one entry per payload
    ├── Overloaded              back-pressure refused the job: .retry_after .reason
    ├── JobError
    │   ├── JobNotFound
    │   ├── JobConflict         the id exists with another task, payload, tenant or key
    │   ├── InvalidTransition   the job's state does not allow the operation
    │   └── LeaseLost           another worker holds, or has settled, the job
    ├── JobFailed               raised to a waiter, with the remote traceback
    │   ├── JobCancelled
    │   ├── JobTimedOut
    │   └── JobHandedOver
    ├── FallbackFailed          a fallback failed as well: .error .second
    ├── SourceUnavailable       nothing can be read: the source failed elsewhere, or is too slow
    ├── ResultTimeout           the wait for a result ended before the job did
    └── InternalError           a broken invariant: our bug

What a handler raises to choose its outcome (`Snooze`, `Discard`, `RateLimited`), and what a call to
an upstream raises that is not permitted (`UpstreamUnavailable`), is in `faena.outcomes`.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, Final

_LONGEST_SHOWN: Final = 200
_LONGEST_TOLD: Final = 800


class FaenaError(Exception):
    """Base of the tree; `op` is the operation that failed, or None."""

    def __init__(self, message: str, *, op: str | None = None) -> None:
        super().__init__(message)
        self.op = op


class ConfigError(FaenaError):
    """The program gave an invalid value; nothing was written."""

    def __init__(self, message: str, *, field: str | None = None, value: Any = None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value


class ArgumentError(ConfigError):
    """One call was given an invalid value, perhaps from outside input; nothing was written."""

    @property
    def rule(self) -> str:
        """What would be valid, without the value given, which may be secret."""
        return str(self).partition(", got ")[0]


class UnknownQueue(ConfigError, KeyError):
    """The app has no queue of this name; a KeyError, because `app.queues` raises it."""

    __str__ = Exception.__str__  # KeyError would put the message in quotes


def as_argument(error: ConfigError) -> ArgumentError:
    """The same error, about an argument of one call."""
    return ArgumentError(str(error), field=error.field, value=error.value)


@contextmanager
def arguments() -> Generator[None]:
    """What is checked inside are arguments of one call."""
    try:
        yield
    except ConfigError as error:
        raise as_argument(error) from None


class StoreError(FaenaError):
    """The broker failed.

    `receipts` are those of the jobs that `enqueue_many` had enqueued before.
    """

    receipts: Sequence[Any] = ()


class StoreUnavailable(StoreError):
    """The broker cannot be reached or is not ready; the same call may succeed later.

    `is_outcome_unknown` is true when the call was sent but not answered: it may have taken effect.
    """

    def __init__(
        self, message: str, *, op: str | None = None, is_outcome_unknown: bool = False
    ) -> None:
        super().__init__(message, op=op)
        self.is_outcome_unknown = is_outcome_unknown


class StoreRejected(StoreError):
    """The broker refused the call: out of memory, read-only, or no permission."""


class NotDeclared(StoreError):
    """Another program declares this queue, and has not done so yet."""

    def __init__(self, queue: str) -> None:
        super().__init__(
            f"queue {queue} is not declared on this server yet: the program with its handlers "
            f"declares it on its first enqueue, or when its worker starts; start that worker",
            op="declare",
        )


class ArchiveUnreadable(StoreError):
    """An object of an archive is missing, or is not what the catalogue says: nothing was deleted
    or restored."""


class ShardsChanged(StoreError):
    """The caller's routing table is older than the queue's; nothing was written."""


class ScriptError(StoreError):
    """A script failed unexpectedly: a defect of Faena, or damaged data."""


class PayloadError(FaenaError):
    """A payload or result cannot be encoded, decoded or validated, or is too large.

    `fields` lists every bad field as (path, reason): ("items[2].price", "expected int").
    """

    def __init__(
        self, message: str, *, fields: Iterable[tuple[str, str]] = (), op: str | None = None
    ) -> None:
        super().__init__(message, op=op)
        self.fields = tuple(fields)


class BatchError(FaenaError):
    """A batch handler did not return one entry for each job."""


class Overloaded(FaenaError):
    """Back-pressure refused the job; try again after `retry_after` seconds."""

    def __init__(self, message: str, *, retry_after: float, reason: str) -> None:
        super().__init__(message, op="enqueue")
        self.retry_after = retry_after
        self.reason = reason


class JobError(FaenaError):
    """An operation on one job failed."""


class JobNotFound(JobError):
    """No job has this id; retention may have removed it."""


class JobConflict(JobError):
    """A job with this id exists, with another task, payload, tenant or key."""


class InvalidTransition(JobError):
    """The job's state does not allow the operation."""


class LeaseLost(JobError):
    """The worker no longer holds the lease: the job was rescued, cancelled or settled elsewhere."""


class JobFailed(FaenaError):
    """Raised to a waiter when the job is dead; `error` is what the last attempt recorded."""

    def __init__(self, message: str, *, error: Any = None) -> None:
        super().__init__(message, op="result")
        self.error = error


class JobCancelled(JobFailed):
    """Raised to a waiter when the job was cancelled."""


class JobTimedOut(JobFailed):
    """Raised to a waiter when the job is dead because its last attempt timed out."""


class JobHandedOver(JobFailed):
    """Raised to a waiter when the job was handed over to another task and has no result."""


class ResultTimeout(FaenaError):
    """The wait for a result ended before the job did; the job continues."""


class FallbackFailed(FaenaError):
    """A fallback failed as well; `error` is what it was used for, `second` its own error."""

    code = "FALLBACK_FAILED"

    def __init__(self, fallback: str, error: BaseException, second: BaseException) -> None:
        super().__init__(
            f"the fallback {fallback} failed with {_told(second)}; it was used because of "
            f"{_told(error)}"
        )
        self.error = error
        self.second = second


def _told(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:_LONGEST_TOLD]
    except Exception:  # noqa: BLE001 - the program's own __str__
        return type(error).__name__


class SourceUnavailable(FaenaError):
    """No cached value is good enough, and the source has failed for another reader, or is slow."""

    def __init__(self, message: str) -> None:
        super().__init__(message, op="cached_read")


class InternalError(FaenaError):
    """A bug in Faena: an invariant does not hold; please report it."""


def shown(value: Any) -> str:
    """A short `repr` for error messages; never fails, however large or broken the value is."""
    try:
        is_text = isinstance(value, str | bytes)
        text = repr(value[: _LONGEST_SHOWN + 1] if is_text else value)
    except Exception:  # noqa: BLE001 - the program's own __repr__, or an int with too many digits
        return f"<{type(value).__name__} that cannot be shown>"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def as_text(value: Any) -> str:
    """A string as it is, to compare it with names; of any other value its `repr`."""
    return value if isinstance(value, str) else shown(value)


def nearest(name: Any, valid: Iterable[str], *, never: Collection[str] = ()) -> str:
    """The end of an error message: the closest valid name, and all valid ones.

    Names in `never` are listed but not suggested.
    """
    choices = sorted(valid)
    if not choices:
        return "there is none"
    harmless = [one for one in choices if one not in never]
    close = difflib.get_close_matches(as_text(name), harmless, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}valid: {', '.join(choices)}"


def unknown_name(
    what: str, name: Any, valid: Iterable[str], *, field: str | None = None, value: Any = None
) -> ConfigError:
    """The error of a name that is none of the valid ones; its field is that name by default."""
    return ConfigError(
        f"{what} must be a known name, got {shown(name)}; {nearest(name, valid)}",
        field=name if field is None else field,
        value=value,
    )
