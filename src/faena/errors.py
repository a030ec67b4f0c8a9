"""Every error Faena raises, as one tree.

    FaenaError                  carries .op, the operation that failed
    ├── ConfigError             before any I/O: the field, its value, what would be valid
    │   ├── ArgumentError       the same for what one call is given: an id, an instant, a header
    │   └── UnknownQueue        the app has no queue of this name; a KeyError, too
    ├── StoreError              the broker
    │   ├── StoreUnavailable    cannot be reached now; trying again is right
    │   ├── StoreRejected       it answered no: out of memory, read-only, no permission
    │   ├── NotDeclared         no program has declared the queue on this server yet
    │   ├── ShardsChanged        a queue's jobs live elsewhere now; the client asks again by itself
    │   └── ScriptError         a script failed in a way no code path expects
    ├── PayloadError            cannot be encoded, decoded or validated, or is too large
    ├── BatchError              a batch handler returned no list with an entry for each payload
    ├── Overloaded              back-pressure refused the job: .retry_after .reason
    ├── JobError
    │   ├── JobNotFound
    │   ├── JobConflict         the id exists with another task, payload, tenant or key
    │   ├── InvalidTransition   the job's state does not allow the operation
    │   └── LeaseLost           another worker holds, or has settled, the job
    ├── JobFailed               raised to a waiter, with the remote traceback
    │   ├── JobCancelled
    │   └── JobTimedOut
    ├── ResultTimeout           the wait for a result ended before the job did
    └── InternalError           a broken invariant: our bug

Control flow inside a handler (`Snooze`, `Discard`, `RateLimited`) is not an error and lives in
`faena.outcomes`.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

_LONGEST_SHOWN: Final = 200


class FaenaError(Exception):
    """Base of the tree; `op` names the operation that was under way, where one was."""

    def __init__(self, message: str, *, op: str | None = None) -> None:
        super().__init__(message)
        self.op = op


class ConfigError(FaenaError):
    """A value given by the program is wrong; nothing has been written."""

    def __init__(self, message: str, *, field: str | None = None, value: Any = None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value


class ArgumentError(ConfigError):
    """A value given to one call is wrong, which may well come from outside; nothing was written."""

    @property
    def rule(self) -> str:
        """What would be valid, without the value that was given: that may be a secret."""
        return str(self).partition(", got ")[0]


class UnknownQueue(ConfigError, KeyError):
    """The app has no queue of this name: `app.queues` raises it as the KeyError that it is."""

    __str__ = Exception.__str__  # a KeyError's would put the message in quotes


def as_argument(error: ConfigError) -> ArgumentError:
    """The same fault, found in what one call was given."""
    return ArgumentError(str(error), field=error.field, value=error.value)


class StoreError(FaenaError):
    """The broker failed.

    `receipts` are those of the jobs that an `enqueue_many` had put on the queue before it did.
    """

    receipts: Sequence[Any] = ()


class StoreUnavailable(StoreError):
    """The broker cannot be reached or is not ready; the same call may succeed later.

    `is_outcome_unknown` tells whether the call was sent and not answered: it may have happened.
    """

    def __init__(
        self, message: str, *, op: str | None = None, is_outcome_unknown: bool = False
    ) -> None:
        super().__init__(message, op=op)
        self.is_outcome_unknown = is_outcome_unknown


class StoreRejected(StoreError):
    """The broker answered and refused: out of memory, read-only, or not permitted."""


class NotDeclared(StoreError):
    """The queue is another program's to declare, and it has not yet."""

    def __init__(self, queue: str) -> None:
        super().__init__(
            f"queue {queue} is not declared on this server yet: the program that has its handlers "
            f"does so when it first enqueues or works; start a worker of that program",
            op="declare",
        )


class ShardsChanged(StoreError):
    """The shards of a queue are of a later epoch than the caller's; nothing has been written."""


class ScriptError(StoreError):
    """A script failed where none may fail."""


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
    """A handler that was called for many jobs did not say what became of each."""


class Overloaded(FaenaError):
    """Back-pressure refused the job; `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: float, reason: str) -> None:
        super().__init__(message, op="enqueue")
        self.retry_after = retry_after
        self.reason = reason


class JobError(FaenaError):
    """An operation on one job could not be done."""


class JobNotFound(JobError):
    """No job has this id (it may have been pruned by retention)."""


class JobConflict(JobError):
    """A job with this id exists and has another task, payload, tenant or key."""


class InvalidTransition(JobError):
    """The job's state does not allow the operation."""


class LeaseLost(JobError):
    """The lease on the job is no longer held: it was rescued, cancelled or settled elsewhere."""


class JobFailed(FaenaError):
    """Raised to a waiter when the job is dead; `error` is what the last attempt recorded."""

    def __init__(self, message: str, *, error: Any = None) -> None:
        super().__init__(message, op="result")
        self.error = error


class JobCancelled(JobFailed):
    """Raised to a waiter when the job was cancelled."""


class JobTimedOut(JobFailed):
    """Raised to a waiter when the job is dead because its last attempt ran out of time."""


class ResultTimeout(FaenaError):
    """The wait for a result ended before the job did; the job itself goes on."""


class InternalError(FaenaError):
    """An invariant of Faena itself is broken; please report it."""


def shown(value: Any) -> str:
    """Any value as a message quotes it: briefly, and however large or broken it is."""
    try:
        is_text = isinstance(value, str | bytes)
        text = repr(value[: _LONGEST_SHOWN + 1] if is_text else value)
    except Exception:  # noqa: BLE001 - a class of the program's own, or an int of too many digits
        return f"<{type(value).__name__} that cannot be shown>"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def as_text(value: Any) -> str:
    """A text as it is, to be looked up among names, and of anything else what is shown of it."""
    return value if isinstance(value, str) else shown(value)


def nearest(name: Any, valid: Iterable[str], *, never: Collection[str] = ()) -> str:
    """A hint that ends an error message: the closest valid name, and the whole choice.

    Those of `never` are listed and not suggested.
    """
    choices = sorted(valid)
    if not choices:
        return "there is none"
    harmless = [one for one in choices if one not in never]
    close = difflib.get_close_matches(as_text(name), harmless, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}valid: {', '.join(choices)}"
