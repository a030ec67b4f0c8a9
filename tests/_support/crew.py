"""Worker processes to be killed, frozen and replaced at will.

    plan = Plan(url=server.url, ledger=str(tmp_path / "ledger"), queues={"q": QueuePlan()})
    with Crew(plan) as crew:
        worker, other = crew.hire(2)
        crew.kill(worker)

Every worker runs `hand.main`, which builds the plan's app (`shop`). None outlives the test process.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from tests._support.eventually import PATIENCE_S
from tests._support.forked import Forked
from tests._support.hand import main
from tests._support.ledger import Ledger
from tests._support.shop import Plan


class Hand(Forked):
    """One worker process."""

    def __init__(self, serve: Callable[[Any], object], plan: msgspec.Struct, log: Path) -> None:
        super().__init__(serve, plan, log=log)

    @property
    def is_alive(self) -> bool:
        return self.code is None

    def freeze(self) -> None:
        """SIGSTOP: it holds its leases and sockets, and does nothing."""
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        self.send(signal.SIGCONT)

    def terminate(self) -> None:
        """SIGTERM: it is to finish and leave."""
        self.send(signal.SIGTERM)

    async def ended(self) -> int:
        """Its exit code, once it has left."""
        return await asyncio.to_thread(self.wait, PATIENCE_S)


class Crew:
    """The workers of one test."""

    serve: Callable[[Any], object] = staticmethod(main)

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.ledger = Ledger(plan.ledger)
        self.hands: list[Hand] = []
        self._log = Path(plan.ledger).with_suffix(".log")

    def hire(self, number: int = 1, plan: Plan | None = None) -> list[Hand]:
        """Start more workers; they are up a moment later."""
        hired = [Hand(self.serve, plan or self.plan, self._log) for _ in range(number)]
        self.hands += hired
        return hired

    def kill(self, hand: Hand) -> int:
        """kill -9, noted in the ledger; returns the monotonic instant of the signal."""
        killed_ns = time.monotonic_ns()
        hand.kill()
        self.ledger.write("died", detail=hand.pid)
        return killed_ns

    def are_up(self) -> bool:
        """Whether every worker that lives has begun to serve."""
        up = {entry.pid for entry in self.ledger.entries("up")}
        return all(hand.pid in up for hand in self.hands if hand.is_alive)

    def log(self) -> str:
        """What the workers wrote to standard error."""
        return self._log.read_text(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for hand in self.hands:
            with suppress(ProcessLookupError):
                hand.kill()
        self.ledger.close()
