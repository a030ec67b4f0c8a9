"""What is kept of an exception. Never the payload, and never an error of its own."""

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
"""Answers of providers that mostly pass; clients' libraries call them by number."""


class TimedOut(Exception):
    """The attempt ran longer than it may."""


class SnoozedTooOften(Exception):
    """The handler has put its job off as often as it said at most."""

    code = "SNOOZED_TOO_OFTEN"


class WorkerDied(Exception):
    """The process that ran the handler ended without a word: killed, crashed, or exited."""

    code = "WORKER_LOST"


class Facts(NamedTuple):
    """What is read off an exception, each part bounded: all that a record needs of it."""

    name: str
    message: str
    code: str | None
    stack: str | None
    fields: tuple[tuple[str, str], ...] = ()


class RemoteTraceback(Exception):
    """The cause of an exception that came from another process: what was read off it there."""

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
    """What the exception says; of one from another process, what it said there."""
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
    """A `code` the exception carries, or the usual word for its kind, or for that of its cause.

    A client's library wraps what the system said: the cause is what tells a refused connection.
    A handler that discards its job has decided; its cause says nothing.
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
    """What the exception itself says: its code, or the status of a provider's answer."""
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
    """A short text or number that somebody's object has under a name."""
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
