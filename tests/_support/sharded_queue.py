"""A queue whose shards a test decides, with jobs that wait at a gate."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from faena import Faena, Job, Worker, WorkerOptions
from faena.engine import Address
from faena.errors import StoreUnavailable
from faena.options import Durability, EnqueueOptions
from faena.producing.sealing import seal_job
from faena.sharding.routing_table import Shard
from faena.worker.options import Served
from tests._support.valkey import Server

MAIN = Shard("q", "q")
SHARD = Shard("q/1", "q")
OWN = Shard("q/@acme", "q/@acme")


class ShardedQueue:
    """Shards that come and go; what runs in them."""

    def __init__(self, server: Server, namespace: str, *shards: Shard, **options: Any) -> None:
        self._server = server
        self.app = Faena("estate", server.url, namespace=namespace)
        self.queue = self.app.queue("q", **options)
        self.shards = shards
        self.looks = 0
        self.is_away = False
        self.seen: list[Job] = []
        self.started: Counter[str] = Counter()
        self.running: Counter[str] = Counter()
        self.done: list[str] = []
        self._gates: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(0))
        self.work = self.queue.task(name="work")(self._work)
        self.wait = self.queue.task(name="wait")(self._wait)

    async def _work(self, shard: str, job: Job) -> None:
        self.seen.append(job)
        self.done.append(shard)

    async def _wait(self, shard: str, job: Job) -> None:
        self.seen.append(job)
        self.started[shard] += 1
        self.running[shard] += 1
        try:
            await self._gates[shard].acquire()
        finally:
            self.running[shard] -= 1
        self.done.append(shard)

    def let_go(self, shard: Shard, number: int = 1) -> None:
        """Let that many waiting jobs of a shard end."""
        for _ in range(number):
            self._gates[shard.name].release()

    async def ask(self) -> Sequence[Shard]:
        """What the worker is told when it looks."""
        self.looks += 1
        if self.is_away:
            raise StoreUnavailable("the table is away")
        return self.shards

    async def move(self, *shards: Shard) -> None:
        """Change the shards, and say so."""
        self.shards = shards
        await self.announce()

    async def announce(self) -> None:
        namespace = (await self.app.runtime()).engine.namespace
        with self._server.client() as client:
            client.publish(f"{namespace}:shards", f"{namespace}:{{q/9}}:")

    async def put(self, shard: Shard, number: int = 1, *, waits: bool = False) -> list[str]:
        """Enqueue jobs into one shard; returns their ids."""
        task = self.wait if waits else self.work
        options = EnqueueOptions()
        spec = task.spec(task.draft(shard.name))
        jobs = [seal_job(name, spec, options, 10) for name in self.app.new_ids(number)]
        await (await self.app.runtime()).client.enqueue(shard.name, jobs, Durability())
        return [job.id for job in jobs]

    async def counts(self, shard: Shard) -> dict[str, int]:
        """Jobs of a shard by state."""
        return (await (await self.app.runtime()).engine.overview(shard.name)).counts

    async def worker(self, **options: Any) -> Worker:
        runtime = await self.app.runtime()
        served = Served(options=self.queue.options, handlers=self.queue.handlers, shards=self.ask)
        return Worker(
            runtime.engine,
            runtime.new_engine(Address.parse(self._server.url)),
            {"q": served},
            options=WorkerOptions(**options),
        )

    @contextlib.asynccontextmanager
    async def working(self, **options: Any) -> AsyncGenerator[Worker]:
        """A worker that serves meanwhile, and is then stopped as SIGTERM would."""
        worker = await self.worker(**options)
        running = asyncio.create_task(worker.run())
        serving = asyncio.create_task(worker.serving.wait())
        await asyncio.wait({running, serving}, return_when=asyncio.FIRST_COMPLETED)
        try:
            yield worker
        finally:
            serving.cancel()
            worker.stop()
            worker.stop()
            await running
