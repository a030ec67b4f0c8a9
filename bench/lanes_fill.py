"""Puts a backlog on a queue, tenant after tenant in turn, as fast as the engine takes it.

The public bulk call checks options job by job, which is not what is measured here: specs are sealed
once per tenant and go to the engine directly, as large as `enqueue_many` makes them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from bench.lanes_shop import QUEUE, Work, build, tenant_name
from faena import Faena
from faena.engine import Engine
from faena.engine.settings import declaration
from faena.options import EnqueueOptions
from faena.producing.batcher import CallIds
from faena.producing.sealing import Frame
from faena.tenancy.lanes import lane_facts
from faena.tenancy.tenants import Tenant

CHUNK = 300
"""Jobs of one call."""


class Producer:
    """Writes to one queue of a kind."""

    def __init__(self, app: Faena, task: Any, engine: Engine, queue: str) -> None:
        self.task = task
        self.engine = engine
        self._app = app
        self._queue = queue
        self._calls = CallIds()
        self._caller = self._calls()

    async def fill(self, jobs: int, tenants: int, *, nap_ms: int = 0, first: int = 0) -> None:
        """Enqueue `jobs` jobs over the tenants numbered from `first`."""
        specs = [self._sealed(Work(first + number, nap_ms)) for number in range(tenants)]
        for start in range(0, jobs, CHUNK):
            ids = self._app.new_ids(min(CHUNK, jobs - start))
            pairs = [(one, specs[(start + i) % tenants]) for i, one in enumerate(ids)]
            await self.engine.enqueue(self._queue, self._caller, self._calls(), pairs)

    def tenant(self, name: str) -> Tenant:
        """A tenant of the queue, to hold and release."""
        return self._app.queues[self._queue].tenant(name)

    def _sealed(self, work: Work) -> bytes:
        options = EnqueueOptions(tenant=tenant_name(work.tenant))
        spec = self.task.spec(self.task.draft(work, tenant=options.tenant))
        place = lane_facts(self._queue, self._app.queues[self._queue].options, options.tenant, None)
        frame = Frame(spec, options, self.task.handler.priority, place)
        return frame.fill("", msgspec.json.encode(work))[1]


@asynccontextmanager
async def producing(url: str, kind: str, queue: str = QUEUE) -> AsyncGenerator[Producer]:
    """A producer whose connection ends with the block."""
    app, task = build(url, kind, queue=queue)
    async with app:
        engine = (await app.runtime()).engine
        engine.know(queue, declaration(app.queues[queue].options))
        yield Producer(app, task, engine, queue)


def decades(most: int, *, per_decade: int = 1) -> Iterator[int]:
    """10, 100, … or 10, 30, 100, … up to `most`."""
    steps = (1, 3)[:per_decade]
    size = 10
    while size <= most:
        yield from (size * step for step in steps if size * step <= most)
        size *= 10
