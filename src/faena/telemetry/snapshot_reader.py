"""Reads a snapshot: one script call for each shard, sent some at a time, and a few for nodes."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from faena.engine import Engine
from faena.engine.calls.snapshot import ShardFacts, read_shards
from faena.engine.calls.survey import Survey
from faena.engine.calls.upstreams import UpstreamView
from faena.engine.wire.address import Node
from faena.errors import StoreError
from faena.inspection.broker_info import TIME, read_info
from faena.inspection.workers import merged
from faena.resilience.feature_views import FeatureView
from faena.sharding.router import Routers
from faena.telemetry.snapshot import NodeSnapshot, QueueSnapshot, Snapshot, TenantSnapshot
from faena.telemetry.statistics import NOT_EVENTS
from faena.tenancy.lanes import tenant_of

MOST_TENANTS: Final = 50
_LIVE: Final = 1_000_000
"""Of a lane's number: its live jobs times this, and its running ones."""
_LIVE_STATES: Final = ("ready", "delayed", "blocked", "running")
_AT_ONCE: Final = 20
"""Queues whose tenants are read at a time."""
_TRIES: Final = 5


class SnapshotReader:
    """Reads all queues of an app."""

    def __init__(
        self,
        engine: Engine,
        routers: Routers,
        upstreams: Callable[[], Awaitable[Sequence[UpstreamView]]],
        features: Callable[[], Awaitable[Sequence[FeatureView]]],
    ) -> None:
        self._engine, self._routers = engine, routers
        self._upstreams, self._features = upstreams, features

    async def read(self, queues: Iterable[str], *, has_tenants: bool) -> Snapshot:
        """All of them, the nodes, upstreams and features."""
        found, nodes, upstreams, features = await asyncio.gather(
            self._seen([*queues], has_tenants=has_tenants),
            self._nodes(),
            self._upstreams(),
            self._features(),
        )
        seen = [queue for _, queue in found]
        return Snapshot(
            at=max((at for at, _ in found), default=time.time_ns() // 1000),
            queues=tuple(seen),
            nodes=tuple(nodes),
            missed_schedules=sum(queue.totals.get("schedule_missed", 0) for queue in seen),
            upstreams=tuple(upstreams),
            features=tuple(features),
        )

    async def _seen(
        self, queues: Sequence[str], *, has_tenants: bool
    ) -> list[tuple[int, QueueSnapshot]]:
        """All queues, their shards together."""
        names = await self._routers.names_of_each(queues)
        shards = dict(zip(queues, names, strict=True))
        every = [shard for names in shards.values() for shard in names]
        parts = dict(zip(every, await read_shards(self._engine, every), strict=True))
        room = asyncio.Semaphore(_AT_ONCE)

        async def added_up(queue: str) -> tuple[int, QueueSnapshot]:
            async with room:
                names = shards[queue]
                names, found = await self._unchanged(queue, names, [parts[one] for one in names])
                lanes = [await self._lanes(shard) for shard in names if has_tenants]
            return found[0].now, _added_up(queue, found, lanes)

        return await asyncio.gather(*map(added_up, queues))

    async def _unchanged(
        self, queue: str, shards: list[str], parts: list[ShardFacts]
    ) -> tuple[list[str], list[ShardFacts]]:
        """All shards, read again if one was given up meanwhile: the first one takes over its
        totals, and who reads one of the two before and the other after that has them never or
        twice."""
        router = self._routers.of(queue)
        for _ in range(_TRIES):
            now = shards if len(shards) == 1 else await router.names()
            if now == shards:
                break
            shards, parts = now, await read_shards(self._engine, now)
        return shards, parts

    async def _lanes(self, shard: str) -> dict[str, int]:
        """Lane → its number; read in slices, since there may be very many."""
        survey = Survey(self._engine, shard)
        found: dict[str, int] = {}
        async for page in survey.numbers("lanes"):
            found |= page
        return found

    async def _nodes(self) -> list[NodeSnapshot]:
        nodes = await self._engine.wire.nodes()
        return await asyncio.gather(*(self._node(node) for node in nodes))

    async def _node(self, node: Node) -> NodeSnapshot:
        """A node that does not answer at once is shown as unreachable."""
        wire, began = self._engine.wire, time.perf_counter()
        try:
            await wire.run(TIME, (), (), patience_s=0, node=node)
            latency_ms = (time.perf_counter() - began) * 1000
            info = await read_info(wire, node)
        except StoreError:
            return NodeSnapshot(node=str(node), latency_ms=None, memory_used=None, memory_max=None)
        return NodeSnapshot(
            node=str(node),
            latency_ms=latency_ms,
            memory_used=_bytes(info.get("used_memory")),
            memory_max=_bytes(info.get("maxmemory")) or None,
        )


def _bytes(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _added_up(
    queue: str, parts: Sequence[ShardFacts], lanes: Sequence[dict[str, int]]
) -> QueueSnapshot:
    counts, totals = Counter[str](), Counter[str]()
    for part in parts:
        counts.update(part.counts)
        totals.update(part.totals)
    ages = [part.now - part.ready_since for part in parts if part.ready_since is not None]
    dead = [part.now - part.dead_since for part in parts if part.dead_since is not None]
    workers = merged(worker for part in parts for worker in part.workers)
    tenants, rest = _tenants(counts, lanes)
    return QueueSnapshot(
        queue=queue,
        counts=dict(counts),
        oldest_us=max(0, *ages) if ages else None,
        oldest_dead_us=max(0, *dead) if dead else None,
        totals={name: number for name, number in totals.items() if name not in NOT_EVENTS},
        holds=tuple({hold.reason: hold for part in parts for hold in part.holds}.values()),
        workers=workers,
        slots=sum(worker.slots or 0 for worker in workers),
        is_open=any(part.is_open for part in parts if part.ready_since is not None)
        or not counts["ready"],
        tenants=tenants,
        other_tenants=rest,
    )


def _tenants(
    counts: Counter[str], lanes: Sequence[dict[str, int]]
) -> tuple[tuple[TenantSnapshot, ...], TenantSnapshot | None]:
    """Those with the most live jobs, and the rest, which includes jobs without a tenant."""
    numbers = Counter[str]()
    for one in lanes:
        numbers.update(one)
    named = {lane: number for lane, number in numbers.items() if tenant_of(lane) is not None}
    if not numbers:
        return (), None
    most = heapq.nlargest(MOST_TENANTS, named.items(), key=lambda item: (item[1], item[0]))
    shown = tuple(
        TenantSnapshot(tenant=tenant_of(lane) or "", live=number // _LIVE, running=number % _LIVE)
        for lane, number in most
    )
    live = sum(counts[state] for state in _LIVE_STATES)
    return shown, TenantSnapshot(
        tenant="",
        live=max(0, live - sum(one.live for one in shown)),
        running=max(0, counts["running"] - sum(one.running for one in shown)),
    )
