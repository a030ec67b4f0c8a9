"""Routes to the shards of queues: knows each queue's table, and has it changed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from faena.engine import Engine
from faena.engine.settings import UNSERVED, declaration
from faena.engine.wire.patience import Shared
from faena.errors import ConfigError, FaenaError, InvalidTransition, ShardsChanged, StoreUnavailable
from faena.options import QueueOptions
from faena.sharding.quota import check_divisible
from faena.sharding.relocation import CODE, Relocation, standing
from faena.sharding.table import ANNOUNCED, Change, Shard, Table

_POLL_S: Final = 0.02
_IMPATIENT_S: Final = 0.5
"""After which whoever waits for a change to be published carries on with it."""
_LONGEST_S: Final = 30.0
"""For which shards may change again and again before somebody is told so."""
_FRESH_S: Final = 1.0
_LOOKS: Final = 50
"""At a job that may be on its way, before it is given up."""

T = TypeVar("T")

_log = logging.getLogger("faena.sharding")


class Router:
    """Knows which shard each lane of one queue is in."""

    def __init__(self, engine: Engine, queue: str, options: QueueOptions | None) -> None:
        """Without options it is another program's queue: how it is spread is that one's affair."""
        self._engine = engine
        self._options = options
        self.queue = queue
        self.is_fixed = options is not None and not options.is_fair
        """Whether it can have none but the first, by this code: lanes are what lives in shards."""
        self.relocation = Relocation(engine, queue)
        self.known: Table | None = self._expected()
        """The table as it was last seen, or is expected to be: a shard knows better and says so."""
        self.route: Table | None = self.known
        """The same for who enqueues; None while the queue has yet to grow to what code asks for."""
        self._has_asked = False
        """Whether this program has asked for the shards that its code wants: once is enough."""
        self._seen_at = 0.0
        self._looking = Shared(self._look)
        self._growing = Shared(self._look_and_grow)
        self._working: asyncio.Task[None] | None = None
        self._is_closed = False

    async def table(self) -> Table:
        """The table, which may have changed since it was seen."""
        return self.known or await self.look()

    async def look(self) -> Table:
        """The table as it is now; whoever only looks begins no change."""
        if self.is_fixed:
            return Table()
        return await self._looking.outcome(self._engine.patience_s)

    async def grown(self) -> Table:
        """The table for who enqueues or serves: the first one has the queue grow to what code asks
        for.
        """
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
        """How many shards code asks for, where there are fewer; 0 where there are enough."""
        wanted = 1 if self._options is None else self._options.shards
        return wanted if table.shards < wanted else 0

    async def _grow(self, table: Table, shards: int) -> None:
        """Have as many shards as code asks for, unless operators have set a number, or bounds too
        small.

        Before that the first shard has its settings, which new ones are given.
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
        """Know how each shard is declared, should its settings be gone one day."""
        is_new = self.known is None or self.known.epoch != table.epoch
        if is_new and self._options is not None:
            settings = {**declaration(self._options), **UNSERVED}
            for shard in table.all(self.queue):
                if not table.is_single or shard.name != self.queue:
                    self._engine.know(shard.name, {**settings, **standing(shard.name, table)})
        self.known, self._seen_at = table, time.monotonic()
        self.route = table if self._has_asked or not self._lacks(table) else None

    async def refused(self) -> Table:
        """Look after a shard has said that others are there, whatever this program's code says:
        a newer version of it may run beside this one.
        """
        self.is_fixed = False
        return await self.look()

    async def fresh(self) -> Table:
        """The table, seen a moment ago."""
        if self.is_fixed or time.monotonic() - self._seen_at < _FRESH_S:
            return await self.table()
        return await self.look()

    async def on_current_shards(
        self, do: Callable[[Table], Awaitable[T]], *, settle_s: float | None = None
    ) -> T:
        """Do something where the table says; again when a shard refuses because that has changed.

        Everything that a shard may refuse with ShardsChanged is done here. That is raised only when
        shards refuse one and the same epoch for half a minute. With `settle_s`, lanes that move are
        waited for first, for so long; a table that still has a phase then is for `do` to refuse.
        Reads are never refused: see `faena.sharding.consistent_read`.
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
            if (await self.refused()).epoch == epoch:  # it waits until the new shards are known
                await asyncio.sleep(_POLL_S)

    async def names(self) -> list[str]:
        """Every shard that may have jobs, the first one first."""
        return _names(self.queue, await self.look())

    async def serving(self) -> list[Shard]:
        """The shards a worker serves; a change that is under way is carried on with."""
        table = await (self.grown() if self.route is None else self.look())
        if table.phase:
            self.carry_on()
        return _all_shards(self.queue, table)

    async def first(
        self, ask: Callable[[str], Awaitable[T]], *, is_found: Callable[[T], bool]
    ) -> T:
        """The answer of the first shard that knows; else the last one's.

        A job that travels is at no shard for a moment: while lanes move it is looked for again.
        """
        looks = 0
        while True:
            answer = await self._ask_each(ask, is_found)
            looks += 1
            if is_found(answer) or looks == _LOOKS:
                return answer
            before = self.known
            table = await self.look()
            if table == before and not table.phase:
                return answer
            await asyncio.sleep(_POLL_S)

    async def _ask_each(
        self, ask: Callable[[str], Awaitable[T]], is_found: Callable[[T], bool]
    ) -> T:
        first, *others = _names(self.queue, await self.table())
        answer = await ask(first)
        while others and not is_found(answer):
            answer = await ask(others.pop(0))
        return answer

    def forget(self) -> None:
        """Know nothing any more, because the queue is gone."""
        self.known = self.route = self._expected()
        self._has_asked = False

    def _expected(self) -> Table | None:
        """Few queues ever move: no look before the first shard says so, or code asks for it."""
        is_likely = self._options is None or self._options.is_laned
        return None if is_likely else Table()

    # -- changing -------------------------------------------------------------------------------

    async def change(self, change: Change, by: str, wait_s: float = _LONGEST_S) -> None:
        """Begin a change and see that it is published; `settled` waits for the rest.

        There is one at a time: raises InvalidTransition, with nothing begun, when another has not
        ended in time.
        """
        until = time.monotonic() + wait_s
        while (table := await self.look()).with_change(change) != table:
            if table.phase:
                if (await self.settled(until - time.monotonic())).phase:
                    raise self._busy(table.change)
            elif await self.relocation.begin(change, table, by):
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
        """The table when no change is under way, or as it is after so long."""
        until = time.monotonic() + timeout_s
        while (table := await self.look()).phase:
            self.carry_on()
            if time.monotonic() >= until:
                break
            await asyncio.sleep(_POLL_S * 5)
        return table

    async def _published(self, table: Table) -> Table:
        """Wait until an announced change is published, or see to it oneself."""
        begun = time.monotonic()
        while table.phase == ANNOUNCED:
            if await self.relocation.work(until_published=True):
                table = await self.relocation.table()
                continue
            if time.monotonic() - begun > _LONGEST_S:
                raise StoreUnavailable(
                    f"the shards of queue {self.queue} are being changed, and the change does not "
                    f"end: see `faena shards {self.queue}`",
                    op="enqueue",
                )
            await asyncio.sleep(_POLL_S)
            table = await self.relocation.table()
        return table

    def carry_on(self) -> None:
        """Work on the change in the background, if this program does not already.

        Not once it is closed: whoever waited for a look may be told of it only then, and nobody
        would end what it starts.
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
        """Leave what is under way to others."""
        self._is_closed = True
        running = (self._working, self._looking.task, self._growing.task)
        tasks = [task for task in running if task is not None]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError, FaenaError):
                await task


def _all_shards(queue: str, table: Table) -> list[Shard]:
    """While lanes move, the shards they come from as well."""
    shards = table.all(queue)
    return shards + [shard for shard in table.former().all(queue) if shard not in shards]


def _names(queue: str, table: Table) -> list[str]:
    return [shard.name for shard in _all_shards(queue, table)]


Queues = Mapping[str, QueueOptions | None]
"""The queues of a program with their options; None for those that another declares."""


class Routers:
    """The routers of all queues of a program."""

    def __init__(self, engine: Engine, queues: Queues) -> None:
        self._engine = engine
        self._queues = queues
        self._routers: dict[str, Router] = {}

    def of(self, queue: str) -> Router:
        """The router of a queue; one that code does not declare has its first shard only."""
        router = self._routers.get(queue)
        if router is None:
            options = self._queues.get(queue, QueueOptions(fair=False))
            router = self._routers[queue] = Router(self._engine, queue, options)
        return router

    async def close(self) -> None:
        """Stop working on changes."""
        for router in list(self._routers.values()):  # callers that end may still ask for others
            await router.close()
