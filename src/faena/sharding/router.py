"""Routes jobs to the shards of queues: reads each queue's table, and starts changes of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from faena.engine import Engine
from faena.engine.calls.together import command_each
from faena.engine.scripts import text_pairs
from faena.engine.settings import UNSERVED, declaration
from faena.engine.wire.patience import Shared, unreached
from faena.errors import ConfigError, FaenaError, InvalidTransition, ShardsChanged, StoreUnavailable
from faena.options import QueueOptions
from faena.sharding.lost_change import end_lost_change
from faena.sharding.quota import check_divisible
from faena.sharding.relocation import CODE, LEASE_S, Relocation
from faena.sharding.routing_table import ANNOUNCED, Change, Shard, Table, read_table, standing

_POLL_S: Final = 0.02
_IMPATIENT_S: Final = 0.5
"""The wait before a program continues another program's change."""
_LONGEST_S: Final = 30.0
"""How long a call is retried while shards keep changing, before it fails."""
_FRESH_S: Final = 1.0
_LOOKS: Final = 50
"""How often a job that may be in transit is searched."""

T = TypeVar("T")

_log = logging.getLogger("faena.sharding")


class Router:
    """Knows which shard each lane of one queue is in."""

    def __init__(self, engine: Engine, queue: str, options: QueueOptions | None) -> None:
        """Without options, another program declares the queue and its shards."""
        self._engine = engine
        self._options = options
        self.queue = queue
        self.is_fixed = options is not None and not options.is_fair
        """Whether it can only have the first shard, because this code declares it without lanes."""
        self.relocation = Relocation(engine, queue)
        self.known: Table | None = self._expected()
        """The table as last read, or as expected; a shard refuses calls with an old epoch."""
        self.route: Table | None = self.known
        """The same for producers; None until the queue has the number of shards in code."""
        self._has_asked = False
        """Whether this program has requested the number of shards in its code, once."""
        self._seen_at = 0.0
        self._looking = Shared(self._look, self._late)
        self._growing = Shared(self._look_and_grow, self._late)
        self._awaited: Change | None = None
        """The announced change whose publication is waited for."""
        self._working: asyncio.Task[None] | None = None
        self._is_closed = False

    async def table(self) -> Table:
        """The table as last read; it may have changed since."""
        return self.known or await self.look()

    async def look(self) -> Table:
        """Read the table now, without starting a change."""
        if self.is_fixed:
            return Table()
        return await self._looking.outcome(self._engine.patience_s)

    async def look_with(self, routers: Sequence[Router]) -> list[Table]:
        """The same for many queues of this program: see `look_at_each`."""
        asked = [one.queue for one in routers if not one.is_fixed]
        replies = await command_each(self._engine, "HGETALL", asked, "shards")
        told = dict(zip(asked, (read_table(text_pairs(one)) for one in replies), strict=True))
        return [
            told[one.queue]
            if not one.is_fixed and told[one.queue] == one.known
            else await one.look()
            for one in routers
        ]

    async def grown(self) -> Table:
        """The table for producers and workers; the first call grows the queue as code asks."""
        if self.is_fixed:
            return Table()
        if self.route is not None:
            return self.route
        return await self._growing.outcome(self._engine.patience_s)

    async def _look(self) -> Table:
        known, table = self.known, await self.relocation.table()
        if known is not None and table.epoch < known.epoch and self._options is not None:
            await self.relocation.restore(known)
            table = await self.relocation.table()
        if table.phase == ANNOUNCED:
            table = await self._published(table)
        self._learn(table)
        return table

    async def _look_and_grow(self) -> Table:
        table = await self._look()
        if (shards := self._lacks(table)) and not table.phase:
            await self._grow(table, shards)
        self._has_asked = True
        return await self._look() if shards else table

    def _lacks(self, table: Table) -> int:
        """The number of shards in code, if there are fewer; 0 if there are enough."""
        wanted = 1 if self._options is None else self._options.shards
        return wanted if table.shards < wanted else 0

    async def _grow(self, table: Table, shards: int) -> None:
        """Grow to the number of shards in code, unless an operator set a number or small bounds.

        The first shard is declared before, because new ones copy its settings.
        """
        if table.is_edited:
            _log.warning(
                "queue %s keeps %d shards, set by an operator, although code asks for %d; "
                "run `faena reset %s shards` to use the number in code",
                *(self.queue, table.shards, shards, self.queue),
            )
            return
        await self._engine.declare(self.queue)
        settings = (await self._engine.overview(self.queue)).settings
        try:
            check_divisible(settings, shards)
        except ConfigError as error:
            _log.warning("queue %s keeps %d shards: %s", self.queue, table.shards, error)
            return
        if await self.relocation.begin(Change(shards=shards), table, CODE):
            self.carry_on()

    def _learn(self, table: Table) -> None:
        """Keep the declaration of each shard, in case its settings are lost."""
        is_new = self.known is None or self.known.epoch != table.epoch
        if is_new and self._options is not None:
            settings = {**declaration(self._options), **UNSERVED}
            for shard in table.all(self.queue):
                if not table.is_single or shard.name != self.queue:
                    self._engine.know(shard.name, {**settings, **standing(shard.name, table)})
        self.known, self._seen_at = table, time.monotonic()
        self.route = table if self._has_asked or not self._lacks(table) else None

    async def refused(self) -> Table:
        """Read the table after a shard refused its epoch.

        There may be other shards than in this program's code: a newer version may run as well.
        """
        self.is_fixed = False
        return await self.look()

    async def fresh(self) -> Table:
        """The table, read at most a moment ago."""
        if self.is_fixed or time.monotonic() - self._seen_at < _FRESH_S:
            return await self.table()
        return await self.look()

    async def on_current_shards(
        self, do: Callable[[Table], Awaitable[T]], *, settle_s: float | None = None
    ) -> T:
        """Call `do` with the table, and again if a shard refuses because the table has changed.

        Every operation that a shard may refuse with ShardsChanged runs here. It is raised only if
        shards refuse the same epoch for half a minute. With `settle_s`, wait that long for moving
        lanes first; if the table then still has a phase, `do` must refuse. Reads are never refused:
        see `faena.sharding.consistent_read`.
        """
        epoch, until = -1, 0.0
        while True:
            table = await (self.fresh() if settle_s is None else self.settled(settle_s))
            if table.epoch != epoch:
                epoch, until = table.epoch, time.monotonic() + _LONGEST_S
            try:
                return await do(table)
            except ShardsChanged:
                if time.monotonic() > until:
                    raise
            if (await self.refused()).epoch == epoch:  # not published yet, or never
                await end_lost_change(self._engine, self.queue, self.relocation)
                await asyncio.sleep(_POLL_S)

    async def names(self) -> list[str]:
        """Every shard that may have jobs, the first one first."""
        return _names(self.queue, await self.look())

    async def serving(self) -> list[Shard]:
        """The shards that a worker serves; also continues a running change."""
        table = await (self.grown() if self.route is None else self.look())
        if table.phase:
            self.carry_on()
        return _all_shards(self.queue, table)

    async def first(
        self,
        ask: Callable[[str], Awaitable[T]],
        *,
        is_found: Callable[[T], bool],
        lane: str | None = None,
    ) -> T:
        """The answer of the first shard that knows the job; else the last answer.

        Only the shards of `lane` are asked if it is known: another may have a job of that id too. A
        job in transit is in no shard for a moment, so the search is repeated while lanes move.
        """
        looks = 0
        while True:
            answer = await self._ask_each(ask, is_found, lane)
            looks += 1
            if is_found(answer) or looks == _LOOKS:
                return answer
            before = self.known
            table = await self.look()
            if table == before and not table.phase:
                return answer
            await asyncio.sleep(_POLL_S)

    async def _ask_each(
        self, ask: Callable[[str], Awaitable[T]], is_found: Callable[[T], bool], lane: str | None
    ) -> T:
        first, *others = _where(self.queue, await self.table(), lane)
        answer = await ask(first)
        while others and not is_found(answer):
            answer = await ask(others.pop(0))
        return answer

    def forget(self) -> None:
        """Forget the table, because the queue was removed."""
        self.known = self.route = self._expected()
        self._has_asked = False

    def _expected(self) -> Table | None:
        """The table of one shard, without a read; None if there may be more, so it must be read."""
        is_likely = self._options is None or self._options.is_laned
        return None if is_likely else Table()

    # -- changing -------------------------------------------------------------------------------

    async def change(self, change: Change, by: str, wait_s: float = _LONGEST_S) -> None:
        """Start a change and wait until it is published; `settled` waits for its end.

        Only one change runs at a time: raises InvalidTransition, with nothing started, if another
        one does not end in time.
        """
        until = time.monotonic() + wait_s
        while (table := await self.look()).with_change(change) != table:
            if table.phase:
                if (await self.settled(until - time.monotonic())).phase:
                    raise self._busy(table.change)
            elif await self.relocation.begin_with_room(change, table, by):
                await self.look()
                self.carry_on()
                return

    def _busy(self, change: Change) -> InvalidTransition:
        return InvalidTransition(
            f"another change of queue {self.queue} ({change.words}) did not end in time; nothing "
            f"was started: try again when queue.shards() or `faena shards {self.queue}` no longer "
            f"shows it, or with a longer wait",
            op="move",
        )

    async def settled(self, timeout_s: float) -> Table:
        """Wait until no change is running, for at most `timeout_s`; returns the table."""
        until = time.monotonic() + timeout_s
        while (table := await self.look()).phase:
            self.carry_on()
            if time.monotonic() >= until:
                break
            await asyncio.sleep(_POLL_S * 5)
        return table

    async def _published(self, table: Table) -> Table:
        """Wait until an announced change is published, or publish it here."""
        begun = time.monotonic()
        try:
            while table.phase == ANNOUNCED:
                self._awaited = table.change
                if await self.relocation.work(until_published=True):
                    table = await self.relocation.table()
                    continue
                if (waited_s := time.monotonic() - begun) > _LONGEST_S:
                    raise self._late(waited_s)
                await asyncio.sleep(_POLL_S)
                table = await self.relocation.table()
        finally:
            self._awaited = None
        return table

    def _late(self, waited_s: float) -> StoreUnavailable:
        """The error for a caller who has waited for the table in vain."""
        if self._awaited is None:
            return unreached(waited_s)
        return StoreUnavailable(
            f"the shards of queue {self.queue} are being changed ({self._awaited.words}), and the "
            f"change did not finish within {waited_s:.1f} s: the program that began it may have "
            f"died; the next call continues it about {LEASE_S:.0f} s after that: try again then, "
            f"and see `faena shards {self.queue}`",
            op="shards",
        )

    def carry_on(self) -> None:
        """Work on the change in the background, if this program does not already.

        Does nothing after `close`: a caller may get its table only then, and nothing would stop the
        work.
        """
        if not self._is_closed and (self._working is None or self._working.done()):
            self._working = asyncio.create_task(self._work())

    async def _work(self) -> None:
        try:
            while (await self.relocation.table()).phase:
                if not await self.relocation.work():
                    await asyncio.sleep(_IMPATIENT_S)
        except FaenaError as error:
            _log.warning("queue %s: moving between shards was interrupted: %s", self.queue, error)

    async def close(self) -> None:
        """Stop working on changes; other programs continue."""
        self._is_closed = True
        running = (self._working, self._looking.task, self._growing.task)
        tasks = [task for task in running if task is not None]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError, FaenaError):
                await task


def _all_shards(queue: str, table: Table) -> list[Shard]:
    """All shards; while lanes move, including those that they leave."""
    shards = table.all(queue)
    return shards + [shard for shard in table.former().all(queue) if shard not in shards]


def _names(queue: str, table: Table) -> list[str]:
    return [shard.name for shard in _all_shards(queue, table)]


def _where(queue: str, table: Table, lane: str | None) -> list[str]:
    """The shards that may have a job of a lane; all of them if it is not known."""
    if lane is None:
        return _names(queue, table)
    return list(dict.fromkeys(one.shard_of(queue, lane) for one in (table, table.former())))


Queues = Mapping[str, QueueOptions | None]
"""The queues of a program with their options; None: another program declares it."""


async def look_at_each(routers: Sequence[Router]) -> list[Table]:
    """The tables of many queues now, read in one round trip.

    One that is not as it was known is read again by its router, which learns it.
    """
    return [] if not routers else await routers[0].look_with(routers)


class Routers:
    """The routers of all queues of a program."""

    def __init__(self, engine: Engine, queues: Queues) -> None:
        self._engine = engine
        self._queues = queues
        self._routers: dict[str, Router] = {}

    async def names_of_each(self, queues: Sequence[str]) -> list[list[str]]:
        """Every shard that each queue may have jobs in; all tables are read in one round trip."""
        tables = await look_at_each([self.of(queue) for queue in queues])
        return [_names(queue, table) for queue, table in zip(queues, tables, strict=True)]

    def of(self, queue: str) -> Router:
        """The router of a queue; a queue that code does not declare has only its first shard."""
        router = self._routers.get(queue)
        if router is None:
            options = self._queues.get(queue, QueueOptions(fair=False))
            router = self._routers[queue] = Router(self._engine, queue, options)
        return router

    async def close(self) -> None:
        """Stop working on changes."""
        for router in list(self._routers.values()):  # a copy: callers may still add routers
            await router.close()
