"""What goes wrong on the day: the tax office is out, workers are killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from apps.sandbox import Fault
from apps.stage.stage import Stage

OUTAGE: Final = timedelta(minutes=10)


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
        """A worker of a pool that has work gets no chance to say goodbye."""
        overview = await self._stage.system.queues["afip.invoice"].overview()
        alive = {one.name: one.pid for one in overview.workers if one.pid is not None}
        names = sorted(set(alive) - set(self.happened.killed))
        if not names:
            return
        name = self._chance.choice(names)
        os.kill(alive[name], signal.SIGKILL)
        self.happened.killed.append(name)
        self._tell(f"worker {name} is killed with -9")
