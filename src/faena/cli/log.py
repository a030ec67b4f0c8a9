"""Formats of log lines: plain by default, JSON for collectors, pretty for development."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, Literal

import click
import msgspec

from faena.job import Job
from faena.middleware import Execute, Middleware

Style = Literal["plain", "json", "pretty"]

LEVELS: Final = ("debug", "info", "warning", "error", "critical")

_COLOURS: Final = {
    logging.INFO: "green",
    logging.WARNING: "yellow",
    logging.ERROR: "red",
    logging.CRITICAL: "bright_red",
}

_task: ContextVar[str] = ContextVar("faena_task", default="")
"""The task of the job whose handler logs."""

_log = logging.getLogger("faena.jobs")


def configure(style: Style, level: str) -> None:
    """Write every record from `level` up to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(_FORMATTERS[style]())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


class _Plain(logging.Formatter):
    """Time, level, process, message."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-8s %(process)d %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - logging's own
        return _time(record)


class _Json(logging.Formatter):
    """One JSON object per line."""

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


class _Pretty(logging.Formatter):
    """Time of day, level, the job's task if there is one, message; coloured on a terminal."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(level)s %(about)s%(message)s")
        self._is_coloured = sys.stderr.isatty()

    def format(self, record: logging.LogRecord) -> str:
        task = _task.get()
        record.about = f"{self._style_of(task, 'cyan')} " if task else ""
        record.level = self._style_of(f"{record.levelname:<8}", _COLOURS.get(record.levelno))
        return super().format(record)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - logging's own
        at = time.strftime("%H:%M:%S", time.localtime(record.created))
        return self._style_of(f"{at}.{record.msecs:03.0f}", "bright_black")

    def _style_of(self, text: str, colour: str | None) -> str:
        return click.style(text, fg=colour) if self._is_coloured and colour else text


_FORMATTERS: Final[Mapping[Style, Callable[[], logging.Formatter]]] = {
    "plain": _Plain,
    "json": _Json,
    "pretty": _Pretty,
}


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JobLog(Middleware):
    """Logs every attempt; for development, where jobs are few."""

    async def execute(self, job: Job, call_next: Execute) -> Any:
        began, token = time.perf_counter(), _task.set(f"{job.queue}/{job.task}")
        try:
            result = await call_next(job)
        except BaseException as error:
            _log.warning("%s failed: %s", self._line(job, began), type(error).__name__)
            raise
        else:
            _log.info("%s done", self._line(job, began))
            return result
        finally:
            _task.reset(token)

    @staticmethod
    def _line(job: Job, began: float) -> str:
        took_ms = (time.perf_counter() - began) * 1000
        return f"job {job.id} attempt {job.attempt} after {took_ms:.0f} ms"
