"""What goes wrong on the day: the tax office is out, workers are killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from apps.sandbox import Fault
from apps.stage.stage import Stage
from faena import Queue

OUTAGE: Final = timedelta(minutes=10)
_INTERRUPTED: Final = ("afip.invoice", "whatsapp.outbound", "payment.webhook")
_LOOK_S: Final = 10.0
"""How long a worker with a job is looked for."""


@dataclass(slots=True)
class Happened:
    """What went wrong, and when."""

    outages: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """Instants of the monotonic clock."""
    killed: list[str] = field(default_factory=list[str])


class Troubles:
    """Who makes them."""

    def __init__(self, stage: Stage, tell: Callable[[str], None], seed: int) -> None:
        self._stage, self._tell, self._chance = stage, tell, random.Random(seed)
        self.happened = Happened()

    async def make(self, name: str) -> None:
        """Make one, and wait until it is over."""
        if name == "outage":
            await self._outage()
        else:
            await self._kill()

    async def _outage(self) -> None:
        """The tax office answers 503 to everything."""
        lasts = self._stage.system.pace.of(OUTAGE).total_seconds()
        faults, began = self._stage.sandbox.afip.faults, time.monotonic()
        faults.add(Fault(kind="status", status=503, until=began + lasts))
        self._tell("the tax office is out")
        await asyncio.sleep(lasts)
        self.happened.outages.append((began, time.monotonic()))
        self._tell("the tax office is back")

    async def _kill(self) -> None:
        """A worker in the middle of a job gets no chance to say goodbye."""
        queues = [self._stage.system.queues[name] for name in _INTERRUPTED]
        pids: dict[str, int] = {}
        for queue in queues:
            pids |= {one.name: one.pid for one in (await queue.overview()).workers if one.pid}
        for name in self.happened.killed:
            pids.pop(name, None)
        if not pids:
            return
        name = await self._busy(queues, pids) or self._chance.choice(sorted(pids))
        os.kill(pids[name], signal.SIGKILL)
        self.happened.killed.append(name)
        self._tell(f"worker {name} is killed with -9")

    async def _busy(self, queues: Sequence[Queue], pids: Mapping[str, int]) -> str | None:
        """A worker that runs a job now; None if none was found for a while."""
        until = time.monotonic() + _LOOK_S
        while time.monotonic() < until:
            for queue in queues:
                for job in (await queue.jobs("running", limit=10)).jobs:
                    if job.worker in pids:
                        return job.worker
        return None
