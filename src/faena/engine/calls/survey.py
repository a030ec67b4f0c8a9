"""Reads a whole queue for an audit, in bounded pages, while it is in use.

The facts of one job, of one key or of the totals are from one instant; two pages are not. Jobs that
are added, removed or moved between two pages may be missed or seen twice.
"""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import msgspec

from faena.engine.engine import Engine
from faena.engine.keys import Keys
from faena.engine.scripts import pairs, text_pairs, texts

_PAGE = 500


class JobFacts(NamedTuple):
    """All that the keys of a queue contain about one id."""

    states: list[str]
    mark: dict[str, Any]
    leader: str
    """The live job that it waits for, if it is blocked."""
    found_in: list[str]
    """Those of specs, leases, marks, results, waiters, desk, info, lane, tail, head, due."""
    lane: str
    chain: str
    status: str
    """The status at the dead-letter desk; empty if it has no record there."""
    indexes: list[str]
    """Keys of the desk that contain it."""
    missing: list[str]
    """Keys of the desk that should contain it and do not."""


class LaneFacts(NamedTuple):
    """One lane: its jobs, and whether it may be served."""

    live: int
    running: int
    ready: int
    sets: list[str]
    """Those of ring and parked that contain it."""


class FlowFacts(NamedTuple):
    """One flow: whether it exists, and the sets that contain it."""

    is_there: bool
    has_ttl: bool
    sets: list[str]
    """Those of flows and flows_done that contain it."""


class KeyFacts(NamedTuple):
    """One key: its type, its content, and whether it expires."""

    type: str
    has_ttl: bool
    text: str
    """The content of a string; the size of a sorted set."""


class Totals(NamedTuple):
    """The sizes of all columns, and the counters in `clock`."""

    sizes: dict[str, int]
    clock: dict[str, int]
    windows: dict[str, int]
    """The sum of claims in the list of each limit's window; expired lists are absent."""


class Survey:
    """Reads the pages of one queue."""

    def __init__(self, engine: Engine, queue: str) -> None:
        self._engine = engine
        self._wire = engine.wire
        self._patience_s = engine.patience_s
        self._queue = queue
        self._key = Keys(engine.namespace, queue)

    async def names(self, pattern: str = "*") -> AsyncIterator[list[str]]:
        """The queue's keys, without their prefix."""
        skip = len(self._key.prefix)
        async for page in self._scan("SCAN", "MATCH", self._key(pattern)):
            yield [name[skip:] for name in texts(page)]

    async def ids(self, column: str, *, is_hash: bool) -> AsyncIterator[list[str]]:
        """The ids in a hash or a sorted set."""
        command = "HSCAN" if is_hash else "ZSCAN"
        async for page in self._scan(command, name=self._key(column)):
            yield texts(page[::2])

    async def numbers(self, column: str) -> AsyncIterator[dict[str, int]]:
        """The fields of a hash of numbers."""
        async for page in self._scan("HSCAN", name=self._key(column)):
            yield {name: int(float(value)) for name, value in pairs(page).items()}

    async def texts(self, column: str) -> AsyncIterator[dict[str, str]]:
        """The fields of a hash of texts."""
        async for page in self._scan("HSCAN", name=self._key(column)):
            yield text_pairs(page)

    async def packed(self, column: str) -> AsyncIterator[dict[str, bytes]]:
        """The fields of a hash of packed records."""
        async for page in self._scan("HSCAN", name=self._key(column)):
            yield pairs(page)

    async def doubles(self, column: str, number: int) -> AsyncIterator[dict[str, Sequence[float]]]:
        """The fields of a hash whose values are `number` doubles each."""
        shape = struct.Struct(f">{number}d")
        async for page in self._scan("HSCAN", name=self._key(column)):
            fields = pairs(page).items()
            yield {name: shape.unpack(of) for name, of in fields if len(of) == shape.size}

    async def jobs(self, ids: Sequence[str]) -> dict[str, JobFacts]:
        """The facts of each id."""
        rows = await self._read("jobs", ids)
        return {job: _job_facts(row) for job, row in zip(ids, rows, strict=True)}

    async def lanes(self, names: Sequence[str]) -> dict[str, LaneFacts]:
        """The facts of each lane."""
        rows = await self._read("lanes", names)
        return {
            lane: LaneFacts(live, running, ready, texts(sets))
            for lane, (live, running, ready, sets) in zip(names, rows, strict=True)
        }

    async def flows(self, names: Sequence[str]) -> dict[str, FlowFacts]:
        """The facts of each flow."""
        rows = await self._read("flows", names)
        return {
            flow: FlowFacts(ttl_ms > -2, ttl_ms >= 0, texts(sets))
            for flow, (ttl_ms, sets) in zip(names, rows, strict=True)
        }

    async def schedules(self, names: Sequence[str]) -> dict[str, bool]:
        """For each schedule, whether it has a record; also True if it is no longer due."""
        reply = await self._engine.ask("due", self._queue, *names, verb="read")
        rows = zip(names, reply[1::2], reply[2::2], strict=True)
        return {name: bool(record) or not due for name, record, due in rows}

    async def keys(self, names: Sequence[str]) -> dict[str, KeyFacts]:
        """The type and content of each key."""
        rows = await self._read("keys", names)
        return {
            name: KeyFacts(kind.decode(), ttl_ms >= 0, text.decode(errors="replace"))
            for name, (kind, ttl_ms, text) in zip(names, rows, strict=True)
        }

    async def totals(self) -> Totals:
        """Sizes and counters at one instant."""
        sizes, clock, windows = await self._read("totals", ())
        numbers = {name: value for name, value in pairs(clock).items() if name != "digest"}
        counters = {name: int(float(value)) for name, value in numbers.items()}
        return Totals(pairs(sizes), counters, pairs(windows))

    async def _read(self, what: str, names: Sequence[str]) -> list[Any]:
        return list(await self._engine.ask("audit", self._queue, *names, what=what))

    async def _scan(
        self, command: str, *options: str, name: str | None = None
    ) -> AsyncIterator[list[bytes]]:
        cursor, where = "0", (name,) if name else ()
        while True:
            answer = await self._wire.call(
                *(command, *where, cursor, *options, "COUNT", _PAGE),
                key=self._key.prefix,
                patience_s=self._patience_s,
            )
            cursor = answer[0].decode()
            for start in range(0, len(answer[1]), 2 * _PAGE):
                yield answer[1][start : start + 2 * _PAGE]
            if cursor == "0":
                return


def _job_facts(row: Sequence[Any]) -> JobFacts:
    states, packed, leader, found_in, lane, chain, status, indexes, missing = row
    mark: dict[str, Any] = msgspec.msgpack.decode(packed) if packed else {}
    where = leader.decode(), texts(found_in), lane.decode(), chain.decode()
    desk = status.decode(), texts(indexes), texts(missing)
    return JobFacts(texts(states), mark, *where, *desk)
