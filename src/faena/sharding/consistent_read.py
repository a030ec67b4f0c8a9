"""Reads a queue over all of its shards while tenants move between them, so that no job is missed.

Jobs move in one direction at a time: from some shards, through their outboxes, to others. A reader
that reads the shards in this order, and each outbox right after its shard, sees each job at least
once. A job that is seen twice has the same tenant and id. This holds for one epoch: if the epoch
has changed meanwhile, the reader starts again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from faena.engine import Engine
from faena.engine.calls.deadletter import Position
from faena.engine.envelope import facts_in
from faena.engine.scripts import Look, read_look
from faena.sharding.router import Router, look_at_each
from faena.sharding.routing_table import MOVING, Table

_TRIES: Final = 50
"""The most reads of one page; each further one follows a change of the shards."""

T = TypeVar("T")


class Sight(NamedTuple):
    """The shards of a queue; those that jobs leave come before those that they move to."""

    shards: tuple[str, ...]
    epoch: int
    is_moving: bool


class Travelling(NamedTuple):
    """A job that has left a shard, and may have arrived at another."""

    position: Position
    state: str
    record: bytes
    """The record of the dead-letter desk; empty for a job that is not dead."""
    look: Look | None


class Seen(NamedTuple):
    """A job that was seen in a shard, or in its outbox."""

    position: Position
    shard: str
    is_travelling: bool = False


async def in_sight(router: Router) -> Sight:
    """Where the jobs of a queue are now."""
    return _sight(router.queue, await router.look())


async def _in_sight_each(routers: Sequence[Router]) -> list[Sight]:
    tables = await look_at_each(routers)
    return [_sight(router.queue, table) for router, table in zip(routers, tables, strict=True)]


def _sight(queue: str, table: Table) -> Sight:
    return Sight(_in_order(queue, table), table.epoch, table.phase == MOVING)


def _in_order(queue: str, table: Table) -> tuple[str, ...]:
    now = [shard.name for shard in table.all(queue)]
    before = [shard.name for shard in table.former().all(queue)]
    left = [name for name in before if name not in now]
    new = [name for name in now if name not in before]
    return (*left, *(name for name in now if name in before), *new)


async def read_steadily(shards: Sequence[Router], read: Callable[[list[Sight]], Awaitable[T]]) -> T:
    """The answer of `read`, repeated until no shard has changed during it.

    Shards do not refuse reads, so the epochs are compared here. Operations that a shard may refuse
    use `Router.on_current_shards`.
    """
    sights = await _in_sight_each(shards)
    for _ in range(_TRIES - 1):
        answer = await read(sights)
        again = await _in_sight_each(shards)
        if [one.epoch for one in again] == [one.epoch for one in sights]:
            return answer
        sights = again
    return await read(sights)


def is_behind(position: Position, after: Position, *, is_reverse: bool) -> bool:
    """Whether a position comes after another, which may be the start."""
    if not after.id:
        return True
    return position.key() < after.key() if is_reverse else position.key() > after.key()


async def travelling(engine: Engine, shard: str, ids: Sequence[str] = ()) -> list[Travelling]:
    """The jobs in transit from a shard, with records of those whose ids are given."""
    rows = await engine.ask("transit", shard, *ids)
    return [
        Travelling(Position(score.decode(), job.decode()), state.decode(), record, read_look(look))
        for job, state, score, record, look in rows
    ]


async def look_at(
    engine: Engine, sight: Sight, seen: Sequence[Seen], state: str
) -> list[Look | None]:
    """Read jobs that were seen; None for one that has changed its state meanwhile."""
    looks: dict[Seen, Look] = {}
    for shard, some in _by_shard(one for one in seen if not one.is_travelling).items():
        found = await engine.look(shard, [one.position.id for one in some])
        looks |= {
            one: look
            for one, look in zip(some, found, strict=True)
            if look is not None and look.state == state
        }
    missing = [one for one in seen if one not in looks]
    if missing and sight.is_moving:
        looks |= await _look_everywhere(engine, sight, missing, state)
    return [looks.get(one) for one in seen]


async def _look_everywhere(
    engine: Engine, sight: Sight, missing: Sequence[Seen], state: str
) -> dict[Seen, Look]:
    """The same for jobs that have moved; the current shard is preferred to the former one."""
    ids = list(dict.fromkeys(one.position.id for one in missing))
    known: dict[tuple[str, str | None], Look] = {}
    for shard in sight.shards:
        for job, look in zip(ids, await engine.look(shard, ids), strict=True):
            if look:
                known[job, facts_in(look.spec).get("lane")] = look
        for one in await travelling(engine, shard, ids):
            if one.look:
                known.setdefault((one.position.id, facts_in(one.look.spec).get("lane")), one.look)
    return {
        one: look
        for one in missing
        for (job, _), look in known.items()
        if job == one.position.id and _is_at(look, state, one.position)
    }


def _by_shard(seen: Iterable[Seen]) -> dict[str, list[Seen]]:
    by_shard: dict[str, list[Seen]] = {}
    for one in seen:
        by_shard.setdefault(one.shard, []).append(one)
    return by_shard


def _is_at(look: Look, state: str, position: Position) -> bool:
    """Whether it is that job: another tenant may have one with the same id."""
    return look.state == state and float(look.score) == float(position.score)
