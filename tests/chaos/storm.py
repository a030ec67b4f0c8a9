"""Jobs that are produced, served and disturbed, in rounds: each ends in quiet, and in a verdict.

    producer → a relay that loses replies ─┬─ Valkey, appendfsync always
    workers  → a relay that is cut ────────┘

Handlers and producer write to ledgers of their own. The seed decides which jobs and faults there
are, and in which order; when each comes, the machine does.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from faena import Task
from faena.errors import StoreError
from tests._support.command import run
from tests._support.ledger import Entry, Ledger, entry_of
from tests._support.lossy_proxy import LossyProxy
from tests._support.valkey import Server
from tests.chaos.faults import Faults
from tests.chaos.shop import ATTEMPTS, QUEUES, Work, job_id, open_shop
from tests.chaos.verdict import Verdict, has_ended, judge

_PATIENCE_S = 60.0
"""For how long nothing may happen before what is open counts as lost."""
_BACKLOGS = {"plain": 60, "ordered": 60, "limited": 15}
"""Open jobs of each queue beyond which its producer waits."""
_LOST_REPLIES = 0.03
_TIMES_MS = (0, 1, 5, 20, 50, 50, 500)


class Storm:
    """One broker, its producers and workers, and what befalls them."""

    def __init__(self, seed: int, directory: Path, workers: int) -> None:
        self._seed = seed
        self._directory = directory
        self._server = Server("appendfsync always")
        self._faults = Faults(seed, self._server, directory, workers)
        self._randoms = {queue: random.Random(f"{seed} {queue}") for queue in QUEUES}
        self._numbers = Counter[str]()
        self._accepted: set[str] = set()
        self._ended: set[str] = set()
        self._entries: list[Entry] = []
        self._offset = 0
        self.verdicts = {queue: Verdict() for queue in QUEUES}
        self.faults = Counter[str]()
        self.over = asyncio.Event()
        """Set to have the round under way end early, in quiet."""

    @property
    def found(self) -> int:
        """How much is wrong in the rounds so far."""
        return sum(len(jobs) for one in self.verdicts.values() for jobs in one.found.values())

    @property
    def words(self) -> str:
        """How it stands."""
        accepted = sum(one.accepted for one in self.verdicts.values()) + len(self._accepted)
        open_jobs, faults = len(self._accepted - self._ended), self.faults.total()
        faults += len(self._faults.noted)
        return f"{accepted:,} accepted, {open_jobs} open, {faults} faults, {self.found} found"

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Broker, relays, program and workers, all gone afterwards."""
        loses = random.Random(f"{self._seed} replies").random
        async with AsyncExitStack() as stack:
            stack.enter_context(self._server)
            lossy = self._lossy = LossyProxy(self._server.port, lambda _: loses() < _LOST_REPLIES)
            await stack.enter_async_context(lossy)
            self._written = Ledger(self._directory / "ledger")
            self._noted = Ledger(self._directory / "accepted", is_synced=True)
            self._app = await stack.enter_async_context(open_shop(lossy.url, self._written))
            await stack.enter_async_context(self._faults.opened())
            watching = asyncio.create_task(self._watch())
            try:
                yield
            finally:  # before the workers end: it would replace them
                watching.cancel()
                await asyncio.wait({watching})

    async def round(self, seconds: float) -> None:
        """Produce and disturb for so long, wait for quiet, and judge."""
        until = time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            for queue in QUEUES:
                group.create_task(self._produce(queue, until))
            group.create_task(self._disturb(until))
        await self._faults.over()
        moved, since = -1, time.monotonic()
        while self._accepted - self._ended and time.monotonic() - since < _PATIENCE_S:
            if len(self._entries) != moved:
                moved, since = len(self._entries), time.monotonic()
            await asyncio.sleep(0.1)
        self.conclude()

    def conclude(self, *, is_cut_short: bool = False) -> int:
        """Judge, and begin anew; cut short, open jobs are not lost. Returns how many those are."""
        self._look()
        open_jobs = self._accepted - self._ended if is_cut_short else set[str]()
        noted = self._faults.noted
        for queue, one in judge(self._accepted - open_jobs, self._entries, noted).items():
            self.verdicts[queue].add(one)
        with (self._directory / "faults").open("a") as file:
            file.writelines(
                f"{one.kind}, {one.pid}: {one.began_ns} to {one.ended_ns}\n" for one in noted
            )
        self.faults.update(fault.kind for fault in noted)
        self.faults["replies lost"] = self._lossy.lost
        self._accepted, self._ended, self._entries = set(), set(), []
        noted.clear()
        return len(open_jobs)

    async def audit(self) -> list[str]:
        """What `faena audit` has to say when nothing runs any more."""
        ledger = str(self._directory / "ledger")
        command = ("audit", "tests.chaos.worker:app")
        ran = await asyncio.to_thread(
            run, *command, FAENA_URL=self._server.url, CHAOS_LEDGER=ledger
        )
        return [] if ran.code == 0 else (ran.out + ran.err).splitlines()

    def _goes_on(self, until: float) -> bool:
        return time.monotonic() < until and not self.over.is_set()

    async def _disturb(self, until: float) -> None:
        pause_s = random.Random(f"{self._seed} pauses").uniform
        while self._goes_on(until):
            with suppress(TimeoutError):
                await asyncio.wait_for(self.over.wait(), pause_s(0.5, 3))
            if self._goes_on(until):
                await self._faults.strike()

    async def _watch(self) -> None:
        """Reads what workers have written, and looks after them."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._faults.watch())
            while True:
                self._look()
                await asyncio.sleep(0.1)

    def _look(self) -> None:
        with self._written.path.open("rb") as file:
            file.seek(self._offset)
            lines = file.read().split(b"\n")[:-1]
        self._offset += sum(len(line) + 1 for line in lines)
        fresh = [entry_of(line.decode()) for line in lines]
        self._entries += fresh
        self._ended.update(entry.job for entry in fresh if has_ended(entry))

    # -- producing ------------------------------------------------------------------------------

    async def _produce(self, queue: str, until: float) -> None:
        tasks, rng = self._app.queues[queue].tasks, self._randoms[queue]
        while self._goes_on(until):
            if (
                sum(job.startswith(queue) for job in self._accepted - self._ended)
                < _BACKLOGS[queue]
            ):
                task = tasks["work" if rng.random() < 0.8 else "grind"]
                drafts = [self._draft(task, queue, rng) for _ in range(rng.randint(1, 20))]
                await self._send(task, drafts)
            await asyncio.sleep(0.02)

    def _draft(self, task: Task[Any, Any], queue: str, rng: random.Random) -> Any:
        self._numbers[queue] += 1
        weights = (20, 2, 1, 1, 0 if queue == "ordered" else 1)  # a dead head would hold its key
        (fails,) = rng.choices(range(ATTEMPTS + 1), weights)
        lane = rng.randrange(6)
        work = Work(rng.choice(_TIMES_MS), fails)
        delay = f"{rng.randrange(1000)}ms" if queue == "plain" else None
        job = job_id(queue, f"k{lane}", self._numbers[queue], fails)
        return task.draft(work, id=job, tenant=f"t{lane % 3}", key=f"k{lane}", delay=delay)

    async def _send(self, task: Task[Any, Any], drafts: list[Any]) -> None:
        """Until it is known that they were accepted: jobs of the same ids are the same jobs."""
        while True:
            with suppress(StoreError):
                receipts = await task.enqueue_many(drafts)
                break
            await asyncio.sleep(0.1)
        for receipt in receipts:
            if receipt.is_accepted or receipt.state == "dead":
                self._noted.write("accepted", receipt.id)
                self._accepted.add(receipt.id)
