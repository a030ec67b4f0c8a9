"""What a shard has counted and measured, by minute, by hour and ever."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from faena.engine.calls.together import ask_each, command_each
from faena.engine.engine import Engine
from faena.engine.scripts import pairs, texts
from faena.values.packed import unpack

AT_ONCE: Final = 60
"""Minutes, or hours, in one call."""

_TASK: Final = "task:"
_ADDED: Final = "="
"""Before the names of what is added to the hour already, as minutes.lua writes them."""

Unit = Literal["minute", "hour"]


class TaskFacts(NamedTuple):
    """What workers have measured of the jobs of one task."""

    started: int
    completed: int
    retried: int
    dead: int
    waits: list[int]
    """The sum, then bucket, number, bucket, number …"""
    runs: list[int]
    totals: list[int]


class Counted(NamedTuple):
    """What happened in one minute or hour."""

    at: int
    """Minutes, or hours, since 1970."""
    counters: Mapping[str, int]
    tasks: Mapping[str, TaskFacts]


class StatisticsCalls:
    """The script calls that read statistics."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def now(self, shard: str) -> tuple[int, int | None]:
        """The server's instant, and the minute that is counted now; None if none ever was."""
        now, counted, *_ = await self._ask(shard, "minute", 1, 0)
        return now, int(counted) if counted else None

    async def totals(self, shard: str) -> dict[str, int]:
        """How often each thing ever happened."""
        _, _, _, flat = await self._ask(shard, "total", 0, 0)
        return {name: int(number) for name, number in pairs(flat).items()}

    async def counted(self, shard: str, unit: Unit, first: int, last: int) -> list[Counted]:
        """Those minutes or hours of a range, its last one included, in which anything happened.

        A minute that was counted on after it was over, since the clock was put back, is there
        twice: each has a part of it.
        """
        starts = range(first, last + 1, AT_ONCE)
        parts = await asyncio.gather(
            *(self._ask(shard, unit, one, min(last, one + AT_ONCE - 1)) for one in starts)
        )
        return [counted for part in parts for counted in _rows(part)]

    async def _ask(self, shard: str, unit: str, first: int, last: int) -> list[Any]:
        return await self._engine.ask("statistics", shard, unit=unit, first=first, last=last)

    async def retired(self, queue: str) -> list[str]:
        """Shards retired within the last thirty days."""
        return texts(await self._engine.command("ZRANGE", queue, "retired_stats", 0, -1))


async def minutes_of_each(
    engine: Engine, shards: Sequence[str], first: int, last: int
) -> tuple[int, list[list[Counted]]]:
    """The latest of the servers' instants, and the same minutes of each shard; at most an hour."""
    named: dict[str, Any] = {"unit": "minute", "first": first, "last": last}
    replies = await ask_each(engine, "statistics", shards, **named)
    return max((reply[0] for reply in replies), default=0), [_rows(reply) for reply in replies]


async def retired_of_each(engine: Engine, queues: Sequence[str]) -> list[list[str]]:
    """Shards of each queue retired within the last thirty days."""
    replies = await command_each(engine, "ZRANGE", queues, "retired_stats", 0, -1)
    return [*map(texts, replies)]


def _rows(reply: Sequence[Any]) -> list[Counted]:
    rows = [(reply[i], pairs(reply[i + 1])) for i in range(2, len(reply), 2)]
    return [_counted(at, fields) for at, row in rows for fields in _split(row) if fields]


def _split(row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    added = {name[1:]: value for name, value in row.items() if name.startswith(_ADDED)}
    return added, {name: value for name, value in row.items() if not name.startswith(_ADDED)}


def _counted(at: int, fields: Mapping[str, Any]) -> Counted:
    counters: dict[str, int] = {}
    tasks: dict[str, TaskFacts] = {}
    for name, value in fields.items():
        if name.startswith(_TASK):
            if facts := _facts(value):
                tasks[name.removeprefix(_TASK)] = facts
        else:
            counters[name] = _number(value)
    return Counted(at, counters, tasks)


def _number(text: bytes) -> int:
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        return 0


def _facts(packed: bytes) -> TaskFacts | None:
    """None if it cannot be read."""
    try:
        return msgspec.convert(unpack(packed), TaskFacts, strict=False)
    except (msgspec.MsgspecError, ValueError):
        return None
