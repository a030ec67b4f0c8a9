"""Makes the error record of an exception. It never contains the payload, and never raises."""

from __future__ import annotations

import errno
from typing import NamedTuple

from faena.errors import PayloadError
from faena.outcomes import Discard, ErrorRecord
from faena.values.names import as_words
from faena.worker.execute.stack import stack_of

_LONGEST_MESSAGE = 2_000
_LONGEST_STACK = 8_000
_MOST_FIELDS = 100

_LONGEST_CHAIN = 5

_CODES: tuple[tuple[type[BaseException], str], ...] = (
    (ConnectionRefusedError, "ECONNREFUSED"),
    (ConnectionResetError, "ECONNRESET"),
    (TimeoutError, "ETIMEDOUT"),
    (PayloadError, "PAYLOAD"),
    (MemoryError, "MEMORY"),
)

_HTTP = {"429": "RATE_LIMIT", "503": "SERVICE_UNAVAILABLE"}
"""HTTP statuses of errors that are usually temporary, by the code for them."""


class TimedOut(Exception):
    """The attempt ran longer than its timeout."""


class Lowered(Exception):
    """The job goes back with another priority, because a budget is short."""

    def __init__(self, priority: int) -> None:
        super().__init__(f"priority {priority}")
        self.priority = priority


class SnoozedTooOften(Exception):
    """The handler has snoozed its job as often as its `most` allows."""

    code = "SNOOZED_TOO_OFTEN"


class WorkerDied(Exception):
    """The process that ran the handler was killed, crashed or exited."""

    code = "WORKER_LOST"


class Facts(NamedTuple):
    """The parts of an exception that its record needs, each with a bounded length."""

    name: str
    message: str
    code: str | None
    stack: str | None
    fields: tuple[tuple[str, str], ...] = ()


class RemoteTraceback(Exception):
    """The cause of an exception from another process, with the facts that were read there."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(f"\n{facts.stack or ''}")
        self.facts = facts


def record_of(
    error: BaseException, *, attempt: int, worker: str, at: int, started_at: int = 0
) -> ErrorRecord:
    """Name, message, code and stack of an exception, each bounded."""
    facts = facts_of(error)
    return ErrorRecord(
        name=facts.name,
        message=facts.message,
        code=facts.code,
        stack=facts.stack,
        attempt=attempt,
        worker=worker,
        at=at,
        started_at=started_at,
        fields=facts.fields,
    )


def facts_of(error: BaseException) -> Facts:
    """The facts of an exception; for one from another process, those read there."""
    if isinstance(error.__cause__, RemoteTraceback):
        return error.__cause__.facts
    stack = stack_of(error)
    return Facts(
        name=as_words(type(error).__name__),
        message=_message(error),
        code=_code(error),
        stack=stack and _clean(stack[-_LONGEST_STACK:]),
        fields=_fields(error) if isinstance(error, PayloadError) else (),
    )


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a user's __str__ may do anything
        text = "<its message could not be read>"
    return _clean(text[:_LONGEST_MESSAGE])


def _code(error: BaseException) -> str | None:
    """The exception's `code`, or the usual code for its class or for the class of its cause.

    Client libraries wrap errors of the system, so only the cause may show a refused connection.
    The cause of a `Discard` is ignored, because the handler has decided.
    """
    if isinstance(error, Discard):
        return _own_code(error)
    if isinstance(error, TimedOut):
        return _own_code(error) or "TIMEOUT"
    cause: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if cause is None:
            break
        if isinstance(cause, RemoteTraceback):
            return cause.facts.code
        code = _own_code(cause) or _kind_code(cause)
        if code:
            return code
        cause = cause.__cause__
    return None


def _own_code(error: BaseException) -> str | None:
    """The exception's own code, or the HTTP status that it carries."""
    own = _attribute(error, "code")
    if own is not None:
        return _HTTP.get(own, own)
    response = getattr(error, "__dict__", {}).get("response", error)
    status = _attribute(response, "status_code") or _attribute(error, "status")
    return _HTTP.get(status or "")


def _kind_code(error: BaseException) -> str | None:
    known = next((code for kind, code in _CODES if isinstance(error, kind)), None)
    if known is None and isinstance(error, OSError) and isinstance(error.errno, int):
        return errno.errorcode.get(error.errno)
    return known


def _attribute(holder: object, name: str) -> str | None:
    """The attribute `name` of an object, if it is a short string or a number."""
    try:
        value = getattr(holder, name, None)
        is_plain = isinstance(value, str | int) and not isinstance(value, bool)
        return as_words(str(value)) if is_plain else None
    except Exception:  # noqa: BLE001 - a user's property may do anything
        return None


def _fields(error: PayloadError) -> tuple[tuple[str, str], ...]:
    kept = error.fields[:_MOST_FIELDS]
    return tuple((_clean(str(path)), _clean(str(reason))) for path, reason in kept)


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
