"""How log lines are written: plain, pretty for people at a terminal, JSON for collectors."""

from __future__ import annotations

import logging
import re
import sys
import time
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from faena.telemetry.logging.field import fields_of
from faena.telemetry.logging.text import bounded, message_of, shown

_OWN_LOGGER: Final = "faena"
_RESET: Final = "\x1b[0m"
_DIM, _CYAN = "\x1b[90m", "\x1b[36m"
_COLOURS: Final = {
    logging.INFO: "\x1b[32m",
    logging.WARNING: "\x1b[33m",
    logging.ERROR: "\x1b[31m",
    logging.CRITICAL: "\x1b[91m",
}
_TRACEBACK: Final = "traceback"

_ODD: Final = re.compile("[\x7f-\x9f\u2028\u2029]")
"""What JSON need not escape, and a terminal obeys or a reader takes for the end of a line."""

_encode: Final = msgspec.json.Encoder().encode


class JsonFormatter(logging.Formatter):
    """One JSON object per line, tracebacks included.

    After time, level, logger and message come the fields of the running job, the trace, and what
    the call gave as `extra`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        message, traceback = message_of(record), _traceback(self, record)
        line: dict[str, Any] = {
            "time": instant(record),
            "level": record.levelname.lower(),
            "logger": bounded(record.name, 200),
            "message": message.removesuffix(f"\n{traceback}"),
            "pid": record.process,
        }
        for name, value in fields_of(record).items():
            line[f"{name}_" if name in line else name] = value
        if record.exc_info and record.exc_info[0] is not None:
            line.setdefault("error", bounded(record.exc_info[0].__name__, 200))
        if traceback:
            line[_TRACEBACK] = traceback
        text = _encode(line).decode()
        return text if text.isascii() else _ODD.sub(lambda one: f"\\u{ord(one.group()):04x}", text)


class PlainFormatter(logging.Formatter):
    """Time, level, process, the running job, message."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record, with further lines indented."""
        text = _with_traceback(self, record)
        about = f"{job} " if (job := _about(record)) else ""
        return f"{instant(record)} {record.levelname:<8} {record.process} {about}{shown(text)}"


class PrettyFormatter(logging.Formatter):
    """Time of day, level, the running job, message; coloured on a terminal."""

    def __init__(self, *, colours: bool | None = None) -> None:
        """None: with colours if standard error is a terminal."""
        super().__init__()
        self._is_coloured = sys.stderr.isatty() if colours is None else colours

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record, with further lines indented."""
        at = time.strftime("%H:%M:%S", time.localtime(record.created))
        head = [
            self._coloured(f"{at}.{record.msecs:03.0f}", _DIM),
            self._coloured(f"{record.levelname:<8}", _COLOURS.get(record.levelno)),
        ]
        if about := _about(record):
            head.append(self._coloured(about, _CYAN))
        return f"{' '.join(head)} {shown(_with_traceback(self, record))}"

    def _coloured(self, text: str, colour: str | None) -> str:
        return f"{colour}{text}{_RESET}" if self._is_coloured and colour else text


def instant(record: logging.LogRecord) -> str:
    """When a record was made, in UTC to the millisecond."""
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _about(record: logging.LogRecord) -> str:
    """The job, unless the message is Faena's own and names it."""
    if record.name.partition(".")[0] == _OWN_LOGGER:
        return ""
    found = fields_of(record)
    if "queue" not in found:
        return ""
    which = found.get("job_id") or f"{found.get('jobs', '')} jobs"
    return shown(f"{found['queue']}/{found.get('task', '')} {which}")


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """The traceback that a record was made with, or has as a field, in any number of lines."""
    parts: list[str] = []
    if isinstance(given := record.__dict__.get(_TRACEBACK), str):
        parts.append(given)
    if record.exc_info and record.exc_info[0] is not None:
        parts.append(formatter.formatException(record.exc_info))
    elif record.exc_text:
        parts.append(record.exc_text)
    if record.stack_info:
        parts.append(record.stack_info)
    return bounded("\n".join(parts))


def _with_traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    message, traceback = message_of(record), _traceback(formatter, record)
    return message if not traceback or traceback in message else f"{message}\n{traceback}"
