"""Carries a change of homes through: who may live where, and the moving of lanes.

    begin      the change is written down at the first home: nobody loses sight of it
    announce   new homes get the queue's settings and holds; every home learns the coming epoch, and
               refuses whoever enqueues under an older one; lanes that will leave are no longer
               served, and are expected where they go
    publish    producers read the new table; what they send waits behind what has yet to come
    move       jobs travel in numbered batches: taken out into an outbox, taken in once, struck off;
               jobs that run are left to end first
    admit      a lane is served at its new home: in an order, or with a maximum of its running jobs,
               when nothing of it is left at the old one, else as soon as nothing of it waits there
    finish     the change is struck off; a home that nobody lives in any more is given up, and only
               its epoch stays there for a day, to refuse whoever has not heard of it

Every step may be done twice and by several at once; who dies leaves the rest to whoever looks next.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from faena.engine import Engine
from faena.engine.calls.survey import Survey
from faena.engine.calls.transfer import JOBS, LANES, Claims, Moving
from faena.engine.scripts import pairs
from faena.errors import HomesChanged
from faena.sharding.quota import beyond, part, share_out
from faena.sharding.table import ANNOUNCED, MOVING, Table, read_table, shard_number

_PAUSE_S: Final = 0.2
"""Between two looks at jobs that must end before they can move."""

_SAY_EVERY_S: Final = 2.0

_NOT_COPIED: Final = frozenset({"edited", "epoch", "shards", "shard"})


class Steward:
    """Looks after the homes of one queue."""

    def __init__(self, engine: Engine, queue: str) -> None:
        self._engine = engine
        self._moving = Moving(engine)
        self._queue = queue
        self._name = secrets.token_hex(8)
        self._locked_at = 0.0
        self._at_work = asyncio.Lock()

    async def table(self) -> Table:
        """The table as it is on the server."""
        return read_table(await self._moving.table(self._queue))

    async def begin(self, change: str, table: Table, by: str) -> bool:
        """Write a change down; False when the table is another by now."""
        return await self._moving.decide(self._queue, "begin", table.epoch, change, by)

    async def restore(self, table: Table) -> None:
        """Tell a server that has lost its data where the queue lived."""
        lanes = sorted(table.own)
        await self._moving.decide(self._queue, "restore", table.epoch, str(table.shards), *lanes)

    async def work(self, *, until_published: bool = False) -> bool:
        """Carry on with the change that is under way; False while another program does."""
        async with self._at_work:
            return await self._work(until_published=until_published)

    async def _work(self, *, until_published: bool) -> bool:
        if not await self._moving.lock(self._queue, self._name):
            return False
        self._locked_at = time.monotonic()
        try:
            table = await self.table()
            if table.phase == ANNOUNCED:
                await self._announce(table)
                table = await self.table()
            if table.phase == MOVING and not until_published:
                await self._move(table)
        except HomesChanged:
            return False
        finally:
            await self._moving.unlock(self._queue, self._name)
        return True

    # -- announcing -----------------------------------------------------------------------------

    async def _announce(self, table: Table) -> None:
        coming = table.following()
        before = [home.name for home in table.homes(self._queue)]
        after = [home.name for home in coming.homes(self._queue)]
        homes = [*before, *(name for name in after if name not in before)]
        # A home that is sealed refuses preparations: somebody has made them all, and may have died.
        with contextlib.suppress(HomesChanged):
            await self._prepare(table, coming, before, homes)
        for name in homes:
            await self._moving.seal(name, coming.epoch)
        await self._moving.decide(self._queue, "publish", table.epoch)

    async def _prepare(
        self, table: Table, coming: Table, before: Sequence[str], homes: Sequence[str]
    ) -> None:
        """Have every home know what will be, and the lanes that will leave be expected."""
        for name in homes[len(before) :]:
            await self._furnish(name)
        for name in before:
            await self._moving.steady(name, partial(self._hand_over_quiet, name, coming))
        if coming.shards < table.shards:  # nobody is given more before it counts what was claimed
            await self._burden(table, coming)
        for name in reversed(homes):
            await self._moving.place(name, standing(name, coming))
        if coming.shards > table.shards:  # nor is it counted before the others are given less
            await self._burden(table, coming)
        for name in before:
            await self._moving.steady(name, partial(self._hand_over_all, name, coming))

    async def _furnish(self, home: str) -> None:
        """Give a new home what the first one has: settings, edits, holds."""
        now, _, holds, conf, *_ = await self._engine.overview(self._queue)
        settings = {name: value.decode() for name, value in pairs(conf).items()}
        edited = settings.get("edited", "").split()
        kept = {name: text for name, text in settings.items() if name not in _NOT_COPIED}
        await self._moving.place(home, kept)
        if edited:
            await self._engine.configure(home, {name: kept.get(name, "") for name in edited})
        for reason, text in pairs(holds).items():
            until, by, _ = text.decode().split(" ")
            lasting = int(until) - now if int(until) else None
            if lasting is None or lasting > 0:
                await self._engine.hold(home, reason, lasting, by)

    async def _burden(self, table: Table, coming: Table) -> None:
        """Let homes with a larger part of the queue's limits count what others have used of it."""
        conf = pairs((await self._engine.overview(self._queue))[3])
        for limit in conf.get("limits", b"").decode().split():
            most, per = map(int, limit.split("/"))
            before = {
                home.name: _part(most, table, home.name) for home in table.shared(self._queue)
            }
            after = {
                home.name: _part(most, coming, home.name) for home in coming.shared(self._queue)
            }
            owed: list[Claims] = []
            for name in before:
                owed += beyond(await self._moving.claims(name, per), after.get(name, 0))
            rooms = {name: number - before.get(name, 0) for name, number in after.items()}
            takers = {name: room for name, room in rooms.items() if room > 0}
            for name, claims in share_out(owed, takers).items():
                await self._moving.burden(name, coming.epoch, per, claims)

    async def _hand_over_quiet(self, home: str, coming: Table) -> None:
        """Lanes of finished jobs leave too: one that is run again must not be served here.

        There may be many, and producers need not wait for them: that is why they go first.
        """
        if coming.lane:
            return
        quiet: set[str] = set()
        async for jobs in self._moving.roll(home, ""):
            quiet |= {lane for _, lane in jobs if self._leaves(lane, home, coming)}
        async for live in Survey(self._engine, home).ids("lanes", is_hash=True):
            quiet -= set(live)
        lanes = sorted(quiet)
        for start in range(0, len(lanes), LANES):
            await self._hand_over(home, lanes[start : start + LANES], coming)

    async def _hand_over_all(self, home: str, coming: Table) -> None:
        async for lanes in self._leaving(home, coming):
            await self._hand_over(home, lanes, coming)

    async def _leaving(self, home: str, coming: Table) -> AsyncIterator[list[str]]:
        """The lanes that must leave a home, in parts for one call each."""
        if coming.lane:
            if home == coming.former().home_of(self._queue, coming.lane):
                yield [coming.lane]
            return
        async for lanes in self._known_lanes(home):
            leaving = [one for one in lanes if self._leaves(one, home, coming)]
            for start in range(0, len(leaving), LANES):
                yield leaving[start : start + LANES]

    def _leaves(self, lane: str, home: str, coming: Table) -> bool:
        """Whether a lane lives at a home and will not; it may have left claims where it lived."""
        before = coming.former().home_of(self._queue, lane)
        return before == home and coming.home_of(self._queue, lane) != home

    async def _known_lanes(self, home: str) -> AsyncIterator[Iterable[str]]:
        """Lanes with live jobs, with something decided for them, or with claims in a window."""
        survey = Survey(self._engine, home)
        for column in ("lanes", "tenants"):
            async for lanes in survey.ids(column, is_hash=True):
                yield set(lanes)
        async for names in survey.names("claims:*"):
            yield {name[name.index("@") :] for name in names}

    async def _hand_over(self, home: str, lanes: Sequence[str], coming: Table) -> None:
        stamp, baggage = await self._moving.depart(home, coming.epoch, lanes)
        by_home: dict[str, dict[str, bytes]] = defaultdict(dict)
        for lane, packed in zip(lanes, baggage, strict=True):
            by_home[coming.home_of(self._queue, lane)][lane] = packed
        for to, expected in by_home.items():
            await self._moving.expect(to, coming.epoch, stamp, expected)
        await self._stay()

    # -- moving ---------------------------------------------------------------------------------

    async def _move(self, table: Table) -> None:
        homes = [home.name for home in table.former().homes(self._queue)]
        removals = [_Removal(self._engine, self._queue, home, table, self._stay) for home in homes]
        for removal in removals:
            await removal.run()
        while not await self._is_over(homes, table):
            await asyncio.sleep(_PAUSE_S)
            for removal in removals:
                await removal.run_late()
        await self._admit_rest(table)
        kept = {home.name for home in table.homes(self._queue)}
        given_up = [home for home in homes if home not in kept]
        await self._moving.decide(self._queue, "finish", table.epoch, *given_up)
        for home in given_up:
            await self._moving.vacate(home, table.epoch)

    async def _admit_rest(self, table: Table) -> None:
        """Nothing is on its way any more, also where an old home has lost what it knew of it."""
        for home in table.homes(self._queue):
            await self._moving.steady(home.name, partial(self._admit_at, home.name, table))

    async def _admit_at(self, home: str, table: Table) -> None:
        async for lanes in Survey(self._engine, home).texts("moves"):
            come = [lane for lane, why in lanes.items() if why == f"in {table.epoch}"]
            for start in range(0, len(come), LANES):
                await self._moving.admit(home, "in", table.epoch, come[start : start + LANES])

    async def _is_over(self, homes: Sequence[str], table: Table) -> bool:
        """Admit what has come, strike off what has gone; whether all of it has."""
        await self._stay()
        waits = False
        for home in homes:
            waits |= await self._moving.steady(home, partial(self._settle_all, home, table))
        return not waits

    async def _settle_all(self, home: str, table: Table) -> bool:
        """Whether some lane that leaves a home is still there."""
        waits = False
        async for lanes in Survey(self._engine, home).texts("moves"):
            out = [lane for lane, why in lanes.items() if why == f"out {table.epoch}"]
            for start in range(0, len(out), LANES):
                waits |= await self._settle(home, out[start : start + LANES], table)
        return waits

    async def _settle(self, home: str, lanes: Sequence[str], table: Table) -> bool:
        """Whether some of the lanes that leave a home are still there."""
        still = set(await self._moving.admit(home, "look", table.epoch, lanes))
        come: dict[tuple[str, str], list[str]] = defaultdict(list)
        for lane in lanes:
            why = "early" if lane in still else "in"
            come[table.home_of(self._queue, lane), why].append(lane)
        for (to, why), some in come.items():
            await self._moving.admit(to, why, table.epoch, some)
        # last: a lane that is struck off here is looked for no more
        return bool(await self._moving.admit(home, "out", table.epoch, lanes))

    async def _stay(self) -> None:
        """Say now and then that somebody is at it."""
        if time.monotonic() - self._locked_at > _SAY_EVERY_S:
            self._locked_at = time.monotonic()
            await self._moving.lock(self._queue, self._name)


class _Removal:
    """Takes the jobs out of one home that must leave it."""

    def __init__(
        self,
        engine: Engine,
        queue: str,
        home: str,
        table: Table,
        stay: Callable[[], Awaitable[None]],
    ) -> None:
        self._moving = Moving(engine)
        self._survey = Survey(engine, home)
        self._stay = stay
        self._queue = queue
        self._home = home
        self._table = table
        self._arrived: dict[str, int] = defaultdict(int)
        """The last batch that each home has."""

    async def run(self) -> None:
        """Take away every job of a lane that leaves; those that run are noted by the server."""
        await self._moving.steady(self._home, self._run)

    async def _run(self) -> None:
        waiting: dict[str, list[str]] = defaultdict(list)
        async for jobs in self._moving.roll(self._home, self._table.lane):
            self._sort(jobs, waiting)
            await self._stay()
            for to in [to for to, ids in waiting.items() if len(ids) >= JOBS]:
                await self._carry(to, waiting.pop(to))
        for home in self._table.homes(self._queue):
            await self._carry(home.name, waiting.pop(home.name, []))

    async def run_late(self) -> None:
        """Take away those that ran, as far as they have ended, and what others left on its way."""
        waiting: dict[str, list[str]] = defaultdict(list)
        async for late in self._survey.texts("late"):
            self._sort(late.items(), waiting)
        for to in await self._moving.under_way(self._home):
            waiting[to] += []  # somebody took them out, and may have died since
        for to, ids in waiting.items():
            await self._carry(to, ids)

    def _sort(self, jobs: Iterable[tuple[str, str]], waiting: dict[str, list[str]]) -> None:
        for job, lane in jobs:
            to = self._table.home_of(self._queue, lane)
            if to != self._home:
                waiting[to].append(job)

    async def _carry(self, to: str, ids: Sequence[str]) -> None:
        """One batch after another, until all are looked at and none is under way."""
        if to == self._home:
            return
        start = 0
        while True:
            part = ids[start : start + JOBS]
            arrived = self._arrived[to]
            batch = await self._moving.take_out(
                self._home, to, arrived, part, epoch=self._table.epoch
            )
            start += batch.looked
            if batch.number:
                await self._moving.take_in(to, self._home, batch)
                self._arrived[to] = batch.number
            elif start >= len(ids):
                return


def _part(most: int, table: Table, home: str) -> int:
    return part(most, table.shards, shard_number(home) or 0)


def standing(home: str, table: Table) -> Mapping[str, str]:
    """What a home is told of its place among the others."""
    shard = shard_number(home)
    if shard is None or table.shards == 1:
        return {"epoch": str(table.epoch), "shards": "", "shard": ""}
    return {"epoch": str(table.epoch), "shards": str(table.shards), "shard": str(shard)}
