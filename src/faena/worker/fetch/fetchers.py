"""The fetchers of a worker, one for each shard that it serves.

    opened → serving → closed (no more claims) → everything settled → removed
                 ↑         │
                 └─────────┘ its shard came back

A closed shard keeps its leases, its slots and its channel for messages until the last of its jobs
is settled. A shard that comes back while its fetcher ends gets a new fetcher.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from faena.errors import InternalError
from faena.sharding.routing_table import Shard
from faena.values.shards import queue_of
from faena.worker.execute.attempt_state import Attempt, Stop
from faena.worker.fetch.fetcher import Fetcher


class Fetchers:
    """Opens and closes fetchers as shards come and go."""

    def __init__(
        self,
        move_in: Callable[[Shard], Fetcher],
        move_out: Callable[[Fetcher], None],
        on_change: Callable[[], None],
    ) -> None:
        """`move_in` creates the fetcher of a shard, `move_out` frees what it used."""
        self._move_in = move_in
        self._move_out = move_out
        self._on_change = on_change
        self._wanted: dict[str, Shard] = {}
        self._fetchers: dict[str, Fetcher] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._leftovers: set[asyncio.Task[None]] = set()
        self._failed = asyncio.Event()
        self._failure: BaseException | None = None
        self._is_started = False
        self._is_leaving = False

    def attempts(self) -> list[Attempt]:
        """Running attempts; may be called in any thread."""
        fetchers = [*self._fetchers.values()]  # a copy: the loop adds and removes them
        return [one for each in fetchers for one in [*each.executor.running.values()]]

    @property
    def fetchers(self) -> Mapping[str, Fetcher]:
        """Shard → fetcher, closed but unsettled ones included; a live view."""
        return self._fetchers

    def settle(self, queue: str, shards: Sequence[Shard]) -> None:
        """Serve exactly these shards of a queue."""
        if self._is_leaving:
            return
        wanted = {shard.name: shard for shard in shards}
        for name in [name for name in self._wanted if queue_of(name) == queue]:
            if name not in wanted:
                del self._wanted[name]
                self._close(name)
        self._wanted |= wanted
        for shard in shards:
            self._open(shard)

    def _open(self, shard: Shard) -> None:
        fetcher = self._fetchers.get(shard.name)
        if fetcher is None:
            self._fetchers[shard.name] = self._move_in(shard)
            if self._is_started:
                self._run(shard.name)
        elif not fetcher.is_closing or not fetcher.reopen():
            return  # served already, or about to end: `_ended` opens it again
        self._on_change()

    def start(self) -> None:
        """Start all fetchers, now and as shards are opened."""
        self._is_started = True
        for name in self._fetchers:
            self._run(name)

    def _run(self, name: str) -> None:
        running = self._running[name] = asyncio.create_task(self._fetchers[name].run())
        running.add_done_callback(partial(self._ended, name))

    def _close(self, name: str) -> None:
        self._fetchers[name].close()
        self._fetchers[
            name
        ].request_exchange()  # re-arms a wake marker that this worker popped for it
        self._on_change()

    def _ended(self, name: str, running: asyncio.Task[None]) -> None:
        """Keep a fetcher that failed: the worker still has to end its handlers."""
        if running.cancelled():
            return
        if error := running.exception():
            self._failure = self._failure or error
            self._failed.set()
            return
        del self._running[name]
        fetcher = self._fetchers.pop(name)
        for task in fetcher.executor.tasks:
            self._leftovers.add(task)
            task.add_done_callback(self._leftovers.discard)
        self._move_out(fetcher)
        if name in self._wanted and not self._is_leaving:
            self._open(self._wanted[name])
        else:
            self._on_change()

    async def run(self) -> None:
        """Serve until cancelled; raises the error of a fetcher that failed."""
        await self._failed.wait()
        raise self._failure or InternalError("a fetcher ended without an error")

    # -- the end --------------------------------------------------------------------------------

    def close(self) -> None:
        """Claim no more jobs in any shard, and open no shard."""
        self._is_leaving = True
        for fetcher in self._fetchers.values():
            fetcher.close()

    def request_exchanges(self) -> None:
        """Make every fetcher run an exchange."""
        for fetcher in self._fetchers.values():
            fetcher.request_exchange()

    def ending(self) -> asyncio.Future[list[None]]:
        """A future that is done when everything is settled."""
        return asyncio.gather(*self._running.values())

    def hand_back(self) -> None:
        """Stop every handler and release its job, which uses no attempt."""
        for fetcher in self._fetchers.values():
            for job_id in list(fetcher.executor.running):
                fetcher.stop_job(job_id, Stop.SHUTDOWN)

    async def cancel(self) -> None:
        """End the fetchers, settled or not."""
        running = [*self._running.values()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def end_handlers(self, within_s: float) -> None:
        """Stop the handlers that still run; one that ignores it may run on."""
        self.hand_back()
        tasks = {task for each in self._fetchers.values() for task in each.executor.tasks}
        if tasks | self._leftovers:
            await asyncio.wait(tasks | self._leftovers, timeout=within_s)
