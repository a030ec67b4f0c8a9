"""Takes requests to erase a tenant's data, and carries them out as background jobs.

    unsent outbox → jobs → outbox → effects → tables and archives → retrievals → history

Each place is erased in steps that can be repeated, so a job that dies begins again and finishes. At
the end all places are counted: the request is done when nothing is left but what a law protects.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from faena.errors import FaenaError, InvalidTransition, JobNotFound
from faena.job import Job
from faena.outcomes import Snooze
from faena.pg.archive.manifest import manifest_key
from faena.pg.archive.policy import Policy
from faena.pg.erasure import record, row
from faena.pg.erasure.archived import Archived
from faena.pg.erasure.broker import BrokerJobs
from faena.pg.erasure.option import Erasure
from faena.pg.erasure.past import Past
from faena.pg.erasure.place import Kept, NotYet, Place
from faena.pg.erasure.record import Record, Tally
from faena.pg.erasure.view import ErasurePlan, ErasureView
from faena.pg.partition.catalog import find_table
from faena.pg.retrieval.retrievals import check_tenant, is_label
from faena.states import FINISHED
from faena.task import Task
from faena.values.names import check_label, check_reason

if TYPE_CHECKING:
    from faena.pg.postgres import Postgres

TASK: Final = "erase-tenant"
SWEEP: Final = "finish-erasures"
_DAILY: Final = "45 3 * * *"
_TIMEOUT: Final = "12h"
_ATTEMPTS: Final = 30
_PAGE: Final = 500
_UNDECLARED: Final = """
    SELECT DISTINCT table_name FROM faena.archives
    WHERE tenant = %s AND state <> 'erased' ORDER BY 1
"""
_TOMBSTONES: Final = """
    SELECT id, store, key FROM faena.archives WHERE state = 'erased' AND id > %s
    ORDER BY id LIMIT %s
"""
_FORGET: Final = """
    DELETE FROM faena.archives WHERE id = ANY(%s) AND state = 'erased'
    AND changed_at < now() - interval '7 days'
"""

_log = logging.getLogger("faena.pg")


class Order(msgspec.Struct, frozen=True):
    """The payload of the job; it names no tenant."""

    id: str


class Erasures:
    """The requests of one PostgreSQL."""

    def __init__(self, pg: Postgres, options: Erasure) -> None:
        self._pg = pg
        self.options = options
        app = pg.app
        is_new = options.queue not in app.queues
        queue = app.queue(options.queue) if is_new else app.queues[options.queue]
        register = queue.task(name=TASK, timeout=_TIMEOUT, attempts=_ATTEMPTS)
        self._task: Task[Order, None] = register(self._work)

        async def finish_erasures() -> int:
            return await self.sweep()

        app.cron(_DAILY, name=SWEEP, queue=queue)(finish_erasures)

    # -- requests ---------------------------------------------------------------------------------

    async def erase(
        self, tenant: str, *, by: str, reason: str, cancel_live: bool = False
    ) -> ErasureView:
        """Take a request; a tenant's request that waits is found again.

        Refused while the tenant has live jobs, unless they are cancelled: stop the tenant first.
        """
        check_tenant(tenant)
        check_label("by", by)
        check_reason(reason)
        live = 0 if cancel_live else await BrokerJobs(self._pg).live(tenant)
        if live:
            raise InvalidTransition(
                f"the tenant has {live} live jobs: wait for their end, or cancel them with "
                f"cancel_live=True (--cancel-live on the command line)",
                op="erase",
            )
        async with self._pg.transaction("erase") as connection:
            id_ = await record.add(connection, tenant, by, reason, cancels_live=cancel_live)
        await self._enqueue(id_)
        return await self.look(id_)

    async def look(self, id: str) -> ErasureView:  # noqa: A002 - as jobs have one
        """How far a request is."""
        async with self._pg.transaction("erase") as connection:
            found = await record.read(connection, id_=id)
        if not found:
            raise JobNotFound("there is no such erasure", op="erase")
        return _shown(found[0])

    async def list(self, *, tenant: str | None = None, limit: int = 100) -> list[ErasureView]:
        """Requests, the newest first."""
        async with self._pg.transaction("erase") as connection:
            found = await record.read(connection, tenant=tenant, limit=limit)
        return [_shown(one) for one in found]

    async def plan(self, tenant: str) -> ErasurePlan:
        """What is held of a tenant now, in every place; changes nothing.

        After an erasure that is done, `found` has only zeros.
        """
        check_tenant(tenant)
        found, kept = await self._count(tenant, await self._places(tenant, None))
        live = await BrokerJobs(self._pg).live(tenant)
        return ErasurePlan(tenant=tenant, found=found, live=live, kept=kept)

    async def _enqueue(self, id_: str) -> None:
        """Also again: a request whose job was lost, or has given up, must not wait for ever."""
        handle = self._pg.app.queues[self.options.queue].handle(id_)
        state = await handle.state()
        if state in FINISHED:
            await handle.rerun()
        elif state is None:
            await self._task.enqueue(Order(id_), id=id_)

    # -- the job ----------------------------------------------------------------------------------

    async def _work(self, order: Order, job: Job) -> None:
        async with self._pg.transaction("erase") as connection:
            found = await record.read(connection, id_=order.id)
        if not found or found[0].state == "done":
            return
        wanted = found[0]
        try:
            await self._erase(wanted, job)
        except NotYet as error:
            await self._note(wanted, str(error))
            wait = timedelta(microseconds=self.options.wait_us)
            raise Snooze(wait, reason=str(error)[:200]) from None
        except FaenaError as error:
            await self._note(wanted, str(error))
            raise

    async def _erase(self, wanted: Record, job: Job) -> None:
        tally, tenant = Tally(self._pg, wanted.id), wanted.tenant
        places = await self._places(tenant, wanted)
        problems: list[FaenaError] = []
        for place in places:
            async with self._pg.transaction("erase") as connection:
                await record.set_step(connection, wanted.id, place.name)
            job.progress({"place": place.name, "erased": tally.total})
            try:
                await place.erase(tenant, tally)
            except FaenaError as error:
                if isinstance(place, BrokerJobs):  # live jobs would write what was just erased
                    raise
                problems.append(error)
        if problems:
            raise problems[0]
        left, kept = await self._count(tenant, places)
        if any(left.values()):
            words = ", ".join(f"{number} in {name}" for name, number in left.items() if number)
            raise NotYet(f"something has come meanwhile: {words}")
        async with self._pg.transaction("erase") as connection:
            await record.finish(connection, wanted.id, kept)
        _log.info("erasure %s is done: %d erased, %d kept", wanted.id, tally.total, len(kept))

    async def _note(self, wanted: Record, problem: str) -> None:
        async with self._pg.transaction("erase") as connection:
            await record.set_step(connection, wanted.id, "waiting", problem)

    async def _count(
        self, tenant: str, places: Sequence[Place]
    ) -> tuple[dict[str, int], tuple[Kept, ...]]:
        found, kept = dict[str, int](), tuple[Kept, ...]()
        for place in places:
            one = await place.count(tenant)
            found[place.name] = one.number
            found |= dict(one.more)
            kept += one.kept
        return found, kept

    # -- places -----------------------------------------------------------------------------------

    async def _places(self, tenant: str, wanted: Record | None) -> list[Place]:
        """All of them, in the order in which they are erased."""
        pg, rows = self._pg, self.options.rows
        is_jobs = is_label(tenant)
        by, cancels = (wanted.by, wanted.cancels_live) if wanted else ("erasure", False)
        jobs = BrokerJobs(pg, by=by, cancels_live=cancels)
        found: list[Place] = [row.unsent(pg, rows), jobs] if is_jobs else []
        found += [row.outbox(pg, rows), row.effects(pg, rows)]
        found += await self._tables(tenant)
        found.append(row.Retrieved(pg, rows))
        if pg.has_history and is_jobs:
            found.append(Past(pg))
        return found

    async def _tables(self, tenant: str) -> list[Place]:
        """Those with a policy, and those of which only archives are known."""
        known: dict[str, Policy | None] = {}
        async with self._pg.transaction("erase") as connection:
            for policy in self._pg.retentions.values():
                known[str(await find_table(connection, policy.table))] = policy
            others = await connection.execute(_UNDECLARED, [tenant])
            for (name,) in await others.fetchall():
                known.setdefault(name, None)
        return [Archived(self._pg, name, policy, self.options) for name, policy in known.items()]

    # -- daily ------------------------------------------------------------------------------------

    async def sweep(self) -> int:
        """Begin requests again whose jobs were lost, and remove again what frozen processes may
        have written; returns how many requests wait."""
        async with self._pg.transaction("erase") as connection:
            left = await record.waiting(connection)
        for one in left:
            await self._enqueue(one.id)
        after = 0
        while some := await self._tombstones(after):
            after = some[-1][0]
            for url in {store for _, store, _ in some}:
                keys = [key for _, store, key in some if store == url]
                await self._pg.stores.at(url).delete(*keys, *map(manifest_key, keys))
            async with self._pg.transaction("erase") as connection:
                await connection.execute(_FORGET, [[number for number, _, _ in some]])
        return len(left)

    async def _tombstones(self, after: int) -> list[Any]:
        async with self._pg.transaction("erase") as connection:
            return await (await connection.execute(_TOMBSTONES, [after, _PAGE])).fetchall()

    def __repr__(self) -> str:
        return f"<Erasures of {self._pg.app.name}>"


def _shown(one: Record) -> ErasureView:
    told: dict[str, Any] = one._asdict()
    del told["cancels_live"]
    told["kept"] = msgspec.convert(one.kept, tuple[Kept, ...])
    return ErasureView(**told)
