"""Sends what is in the outbox to the broker, queue by queue, in the order of its rows.

    LISTEN    wakes it when a transaction commits; without it, it looks every second
    lock      one relay works at a time, for one transaction: the order of a key is kept, and one
              that is killed or frozen in its transaction is replaced
    batch     rows that are pending → calls of the broker → they are marked or deleted, in one round
              trip with the commit and the next batch

A row is pending until it is marked, whenever its transaction commits, so none is skipped. A relay
that dies between the enqueue and the mark leaves its rows pending; the next one sends them again
under the same ids. The broker knows those jobs, or for a minute that they have come and gone
(`send_once.lua`), or their settlement deletes the row first (`settlement.py`): none runs twice.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Final, NamedTuple

import msgspec
from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow

from faena.errors import FaenaError
from faena.options import Order
from faena.pg.dispatch import Dispatch, Results, Row, Taken
from faena.pg.failure import translated
from faena.pg.postgres import Connection, Postgres
from faena.pg.settlement import SWEEP_S, Settlements
from faena.producing.batcher import BATCH_BYTES

CHANNEL: Final = "faena_outbox"
_POLL_S: Final = 1.0
_BUSY_S: Final = 0.01
"""The first pause while something else has the lock; it is longer each time, as that may be another
relay. Most often it is a refill, which has it for one page."""
_LONGEST_WAIT_S: Final = 5.0
_DIRECT_AGAIN_S: Final = 60.0
_LATE_S: Final = SWEEP_S + 10.0
"""Settlements are swept by themselves; if that is so late, the relay does it before it sends."""
_TAKE: Final = sql.SQL("BEGIN; SELECT * FROM faena.take({known}, {most}, {bytes}, {frozen});")

_log = logging.getLogger("faena.pg")


class RelayTerms(NamedTuple):
    """What a relay keeps to; tests wait less."""

    batch: int = 2000
    """The most rows of one transaction."""
    frozen_s: float = 15.0
    """How long a relay may be silent inside its transaction before the server ends it."""


_TERMS: Final = RelayTerms()


class OutboxRelay:
    """The relay of one process; it works while no other does."""

    def __init__(
        self, pg: Postgres, settlements: Settlements, recipient: str, terms: RelayTerms = _TERMS
    ) -> None:
        self._pg, self._settlements, self._recipient = pg, settlements, recipient
        self._dispatch = Dispatch(pg.app, recipient)
        self._terms = terms
        self._turn = 0

    async def run(self) -> None:
        """Relay until cancelled, whatever fails."""
        wait_s = _POLL_S
        while True:
            try:
                async with self._connection() as connection:
                    wait_s = _POLL_S
                    await self._follow(connection)
            except FaenaError as error:
                _log.warning("the outbox is relayed later: %s", error)
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    # -- waking up --------------------------------------------------------------------------------

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[_Followed]:
        """One that hears of commits; if `direct_url` leads nowhere, one that does not."""
        try:
            connection = await self._listening()
        except FaenaError as error:
            if not self._pg.has_direct_url():
                raise
            _log.warning("the outbox is polled, as direct_url must be one that works: %s", error)
            with translated("relay"):
                connection = await self._pg.connect(await self._pg.url(), autocommit=True)
            until = time.monotonic() + _DIRECT_AGAIN_S
        else:
            until = None
        with translated("relay"):
            async with connection:
                yield _Followed(connection, until)

    async def _listening(self) -> Connection:
        with translated("listen"):
            connection = await self._pg.connect_past()
            try:
                await connection.execute(f"LISTEN {CHANNEL}".encode())
            except BaseException:
                await connection.close()
                raise
        return connection

    async def _follow(self, followed: _Followed) -> None:
        connection, until = followed
        busy_s = _BUSY_S
        while until is None or time.monotonic() < until:
            if await self.run_once(connection) is None:
                await asyncio.sleep(busy_s)
                busy_s = min(2 * busy_s, _POLL_S)
                continue
            busy_s, wait_s = _BUSY_S, self._dispatch.soonest_s(_POLL_S)
            if until is None:
                async with aclosing(connection.notifies(timeout=wait_s, stop_after=1)) as news:
                    _ = [one async for one in news]
            else:
                await asyncio.sleep(wait_s)

    # -- relaying ---------------------------------------------------------------------------------

    async def run_once(self, connection: Connection) -> int | None:
        """Send all that is pending; how many were sent, or None if another relay works."""
        total, before = 0, b""
        while True:
            if not before:
                await self._sweep()
            known_us, until = self._settlements.complete_until_us, self._until()
            rows = await _fetch(connection, before + self._take(connection))
            if not rows:
                await connection.execute("COMMIT")
                return None if rows is None else total
            results = await self._dispatch.send(Taken(rows, known_us, until))
            total += len(results.kept) + len(results.gone)
            before = _marks(connection, results) + b"COMMIT;"
            is_over = not (rows[0].is_more or results.is_cut)
            if is_over or self._is_late():
                await connection.execute(before)
                before = b""
            if is_over:
                return total

    def _take(self, connection: Connection) -> bytes:
        self._turn += 1
        queues = [
            (name, None if queue.options.order is not Order.NONE else [*queue.tasks])
            for name, queue in self._pg.app.queues.items()
            if not queue.is_remote and not self._dispatch.is_held(name)
        ]
        turn = self._turn % max(1, len(queues))
        known = msgspec.json.encode(queues[turn:] + queues[:turn]).decode()
        return _TAKE.format(
            known=sql.Literal(known),
            most=sql.Literal(self._terms.batch),
            bytes=sql.Literal(BATCH_BYTES),
            frozen=sql.Literal(f"{1000 * self._terms.frozen_s:.0f}ms"),
        ).as_bytes(connection)

    async def _sweep(self) -> None:
        """Never inside of the transaction: settlements wait for its locks."""
        if self._settlements.swept_at == 0 or self._is_late():
            await self._settlements.sweep()

    def _until(self) -> float:
        """Rows that are taken now are sent until then: half of what the server waits for us."""
        return time.monotonic() + self._terms.frozen_s / 2

    def _is_late(self) -> bool:
        return time.monotonic() > self._settlements.swept_at + _LATE_S


class _Followed(NamedTuple):
    """A connection, and until when it is used if it cannot hear of commits."""

    connection: AsyncConnection[TupleRow]
    until: float | None


async def _fetch(connection: Connection, statements: bytes) -> list[Row] | None:
    """The rows of the last of some statements, sent together; None if another relay works."""
    cursor = await connection.execute(statements)
    while cursor.nextset():
        pass
    found = await cursor.fetchall()
    if found and found[0][0] is None:
        return None
    return [Row(*row) for row in found]


def _marks(connection: Connection, results: Results) -> bytes:
    """What notes the answers of the broker."""
    words: list[bytes] = []
    if results.kept:
        words.append(
            b"UPDATE faena.outbox SET sent_at = clock_timestamp() WHERE number = ANY('{%b}');"
            % _list(results.kept)
        )
    if results.gone:
        words.append(b"DELETE FROM faena.outbox WHERE number = ANY('{%b}');" % _list(results.gone))
    words += [
        sql.SQL("UPDATE faena.outbox SET refused = {} WHERE number = {};")
        .format(sql.Literal(why), sql.Literal(row.number))
        .as_bytes(connection)
        for row, why in results.refused
    ]
    return b"".join(words)


def _list(numbers: list[int]) -> bytes:
    return ",".join(map(str, numbers)).encode()
