"""How log lines look: plain as a rule, JSON for collectors, pretty for development."""

from __future__ import annotations

import logging
import sys
import time
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec

from faena.job import Job
from faena.middleware import Execute, Middleware

Style = Literal["plain", "json", "pretty"]

LEVELS: Final = ("debug", "info", "warning", "error", "critical")

_WIDE: Final = 10_000
"""Columns of an output that is no terminal: one line stays one line."""

_log = logging.getLogger("faena.jobs")


def configure(style: Style, level: str) -> None:
    """Write every record from `level` up to standard error."""
    handler = _pretty() if style == "pretty" else logging.StreamHandler()
    if style == "json":
        handler.setFormatter(_Json())
    elif style == "plain":
        handler.setFormatter(_Plain("%(asctime)s %(levelname)-8s %(process)d %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _pretty() -> logging.Handler:
    from rich.console import Console  # noqa: PLC0415 - workers in production never need it
    from rich.logging import RichHandler  # noqa: PLC0415

    console = Console(stderr=True, width=None if sys.stderr.isatty() else _WIDE)
    return RichHandler(console=console, show_path=False, log_time_format="%X", markup=False)


class _Plain(logging.Formatter):
    """Time, level, process, message."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - logging's own
        return _time(record)


class _Json(logging.Formatter):
    """One object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JobLog(Middleware):
    """Tells of every attempt; for development, where jobs are few and their author watches."""

    async def execute(self, job: Job, call_next: Execute) -> Any:
        began = time.perf_counter()
        try:
            result = await call_next(job)
        except BaseException as error:
            _log.warning("%s: %s", self._line(job, began), type(error).__name__)
            raise
        _log.info("%s: done", self._line(job, began))
        return result

    @staticmethod
    def _line(job: Job, began: float) -> str:
        took_ms = (time.perf_counter() - began) * 1000
        return f"{job.queue}/{job.task} {job.id} attempt {job.attempt} {took_ms:.0f} ms"
