"""What a worker has to do with upstreams: it asks before jobs begin, and ends holds.

The worker whose report changes a breaker ends the holds of the queues that it serves. If it dies
before, nothing is lost: a hold lasts only until the instant at which it is right to ask again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from faena.engine import Engine
from faena.engine.calls.resilience import Turned
from faena.errors import FaenaError
from faena.resilience.gate import Gate
from faena.values.shards import queue_of
from faena.worker.execute.admission import Admission
from faena.worker.options import Served

_LAST_CALLS_S: Final = 10.0
_OPENING: Final = frozenset({"recovering", "closed"})

_log = logging.getLogger("faena.worker")


class WorkerUpstreams:
    """The gate of a worker, if its program has upstreams."""

    def __init__(
        self,
        engine: Engine,
        gate: Gate | None,
        queues: Mapping[str, Served],
        shards: Callable[[], Collection[str]],
    ) -> None:
        """`shards` are those that are served now."""
        self._engine, self._gate = engine, gate
        self._needing = _needing(queues)
        self._shards = shards
        self._tasks: set[asyncio.Task[None]] = set()

    def admission(self, served: Served, on_answer: Callable[[int, int], None]) -> Admission | None:
        """What asks for the jobs of a queue; None where they need no upstream."""
        if self._gate is None or not any(one.upstreams for one in served.handlers.values()):
            return None
        return Admission(self._gate, served.handlers, on_answer)

    def start(self) -> None:
        """Listen to the gate."""
        if self._gate is not None:
            self._gate.listeners.append(self._tell)

    async def finish(self) -> None:
        """Report the last calls, and end the holds that are to be ended."""
        if self._gate is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._gate.flush(), _LAST_CALLS_S)
            self._gate.listeners.remove(self._tell)
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=_LAST_CALLS_S)

    def _tell(self, turned: Sequence[Turned]) -> None:
        for one in turned:
            if one.state in _OPENING and not one.tenant:
                self._tasks.add(task := asyncio.create_task(self._release(one.upstream)))
                task.add_done_callback(self._tasks.discard)

    async def _release(self, upstream: str) -> None:
        queues = self._needing.get(upstream, ())
        try:
            for shard in [one for one in self._shards() if queue_of(one) in queues]:
                await self._engine.release(shard, f"upstream {upstream}")
        except FaenaError as error:
            _log.warning("holds for upstream %s end by themselves: %s", upstream, error)


def _needing(queues: Mapping[str, Served]) -> dict[str, set[str]]:
    """The queues that need an upstream, by its name."""
    needing: dict[str, set[str]] = {}
    for queue, served in queues.items():
        for one in [one for each in served.handlers.values() for one in each.upstreams]:
            needing.setdefault(one.name, set()).add(queue)
    return needing
