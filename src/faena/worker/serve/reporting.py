"""Has a worker report to its server while it runs, be that a supervisor or a thread."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Protocol

from faena.telemetry.measured import Measurements
from faena.worker.serve.makers import Pages, about, makers
from faena.worker.serve.reporter import Reporter
from faena.worker.serve.vitals import Vitals


class Reported(Protocol):
    """What is asked of a worker."""

    measured: Measurements

    async def vitals(self) -> Vitals:
        """How it is."""
        ...


_log = logging.getLogger("faena.worker")


@asynccontextmanager
async def reporting(
    app: Pages, worker: Reported, end: socket.socket | None
) -> AsyncGenerator[None]:
    """Report inside the block; `end` is the worker's end of a channel, None without a server."""
    if end is None:
        yield
        return
    reporter = Reporter(end, about(app), makers(app, worker.vitals), worker.measured)
    running = asyncio.create_task(reporter.run())
    running.add_done_callback(_log_failure)
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait({running})


def _log_failure(running: asyncio.Task[None]) -> None:
    """Jobs are still run; but probes are told that the process is silent."""
    if not running.cancelled() and running.exception() is not None:
        _log.error("the worker no longer reports its health", exc_info=running.exception())
