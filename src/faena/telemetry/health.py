"""The health of an app: the round trip of one script, and the state of each queue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from faena.engine.wire.patience import within
from faena.errors import FaenaError
from faena.inspection.broker_info import TIME
from faena.values.view import View

_TRYING: Final = 0.8
"""The part of the time to try the broker; the rest is for the report of its failure."""

if TYPE_CHECKING:
    from faena.runtime.connections import Runtime


class QueueHealth(View, frozen=True, kw_only=True):
    """One queue."""

    is_ready: bool
    """Whether jobs are accepted: false until its program has declared the queue."""
    holds: tuple[str, ...]
    """The reasons of its holds."""
    waiting: int
    """Jobs that could start."""
    workers: tuple[str, ...]
    """Workers that called lately."""


class Health(View, frozen=True, kw_only=True):
    """An app at one instant."""

    also = ("is_ok", "is_served")

    is_reachable: bool
    """Whether the broker ran a script in time."""
    latency_ms: float | None = None
    """The round trip of the script."""
    problem: str | None = None
    """Why it did not, if it did not."""
    queues: dict[str, QueueHealth] = msgspec.field(default_factory=dict[str, QueueHealth])

    @property
    def is_ok(self) -> bool:
        """Whether jobs can be enqueued."""
        return self.is_reachable and all(queue.is_ready for queue in self.queues.values())

    @property
    def is_served(self) -> bool:
        """Whether each queue has a worker, and nothing holds it."""
        queues = self.queues.values()
        return self.is_ok and all(queue.workers and not queue.holds for queue in queues)


async def check_health(
    runtime: Callable[[], Awaitable[Runtime]],
    own: Iterable[str],
    remote: Iterable[str],
    within_s: float,
) -> Health:
    """Check for at most `within_s`; errors of the broker are reported, not raised."""
    try:
        async with asyncio.timeout(within_s):
            with within(within_s * _TRYING):
                return await _ask(await runtime(), tuple(own), tuple(remote))
    except TimeoutError:
        return Health(
            is_reachable=False, problem=f"the broker did not answer within {within_s:g} s"
        )
    except (FaenaError, OSError) as error:
        return Health(is_reachable=False, problem=str(error))


async def _ask(runtime: Runtime, own: tuple[str, ...], remote: tuple[str, ...]) -> Health:
    began = time.perf_counter()
    await runtime.engine.wire.run(TIME, (), (), patience_s=0)
    latency_ms = (time.perf_counter() - began) * 1000
    names = (*own, *remote)
    found = await asyncio.gather(*(_queue(runtime, name, name in remote) for name in names))
    queues = dict(zip(names, found, strict=True))
    return Health(is_reachable=True, latency_ms=latency_ms, queues=queues)


async def _queue(runtime: Runtime, name: str, is_remote: bool) -> QueueHealth:
    seen = await runtime.inspector.overview(name)
    return QueueHealth(
        is_ready=not is_remote or "order" in seen.settings,
        holds=tuple(hold.reason for hold in seen.holds),
        waiting=seen.counts["ready"],
        workers=tuple(worker.name for worker in seen.workers),
    )
