"""Has a worker report to its server while it runs, be that a supervisor or a thread."""

from __future__ import annotations

import asyncio
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
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait({running})
