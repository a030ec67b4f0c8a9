"""What befalls workers and their broker, each fault noted with its process and its time."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from tests._support.command import Service
from tests._support.proxy import Proxy
from tests._support.valkey import Server
from tests.chaos.shop import LEASE_S
from tests.chaos.verdict import NOBODY, Fault

_STALL_S = 1.0
"""A machine that stands still for longer is a fault of its own: leases may run out."""


class Faults:
    """Workers behind a relay, which are killed, frozen, told to stop, cut off and replaced."""

    def __init__(self, seed: int, server: Server, directory: Path, workers: int) -> None:
        self._random = random.Random(f"{seed} faults")
        self._server, self._directory = server, directory
        self._proxy = Proxy(server.port)
        self._number = workers
        self._workers: list[Service] = []
        self._all: set[Service] = set()
        self._later: set[asyncio.Task[None]] = set()
        self.noted: list[Fault] = []
        self._kinds: dict[Callable[[], Awaitable[None]], int] = {
            self._kill_worker: 4,
            self._freeze_worker: 2,
            self._restart_worker: 2,
            self._cut_connections: 2,
            self._kill_broker: 1,
            self._freeze_broker: 1,
            self._flush_scripts: 1,
        }

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """The workers, which are gone afterwards."""
        async with self._proxy:
            try:
                self._workers = [self._new_worker() for _ in range(self._number)]
                yield
            finally:
                for task in self._later:
                    task.cancel()
                for worker in [*self._all]:
                    self._end(worker)

    async def strike(self) -> None:
        """Any of them."""
        (strike,) = self._random.choices([*self._kinds], [*self._kinds.values()])
        await strike()

    async def over(self) -> None:
        """Until everything that was frozen or told to stop has gone."""
        await asyncio.gather(*self._later)
        self._later.clear()

    async def watch(self) -> None:
        """Notes when the whole machine stood still, and replaces workers that gave up."""
        while True:
            before = time.monotonic_ns()
            await asyncio.sleep(0.1)
            if time.monotonic_ns() - before > _STALL_S * 1e9:
                self.noted.append(Fault("machine stalled", None, before, time.monotonic_ns()))
            for at, worker in enumerate(self._workers):
                if not worker.is_alive:  # it began while there was no broker
                    self._end(worker)
                    self._workers[at] = self._new_worker()

    # -- workers --------------------------------------------------------------------------------

    async def _kill_worker(self) -> None:
        worker = self._taken()
        with self._noting("worker killed", worker.pid):
            self._end(worker)

    async def _freeze_worker(self) -> None:
        """Past its lease: another has its jobs when it goes on."""
        self._do_later(self._freeze(self._taken(), LEASE_S * self._random.uniform(1.1, 1.6)))

    async def _freeze(self, worker: Service, seconds: float) -> None:
        with self._noting("worker frozen", worker.pid):
            worker.send(signal.SIGSTOP)
            await asyncio.sleep(seconds)
            worker.send(signal.SIGCONT)
        await self._let_go(worker)

    async def _restart_worker(self) -> None:
        self._do_later(self._let_go(self._taken()))

    async def _let_go(self, worker: Service) -> None:
        with self._noting("worker stopped", worker.pid):
            worker.send(signal.SIGTERM)
            await worker.ended()
        self._end(worker)

    async def _cut_connections(self) -> None:
        with self._noting("connections cut", NOBODY):
            self._proxy.cut()

    def _taken(self) -> Service:
        """One of the workers; a new one takes its place."""
        at = self._random.randrange(len(self._workers))
        worker, self._workers[at] = self._workers[at], self._new_worker()
        return worker

    def _new_worker(self) -> Service:
        worker = Service(
            *("worker", "tests.chaos.worker:app", "--no-supervise"),
            log=self._directory / "workers.log",
            FAENA_URL=self._proxy.url,
            CHAOS_LEDGER=str(self._directory / "ledger"),
        )
        self._all.add(worker)
        return worker

    def _end(self, worker: Service) -> None:
        worker.__exit__(None, None, None)
        self._all.discard(worker)

    # -- the broker -----------------------------------------------------------------------------

    async def _kill_broker(self) -> None:
        with self._noting("broker killed", None):
            self._server.kill()
            await asyncio.sleep(self._random.uniform(0, 2))
            await asyncio.to_thread(self._server.start)

    async def _freeze_broker(self) -> None:
        with self._noting("broker frozen", None):
            self._server.pause()
            await asyncio.sleep(self._random.uniform(0, 2))
            self._server.resume()

    async def _flush_scripts(self) -> None:
        with self._noting("scripts flushed", NOBODY), self._server.client() as client:
            client.script_flush()
            client.function_flush()

    @contextmanager
    def _noting(self, kind: str, pid: int | None) -> Generator[None]:
        fault = Fault(kind, pid, time.monotonic_ns())
        self.noted.append(fault)
        yield
        fault.ended_ns = time.monotonic_ns()

    def _do_later(self, work: Coroutine[None, None, None]) -> None:
        self._later.add(asyncio.create_task(work))
