"""Worker processes to be killed, frozen and replaced at will.

    plan = Plan(url=server.url, ledger=str(tmp_path / "ledger"), queues={"q": QueuePlan()})
    with WorkerProcesses(plan) as processes:
        worker, other = processes.start(2)
        processes.kill(worker)

Every worker runs `worker_main.main`, which builds the plan's app (`fault_app`). None outlives the
test process.
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

from tests._support.eventually import PATIENCE_S, eventually
from tests._support.fault_app import Plan
from tests._support.forked import Forked
from tests._support.ledger import Ledger
from tests._support.worker_main import main


class WorkerProcess(Forked):
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


class WorkerProcesses:
    """The workers of one test."""

    serve: Callable[[Any], object] = staticmethod(main)

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.ledger = Ledger(plan.ledger)
        self.started: list[WorkerProcess] = []
        self._log = Path(plan.ledger).with_suffix(".log")

    def start(self, number: int = 1, plan: Plan | None = None) -> list[WorkerProcess]:
        """Start more workers; they are up a moment later."""
        started = [WorkerProcess(self.serve, plan or self.plan, self._log) for _ in range(number)]
        self.started += started
        return started

    def kill(self, process: WorkerProcess) -> int:
        """kill -9, noted in the ledger; returns the monotonic instant of the signal."""
        killed_ns = time.monotonic_ns()
        process.kill()
        self.ledger.write("died", detail=process.pid)
        return killed_ns

    async def lose(self, *numbers: int, kind: str = "start") -> None:
        """Replace a worker each time the ledger has so many entries of a kind."""
        for number in numbers:
            await eventually(lambda number=number: len(self.ledger.entries(kind)) >= number)
            self.replace()

    def replace(self) -> None:
        """kill -9 of the last worker but one, and a new one."""
        self.kill(self.started[-2])
        self.start()

    def are_up(self) -> bool:
        """Whether every worker that lives has begun to serve."""
        up = {entry.pid for entry in self.ledger.entries("up")}
        return all(process.pid in up for process in self.started if process.is_alive)

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
        for process in self.started:
            with suppress(ProcessLookupError):
                process.kill()
        self.ledger.close()
