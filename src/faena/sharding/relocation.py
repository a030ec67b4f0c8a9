"""Relocates lanes: completes a change of a queue's shards, whichever program began it.

    begin       the change is stored in the first shard, so that it cannot be lost
    announce    new shards get the queue's settings and holds; every shard gets the next epoch and
                refuses producers that know an older one; lanes that will leave are frozen in their
                old and their new shard
    publish     producers read the new table; their new jobs wait behind those that are moving
    transfer    jobs move in numbered batches: packed at the source, applied once at the
                destination, then deleted at the source; running jobs end first
    thaw        a lane is served in its new shard when no job of it waits in the old one; with an
                order, or a maximum of running jobs, when no job of it is left there at all
    finish      the change is deleted; a shard without lanes is retired, and only its epoch is kept
                for a day, to refuse producers with an old table

Every step may be done twice, and by several programs at the same time. If one dies, the next
program that reads the table continues.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from faena.engine import Engine
from faena.engine.calls.lock import Lock
from faena.engine.calls.survey import Survey
from faena.engine.calls.transfer import JOBS, LANES, Claims, TransferCalls
from faena.engine.settings import read_limits
from faena.errors import ShardsChanged, StoreError, StoreRejected
from faena.sharding.quota import beyond, part, share_out
from faena.sharding.routing_table import (
    ANNOUNCED,
    EDITED,
    MOVING,
    Change,
    Table,
    read_table,
    standing,
)
from faena.values.shards import shard_index

_FULL: Final = 0.95
"""The part of maxmemory above which no change is begun."""
_MEMORY: Final = re.compile(rb"^(used_memory|maxmemory):(\d+)", re.MULTILINE)
_PAUSE_S: Final = 0.2
"""Between two checks of running jobs, which must end before they can move."""

LEASE_S: Final = 10.0
"""After this time without a renewal, another program continues a change."""
_SAY_EVERY_S: Final = 2.0

CODE: Final = "code"
"""The name for changes requested by options in code; a number set by another name is kept."""

_NOT_COPIED: Final = frozenset({"edited", "epoch", "shards", "shard"})


class Relocation:
    """Changes the shards of one queue."""

    def __init__(self, engine: Engine, queue: str) -> None:
        self._engine = engine
        self._transfer = TransferCalls(engine)
        self._queue = queue
        self._lock = Lock(
            engine,
            queue,
            "relocator",
            owner=secrets.token_hex(8),
            lease_s=LEASE_S,
            every_s=_SAY_EVERY_S,
        )
        self._at_work = asyncio.Lock()

    async def table(self) -> Table:
        """The table as it is on the server."""
        return read_table(await self._transfer.table(self._queue))

    async def begin(self, change: Change, table: Table, by: str) -> bool:
        """Store a change; False if the table has changed meanwhile."""
        named = {"change": str(change), "by": by}
        return await self._transfer.decide(self._queue, "begin", table.epoch, **named)

    async def begin_with_room(self, change: Change, table: Table, by: str) -> bool:
        """The same, or StoreRejected if the broker is nearly full: a move could not be finished,
        and jobs that are moving are not run."""
        used, most = await self._memory()
        if most and used > most * _FULL:
            raise StoreRejected(
                f"queue {self._queue} cannot be moved now: its broker uses {used} of {most} bytes "
                f"(maxmemory); nothing was started: raise maxmemory, or wait until jobs have run",
                op="move",
            )
        return await self.begin(change, table, by)

    async def _memory(self) -> tuple[int, int]:
        """Bytes used and allowed, 0 if there is no limit or the broker does not say."""
        with contextlib.suppress(StoreError):  # INFO may be forbidden
            said = dict(_MEMORY.findall(await self._engine.info(self._queue, "memory")))
            return int(said.get(b"used_memory", 0)), int(said.get(b"maxmemory", 0))
        return 0, 0

    async def restore(self, table: Table) -> None:
        """Write the table again to a server that has lost its data."""
        kept = [*sorted(table.own), *([EDITED] if table.is_edited else ())]
        number = table.shards
        await self._transfer.decide(self._queue, "restore", table.epoch, *kept, number=number)

    async def reset(self) -> None:
        """Use the number of shards in code again."""
        await self._transfer.decide(self._queue, "reset", 0)

    async def work(self, *, until_published: bool = False) -> bool:
        """Continue the current change; False while another program does."""
        async with self.alone() as is_alone:
            return is_alone and await self._work(until_published=until_published)

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[bool]:
        """Whether no other program works on a change during the block."""
        async with self._at_work:
            is_alone = await self._lock.take()
            try:
                yield is_alone
            finally:
                if is_alone:
                    await self._lock.drop()

    async def _work(self, *, until_published: bool) -> bool:
        try:
            table = await self.table()
            if table.phase == ANNOUNCED:
                await self._announce(table)
                table = await self.table()
            if table.phase == MOVING and not until_published:
                await self._move(table)
        except ShardsChanged:
            return False
        return True

    # -- announcing -----------------------------------------------------------------------------

    async def _announce(self, table: Table) -> None:
        coming = table.following()
        before = [shard.name for shard in table.all(self._queue)]
        after = [shard.name for shard in coming.all(self._queue)]
        shards = [*before, *(name for name in after if name not in before)]
        # A sealed shard refuses preparations: another program has made them, and may have died.
        with contextlib.suppress(ShardsChanged):
            await self._prepare(table, coming, before, shards)
        for name in shards:
            await self._transfer.seal(name, coming.epoch)
        await self._transfer.decide(self._queue, "publish", table.epoch)

    async def _prepare(
        self, table: Table, coming: Table, before: Sequence[str], shards: Sequence[str]
    ) -> None:
        """Announce the coming table to every shard, and freeze the lanes that will leave."""
        for name in shards[len(before) :]:
            await self._copy_settings(name)
        for name in before:
            await self._transfer.steady(name, partial(self._hand_over_quiet, name, coming))
        if coming.shards < table.shards:  # a shard counts claims before it gets a larger part
            await self._divide_quota(table, coming)
        for name in reversed(shards):
            await self._transfer.set_standing(name, standing(name, coming))
        if coming.shards > table.shards:  # and only after the other shards got a smaller part
            await self._divide_quota(table, coming)
        for name in before:
            await self._transfer.steady(name, partial(self._hand_over_all, name, coming))

    async def _copy_settings(self, shard: str) -> None:
        """Copy settings, edits and holds of the first shard to a new one."""
        first = await self._engine.overview(self._queue)
        edited = first.settings.get("edited", "").split()
        kept = {name: text for name, text in first.settings.items() if name not in _NOT_COPIED}
        await self._transfer.set_standing(shard, kept)
        if edited:
            await self._engine.configure(shard, {name: kept.get(name, "") for name in edited})
        for hold in first.holds:
            lasting = hold.until and hold.until - first.at
            if lasting is None or lasting > 0:
                await self._engine.hold(shard, hold.reason, lasting, hold.by)

    async def _divide_quota(self, table: Table, coming: Table) -> None:
        """Make shards whose part of a limit grows count the claims that others made of it."""
        settings = (await self._engine.overview(self._queue)).settings
        for limit in read_limits(settings.get("limits", "")):
            most, per = limit.max, limit.per_us
            before = {one.name: _part(most, table, one.name) for one in table.shared(self._queue)}
            after = {one.name: _part(most, coming, one.name) for one in coming.shared(self._queue)}
            owed: list[Claims] = []
            for name in before:
                owed += beyond(await self._transfer.claims(name, per), after.get(name, 0))
            rooms = {name: number - before.get(name, 0) for name, number in after.items()}
            takers = {name: room for name, room in rooms.items() if room > 0}
            for name, claims in share_out(owed, takers).items():
                await self._transfer.add_claims(name, coming.epoch, per, claims)

    async def _hand_over_quiet(self, shard: str, coming: Table) -> None:
        """Move lanes that have only finished jobs, because a rerun must not be served here.

        There may be many, and producers need not wait for them. So they move first.
        """
        if coming.change.lane:
            return
        quiet: set[str] = set()
        async for jobs in self._transfer.scan(shard, ""):
            quiet |= {lane for _, lane in jobs if self._leaves(lane, shard, coming)}
        async for live in Survey(self._engine, shard).ids("lanes", is_hash=True):
            quiet -= set(live)
        lanes = sorted(quiet)
        for start in range(0, len(lanes), LANES):
            await self._hand_over(shard, lanes[start : start + LANES], coming)

    async def _hand_over_all(self, shard: str, coming: Table) -> None:
        async for lanes in self._leaving(shard, coming):
            await self._hand_over(shard, lanes, coming)

    async def _leaving(self, shard: str, coming: Table) -> AsyncIterator[list[str]]:
        """The lanes that must leave a shard, in parts for one call each."""
        if coming.change.lane:
            if shard == coming.former().shard_of(self._queue, coming.change.lane):
                yield [coming.change.lane]
            return
        async for lanes in self._known_lanes(shard):
            leaving = [one for one in lanes if self._leaves(one, shard, coming)]
            for start in range(0, len(leaving), LANES):
                yield leaving[start : start + LANES]

    def _leaves(self, lane: str, shard: str, coming: Table) -> bool:
        """Whether a lane must leave its shard; a former shard may still have claims of it."""
        before = coming.former().shard_of(self._queue, lane)
        return before == shard and coming.shard_of(self._queue, lane) != shard

    async def _known_lanes(self, shard: str) -> AsyncIterator[Iterable[str]]:
        """Lanes with live jobs, with settings of their own, or with claims in a window."""
        survey = Survey(self._engine, shard)
        for column in ("lanes", "tenants"):
            async for lanes in survey.ids(column, is_hash=True):
                yield set(lanes)
        async for names in survey.names("claims:*"):
            yield {name[name.index("@") :] for name in names}

    async def _hand_over(self, shard: str, lanes: Sequence[str], coming: Table) -> None:
        stamp, snapshots = await self._transfer.freeze_out(shard, coming.epoch, lanes)
        by_shard: dict[str, dict[str, bytes]] = defaultdict(dict)
        for lane, packed in zip(lanes, snapshots, strict=True):
            by_shard[coming.shard_of(self._queue, lane)][lane] = packed
        for to, expected in by_shard.items():
            await self._transfer.freeze_in(to, coming.epoch, stamp, expected)
        await self._lock.keep()

    # -- moving ---------------------------------------------------------------------------------

    async def _move(self, table: Table) -> None:
        shards = [shard.name for shard in table.former().all(self._queue)]
        transfers = [
            _Transfer(self._engine, self._queue, shard, table, self._lock) for shard in shards
        ]
        for transfer in transfers:
            await transfer.run()
        while not await self._is_over(shards, table):
            await asyncio.sleep(_PAUSE_S)
            for transfer in transfers:
                await transfer.run_late()
        await self._thaw_rest(table)
        kept = {shard.name for shard in table.all(self._queue)}
        given_up = [shard for shard in shards if shard not in kept]
        for shard in given_up:
            await self._transfer.count(self._queue, table.epoch, shard)
        await self._transfer.decide(self._queue, "finish", table.epoch, *given_up)
        for shard in given_up:
            await self._transfer.retire(shard, table.epoch)

    async def _thaw_rest(self, table: Table) -> None:
        """Thaw the remaining lanes: no job is in transit, even if an old shard lost its data. Also
        those that an earlier change, which was lost, had announced to a shard."""
        for shard in table.all(self._queue):
            await self._transfer.steady(shard.name, partial(self._thaw_at, shard.name, table))

    async def _thaw_at(self, shard: str, table: Table) -> None:
        async for lanes in Survey(self._engine, shard).texts("moves"):
            come: dict[int, list[str]] = defaultdict(list)
            for lane, why in lanes.items():
                if why.startswith("in ") and int(why[3:]) <= table.epoch:
                    come[int(why[3:])].append(lane)
            for epoch, some in come.items():
                await self._transfer.thaw(shard, "in", epoch, some)

    async def _is_over(self, shards: Sequence[str], table: Table) -> bool:
        """Thaw lanes that have arrived, forget those that have left; whether all have."""
        await self._lock.keep()
        waits = False
        for shard in shards:
            waits |= await self._transfer.steady(shard, partial(self._settle_all, shard, table))
        return not waits

    async def _settle_all(self, shard: str, table: Table) -> bool:
        """Whether some lane that leaves a shard is still there."""
        waits = False
        async for lanes in Survey(self._engine, shard).texts("moves"):
            out = [lane for lane, why in lanes.items() if why == f"out {table.epoch}"]
            for start in range(0, len(out), LANES):
                waits |= await self._settle(shard, out[start : start + LANES], table)
        return waits

    async def _settle(self, shard: str, lanes: Sequence[str], table: Table) -> bool:
        """Whether some of the lanes that leave a shard are still there."""
        still = set(await self._transfer.thaw(shard, "look", table.epoch, lanes))
        come: dict[tuple[str, str], list[str]] = defaultdict(list)
        for lane in lanes:
            why = "early" if lane in still else "in"
            come[table.shard_of(self._queue, lane), why].append(lane)
        for (to, why), some in come.items():
            await self._transfer.thaw(to, why, table.epoch, some)
        # last, because a lane that is forgotten here is not checked again
        return bool(await self._transfer.thaw(shard, "out", table.epoch, lanes))


class _Transfer:
    """Moves the jobs that must leave one shard."""

    def __init__(
        self,
        engine: Engine,
        queue: str,
        shard: str,
        table: Table,
        lock: Lock,
    ) -> None:
        self._transfer = TransferCalls(engine)
        self._survey = Survey(engine, shard)
        self._lock = lock
        self._queue = queue
        self._shard = shard
        self._table = table
        self._arrived: dict[str, int] = defaultdict(int)
        """Shard → the number of the last batch that has arrived there."""

    async def run(self) -> None:
        """Move every job of a leaving lane; the server records running ones in `late`."""
        await self._transfer.steady(self._shard, self._run)

    async def _run(self) -> None:
        waiting: dict[str, list[str]] = defaultdict(list)
        async for jobs in self._transfer.scan(self._shard, self._table.change.lane):
            self._sort(jobs, waiting)
            await self._lock.keep()
            for to in [to for to, ids in waiting.items() if len(ids) >= JOBS]:
                await self._carry(to, waiting.pop(to))
        for shard in self._table.all(self._queue):
            await self._carry(shard.name, waiting.pop(shard.name, []))

    async def run_late(self) -> None:
        """Move jobs that ran and have ended, and batches that other programs left in transit."""
        waiting: dict[str, list[str]] = defaultdict(list)
        async for late in self._survey.texts("late"):
            self._sort(late.items(), waiting)
        for to in await self._transfer.under_way(self._shard):
            waiting[to] += []  # another program took them out, and may have died since
        for to, ids in waiting.items():
            await self._carry(to, ids)

    def _sort(self, jobs: Iterable[tuple[str, str]], waiting: dict[str, list[str]]) -> None:
        for job, lane in jobs:
            to = self._table.shard_of(self._queue, lane)
            if to != self._shard:
                waiting[to].append(job)

    async def _carry(self, to: str, ids: Sequence[str]) -> None:
        """Send batches until all ids are checked and none is in transit."""
        if to == self._shard:
            return
        start = 0
        while True:
            part = ids[start : start + JOBS]
            arrived = self._arrived[to]
            batch = await self._transfer.take_out(
                self._shard, to, arrived, part, epoch=self._table.epoch
            )
            start += batch.looked
            if batch.number:
                await self._transfer.take_in(to, self._shard, batch)
                self._arrived[to] = batch.number
            elif start >= len(ids):
                return


def _part(most: int, table: Table, shard: str) -> int:
    return part(most, table.shards, shard_index(shard) or 0)
