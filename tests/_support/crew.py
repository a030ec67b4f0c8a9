"""Worker processes to be killed, frozen and replaced at will.

    plan = Plan(url=server.url, ledger=str(tmp_path / "ledger"), queues={"q": QueuePlan()})
    with Crew(plan) as crew:
        worker, other = crew.hire(2)
        crew.kill(worker)

Every worker runs `tests._support.hand`, which builds the plan's app (`shop`). None outlives the
test process: a shell that blocks on a pipe held only by that process kills it, even frozen.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from tests._support.ledger import Ledger
from tests._support.shop import Plan

_ROOT = Path(__file__).parents[2]
_HAND = "tests._support.hand"


class Hand:
    """One worker process."""

    def __init__(self, plan: msgspec.Struct, log: Path, module: str = _HAND) -> None:
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, msgspec.json.encode(plan).decode()],
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", 'read -r _; kill -9 "$0"', str(self._process.pid)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """kill -9; returns when it is gone."""
        self._dismiss_guard()
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        """SIGSTOP: it holds its leases and sockets, and does nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def terminate(self) -> None:
        """SIGTERM: it is to finish and leave."""
        self._process.terminate()

    async def ended(self, *, within: float = 15.0) -> int:
        """Its exit code, once it has left."""
        return await asyncio.to_thread(self._process.wait, within)

    def _dismiss_guard(self) -> None:
        # Before the process is reaped: until then its pid cannot be another's.
        if self._guard.poll() is None:
            self._guard.kill()
            self._guard.communicate()


class Crew:
    """The workers of one test."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.ledger = Ledger(plan.ledger)
        self.hands: list[Hand] = []
        self._log = Path(plan.ledger).with_suffix(".log")

    def hire(self, number: int = 1, plan: Plan | None = None) -> list[Hand]:
        """Start more workers; they are up a moment later."""
        hired = [Hand(plan or self.plan, self._log) for _ in range(number)]
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
