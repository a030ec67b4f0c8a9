"""The log of commands that run on, and a line for each attempt while developing."""

from __future__ import annotations

import logging
import time
from typing import Any

from faena.job import Job
from faena.middleware import Execute, Middleware
from faena.telemetry.logging.setup import LEVELS, STYLES, configure

__all__ = ["LEVELS", "STYLES", "JobLog", "configure"]

_log = logging.getLogger("faena.jobs")


class JobLog(Middleware):
    """Logs every attempt; for development, where jobs are few."""

    async def execute(self, job: Job, call_next: Execute) -> Any:
        began = time.perf_counter()
        try:
            result = await call_next(job)
        except BaseException as error:
            _log.warning("%s failed: %s", self._line(job, began), type(error).__name__)
            raise
        else:
            _log.info("%s done", self._line(job, began))
            return result

    @staticmethod
    def _line(job: Job, began: float) -> str:
        took_ms = (time.perf_counter() - began) * 1000
        which = f"{job.queue}/{job.task} job {job.id}"
        return f"{which} attempt {job.attempt} after {took_ms:.0f} ms"
