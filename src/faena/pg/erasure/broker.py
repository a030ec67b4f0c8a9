"""Jobs of a tenant at the broker, in all queues that the app knows.

Shards are read one by one, and a job is removed at the shard where it was seen with this tenant:
another tenant may have a job of the same id at another shard. While tenants move between shards,
nothing is removed: a job on its way would be missed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from faena.engine import Engine, scripts
from faena.engine.requester import on_behalf
from faena.inspection.job_view import read_job
from faena.job import JobView
from faena.pg.erasure.place import Found, NotYet
from faena.sharding.consistent_read import in_sight
from faena.states import FINISHED, LIVE, State

if TYPE_CHECKING:
    from faena.pg.erasure.record import Tally
    from faena.pg.postgres import Postgres

_PAGE: Final = 200
_FORGET: Final = """
    UPDATE faena.effects SET result = NULL
    FROM unnest(%s::text[], %s::text[]) AS gone(queue, job)
    WHERE effects.queue = gone.queue AND effects.job = gone.job
        AND effects.result IS NOT NULL AND effects.tenant IS NULL
"""


class Batch(NamedTuple):
    """Some jobs of the tenant at one shard."""

    shard: str
    jobs: list[JobView]

    @property
    def ids(self) -> list[str]:
        """Of the jobs."""
        return [one.id for one in self.jobs]


class BrokerJobs:
    """The jobs of all queues."""

    name = "jobs"

    def __init__(self, pg: Postgres, *, by: str = "erasure", cancels_live: bool = False) -> None:
        self._pg = pg
        self._by = by
        self._cancels_live = cancels_live

    async def count(self, tenant: str) -> Found:
        """Live and finished ones."""
        return Found(await self.live(tenant) + await self._number(tenant, FINISHED))

    async def live(self, tenant: str) -> int:
        """Jobs that wait or run."""
        return await self._number(tenant, LIVE)

    async def _number(self, tenant: str, states: frozenset[State]) -> int:
        return sum([len(one.jobs) async for one in self._batches(tenant, states)])

    async def erase(self, tenant: str, tally: Tally) -> None:
        """Remove what is finished once nothing is live; `NotYet` until then."""
        engine = (await self._pg.app.runtime()).engine
        with on_behalf(self._by):
            await self._end_live(engine, tenant)
            left = 0
            async for some in self._batches(tenant, FINISHED):
                await self._forget_effects(some.jobs, tally)
                answers = await engine.remove(some.shard, some.ids)
                await tally.note(self.name, answers.count("removed"))
                left += sum(answer not in {"removed", "unknown"} for answer in answers)
        if left:
            raise NotYet(f"{left} jobs of the tenant cannot be removed: a flow or group needs them")

    async def _end_live(self, engine: Engine, tenant: str) -> None:
        left = 0
        async for some in self._batches(tenant, LIVE):
            left += len(some.jobs)
            if self._cancels_live:
                answers = await engine.cancel(some.shard, some.ids)
                left -= len(answers) - answers.count("asked")
        if left:
            what = "are being stopped" if self._cancels_live else "are live: it waits for their end"
            raise NotYet(f"{left} jobs of the tenant {what}")

    async def _forget_effects(self, jobs: Sequence[JobView], tally: Tally) -> None:
        """Of records that were written before they had a tenant."""
        async with self._pg.transaction("erase") as connection:
            given = [[one.queue for one in jobs], [one.origin for one in jobs]]
            found = await connection.execute(_FORGET, given)
            await tally.add(connection, "effects", found.rowcount)

    # -- finding ----------------------------------------------------------------------------------

    async def _batches(self, tenant: str, states: frozenset[State]) -> AsyncIterator[Batch]:
        runtime = await self._pg.app.runtime()
        for queue in [*self._pg.app.queues]:
            sight = await in_sight(runtime.routers.of(queue))
            if sight.is_moving:
                raise NotYet(f"tenants of queue {queue} move to other shards now")
            for shard in sight.shards:
                for state in sorted(states):
                    async for ids in _ids(runtime.engine, shard, state):
                        looks = await runtime.engine.look(shard, ids)
                        seen = [
                            read_job(queue, job, look)
                            for job, look in zip(ids, looks, strict=True)
                            if look is not None and look.state == state.value
                        ]
                        mine = [job for job in seen if job.tenant == tenant]
                        if mine:
                            yield Batch(shard, mine)


async def _ids(engine: Engine, shard: str, state: State) -> AsyncIterator[list[str]]:
    """The ids of a state, page by page; leases change, so running jobs are one page."""
    if state is State.RUNNING:
        ids = scripts.texts(await engine.command("ZRANGE", shard, "running", 0, -1))
        if ids:
            yield ids
        return
    after = ("", "")
    while True:
        page = await engine.page(shard, state.value, _PAGE, after=after, is_reverse=False)
        if page:
            yield [job for job, _ in page]
        if len(page) < _PAGE:
            return
        after = page[-1]
