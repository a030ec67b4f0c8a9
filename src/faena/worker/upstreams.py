"""What a worker has to do with upstreams: it asks before jobs begin, ends holds, and has the server
close breakers in time.

The worker whose report changes a breaker ends the holds of the queues that it serves, and so does
every worker that hears of it, or of the end of a panic. If none does, nothing is lost: a hold lasts
only until the instant at which it is right to ask again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from faena.declaring.handler import Handler
from faena.engine import Engine
from faena.engine.calls import spending
from faena.engine.calls.resilience import Turned
from faena.errors import FaenaError
from faena.resilience.breaker_timer import BreakerTimer
from faena.resilience.push import Change, UpstreamPush
from faena.values.shards import queue_of
from faena.worker.execute.admission import Admission
from faena.worker.options import Served

_LAST_CALLS_S: Final = 10.0
_OPENING: Final = frozenset({"recovering", "closed", "panic_ended", "forgotten"})
_AGAIN_S: Final = 1.0
"""When holds are ended once more after a panic: some are of jobs that were refused just before."""

_SOFT: Final = 3
"""Where a budget's soft share is, in what the server keeps of it."""

_log = logging.getLogger("faena.worker")


class WorkerUpstreams:
    """The part of a worker that has to do with upstreams, if its program has any."""

    def __init__(
        self,
        engine: Engine,
        push: UpstreamPush | None,
        queues: Mapping[str, Served],
        shards: Callable[[], Collection[str]],
    ) -> None:
        """`shards` are those that are served now."""
        self._engine, self._push = engine, push
        self._needing = _needing(queues)
        self._never_frugal = _never_frugal(queues)
        self._shards = shards
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending = asyncio.Event()
        self._timer = BreakerTimer(engine, sorted(self._needing))

    async def run(self) -> None:
        """End recoveries and panics in time, until cancelled."""
        if self._push is None:
            await asyncio.Event().wait()
        elif self._never_frugal:
            await self._warn_of_frugality(self._push)
        await self._timer.run()

    async def _warn_of_frugality(self, push: UpstreamPush) -> None:
        """Totals may be those of another program, so the server is asked for them."""
        try:
            await push.start()
            rows = (await spending.budgets(self._engine, "")).rows
        except FaenaError as error:
            _log.warning("total budgets could not be read: %s", error)
            return
        soft = {row.currency for row in rows if not row.upstream and row.settings[_SOFT]}
        for queue, handler in self._never_frugal:
            lists = [one.options.price_list for one in handler.upstreams]
            if soft.isdisjoint(one.currency for one in lists if one):
                names = ", ".join(one.name for one in handler.upstreams)
                words = (
                    "queue %s: task %s is never frugal, because no budget of its upstreams (%s) "
                    "and no total budget has a soft share: declare one as in "
                    "Budget('50 USD', soft=0.8), or leave out cheaper and frugal_priority"
                )
                known = {"queue": queue, "task": handler.name}
                _log.warning(words, queue, handler.name, names, extra=known)

    def admission(self, served: Served, on_answer: Callable[[int, int], None]) -> Admission | None:
        """What asks for the jobs of a queue; None where they need no upstream."""
        if self._push is None or not any(one.upstreams for one in served.handlers.values()):
            return None
        return Admission(self._push.gate, served.handlers, on_answer)

    def start(self) -> None:
        """Listen to the gate, and to what happens elsewhere."""
        if self._push is not None:
            self._push.gate.listeners.append(self._turned)
            self._push.listeners.append(self._heard)

    async def finish(self) -> None:
        """Report the last calls, and end the holds that are to be ended."""
        if self._push is not None:
            self._push.listeners.remove(self._heard)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_CALLS_S):
                    await self._push.gate.flush()
            self._push.gate.listeners.remove(self._turned)
        self._ending.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LAST_CALLS_S)

    def _turned(self, turned: Sequence[Turned]) -> None:
        for one in turned:
            self._changed(one.upstream, one.tenant, one.state)

    def _heard(self, change: Change) -> None:
        self._timer.hear(change)
        self._changed(change.upstream, change.tenant, change.state)

    def _changed(self, upstream: str, tenant: str, state: str) -> None:
        if state in _OPENING and not tenant:
            self._tasks.add(task := asyncio.create_task(self._release(upstream, state)))
            task.add_done_callback(self._tasks.discard)

    async def _release(self, upstream: str, state: str) -> None:
        try:
            await self._release_all(upstream)
            if state == "panic_ended":
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_AGAIN_S):
                        await self._ending.wait()
                await self._release_all(upstream)
        except FaenaError as error:
            _log.warning("holds for upstream %s end by themselves: %s", upstream, error)

    async def _release_all(self, upstream: str) -> None:
        queues = self._needing.get(upstream, ())
        for shard in [one for one in self._shards() if queue_of(one) in queues]:
            await self._engine.release(shard, f"upstream {upstream}")


def _never_frugal(queues: Mapping[str, Served]) -> list[tuple[str, Handler]]:
    """Tasks that say what to do beyond a soft share, and whose upstreams have none."""
    return [
        (queue, one)
        for queue, served in queues.items()
        for one in served.handlers.values()
        if one.cheaper or one.frugal_priority
        if not any(budget.soft for each in one.upstreams for budget in each.options.budgets)
    ]


def _needing(queues: Mapping[str, Served]) -> dict[str, set[str]]:
    """The queues that need an upstream, by its name."""
    needing: dict[str, set[str]] = {}
    for queue, served in queues.items():
        for one in [one for each in served.handlers.values() for one in each.upstreams]:
            needing.setdefault(one.name, set()).add(queue)
    return needing
