"""What is kept of an exception. Never the payload, and never an error of its own."""

from __future__ import annotations

import traceback

from faena.errors import PayloadError
from faena.outcomes import ErrorRecord

_LONGEST_MESSAGE = 2_000
_LONGEST_STACK = 8_000
_MOST_FIELDS = 100

_CODES: tuple[tuple[type[BaseException], str], ...] = (
    (ConnectionRefusedError, "ECONNREFUSED"),
    (ConnectionResetError, "ECONNRESET"),
    (TimeoutError, "ETIMEDOUT"),
    (PayloadError, "PAYLOAD"),
    (MemoryError, "MEMORY"),
)


class TimedOut(Exception):
    """The attempt ran longer than it may."""


class WorkerDied(Exception):
    """The process that ran the handler ended without a word: killed, crashed, or exited."""

    code = "WORKER_LOST"


def record_of(error: BaseException, *, attempt: int, worker: str, at: int) -> ErrorRecord:
    """Name, message, code and stack of an exception, each bounded."""
    return ErrorRecord(
        name=_clean(type(error).__name__),
        message=_message(error),
        code=_code(error),
        stack=_stack(error),
        attempt=attempt,
        worker=worker,
        at=at,
        fields=_fields(error) if isinstance(error, PayloadError) else (),
    )


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a user's __str__ may do anything
        text = "<its message could not be read>"
    return _clean(text[:_LONGEST_MESSAGE])


def _code(error: BaseException) -> str | None:
    """A `code` the exception carries, or the usual word for its kind."""
    try:
        own = getattr(error, "code", None)
    except Exception:  # noqa: BLE001 - a user's property may do anything
        own = None
    if isinstance(own, str | int) and not isinstance(own, bool):
        return _clean(str(own)[:64])
    if isinstance(error, TimedOut):
        return "TIMEOUT"
    return next((code for kind, code in _CODES if isinstance(error, kind)), None)


def _fields(error: PayloadError) -> tuple[tuple[str, str], ...]:
    kept = error.fields[:_MOST_FIELDS]
    return tuple((_clean(str(path)), _clean(str(reason))) for path, reason in kept)


def _stack(error: BaseException) -> str | None:
    """The last part of the traceback: where it happened, without the values of variables."""
    if error.__traceback__ is None:
        return None
    try:
        lines = traceback.format_exception(error, limit=-12)
    except Exception:  # noqa: BLE001 - formatting asks the user's __str__ again
        lines = traceback.format_tb(error.__traceback__, limit=-12)
    return _clean("".join(lines)[-_LONGEST_STACK:])


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
