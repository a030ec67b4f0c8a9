"""Sends what is in the outbox to the broker, in the order in which it was written.

    LISTEN    wakes it when a transaction commits; without it, it looks every second
    lock      one relay works at a time, for one transaction: the order of a key is kept, and one
              that is killed or frozen in its transaction is replaced
    batch     rows that are pending → one enqueue for each queue → they are marked or deleted

A row is pending until it is marked, whenever its transaction commits, so none is skipped. A relay
that dies between the enqueue and the mark leaves its rows pending; the next one sends them again
under the same ids. The broker knows those jobs, or for a minute that they have come and gone
(`send_once.lua`), or their settlement deletes the row first (`settlement.py`): none runs twice.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from faena.errors import ConfigError, FaenaError, InternalError
from faena.options import EnqueueOptions, telling
from faena.pg.lag import Lag
from faena.pg.postgres import Connection, Postgres
from faena.pg.refill import Refill
from faena.pg.settlement import SWEEP_S, Settlements
from faena.producing.receipt import Receipt

CHANNEL: Final = "faena_outbox"
_LOCK: Final = 0x6F7574626F78
_BATCH: Final = 500
_POLL_S: Final = 1.0
_LONGEST_WAIT_S: Final = 30.0
_FROZEN: Final = "15s"
"""How long a relay may be silent inside its transaction before the server ends it."""
_VALID_US: Final = 45_000_000
"""How long after a sweep of settlements jobs may be sent: the broker remembers jobs that have come
and gone for a minute."""
_WAITING: Final = frozenset({"overloaded", "late"})
_AT_ONCE: Final = 100
"""Jobs in one call: one that is refused must not be overtaken by those of the next call."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_log = logging.getLogger("faena.pg")


class Row(NamedTuple):
    """A job that is to be sent."""

    number: int
    queue: str
    id: str
    task: str
    payload: str
    tenant: str | None
    key: str | None
    options: Mapping[str, Any]
    is_kept: bool


class Sent(NamedTuple):
    """What became of a batch."""

    rows: int
    """How many there were."""
    left: int
    """How many the broker did not take now."""


_FIELDS: Final = "number, queue, id, task, payload::text, tenant, key, options, is_kept"
_SELECT: Final = f"""
    SELECT {_FIELDS} FROM faena.outbox
    WHERE sent_at IS NULL AND refused IS NULL AND queue = ANY(%s) AND number > %s
    ORDER BY number LIMIT {_BATCH} FOR UPDATE SKIP LOCKED
"""  # noqa: S608 - constants


class OutboxRelay:
    """The relay of one process; it works while no other does."""

    def __init__(
        self, pg: Postgres, settlements: Settlements, refill: Refill, lag: Lag, recipient: str
    ) -> None:
        self._pg, self._settlements, self._refill, self._lag = pg, settlements, refill, lag
        self._tells = f"o:{recipient}:job:"
        self._held: dict[str, float] = {}
        """Queues that take no jobs now, until an instant of the loop's clock."""

    async def run(self) -> None:
        """Relay until cancelled, whatever fails."""
        wait_s = _POLL_S
        while True:
            try:
                async with self._pg.session("listen") as connection:
                    await connection.execute(f"LISTEN {CHANNEL}".encode())
                    wait_s = _POLL_S
                    await self._follow(connection)
            except FaenaError as error:
                _log.warning("the outbox is relayed later: %s", error)
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    async def _follow(self, connection: Connection) -> None:
        while True:
            if await self.run_once() is None:
                await asyncio.sleep(_POLL_S)  # another relay works
                continue
            async with aclosing(connection.notifies(timeout=_POLL_S, stop_after=1)) as news:
                _ = [one async for one in news]

    async def run_once(self) -> int | None:
        """Send all that is pending; how many were sent, or None if another relay works."""
        total, after = 0, 0
        await self._lag.run_once()
        await self._refill.run_once()
        while True:
            if self._settlements.swept_at == 0 or self._is_late():
                await self._settlements.sweep()
            async with self._pg.transaction("relay") as connection:
                if not await _is_alone(connection):
                    return None
                rows = await self._pending(connection, after)
                sent = await self._send(connection, rows)
            total += sent.rows - sent.left
            if sent.rows < _BATCH:
                return total
            after = rows[-1].number if sent.left else 0

    def _is_late(self) -> bool:
        return time.monotonic() > self._settlements.swept_at + SWEEP_S

    async def _pending(self, connection: Connection, after: int) -> list[Row]:
        now = time.monotonic()
        self._held = {queue: until for queue, until in self._held.items() if until > now}
        queues = [
            name
            for name, queue in self._pg.app.queues.items()
            if not queue.is_remote and name not in self._held
        ]
        found = await connection.execute(_SELECT.encode(), [queues, after])
        return [Row(*row) for row in await found.fetchall()]

    async def _send(self, connection: Connection, rows: Sequence[Row]) -> Sent:
        done: list[Row] = []
        refused: list[tuple[Row, str]] = []
        for queue, some in _by_queue(rows).items():
            for row, receipt in await self._enqueue(queue, some):
                if isinstance(receipt, str):
                    refused.append((row, receipt))
                elif receipt.status in {"created", "duplicate"}:
                    done.append(row)
                elif receipt.status == "conflict":
                    refused.append((row, f"another job of queue {queue} has the id {row.id}"))
                else:
                    self._hold(queue, receipt.retry_after)
        await _mark(connection, done, refused)
        for row, why in refused:
            _log.error("job %s of %s/%s is refused: %s", row.id, row.queue, row.task, why)
        return Sent(len(rows), len(rows) - len(done) - len(refused))

    def _hold(self, queue: str, wait_s: float) -> None:
        """The queue is full: later jobs of it must not overtake those that were refused."""
        now = time.monotonic()
        self._held[queue] = now + max(0.1, min(wait_s, _LONGEST_WAIT_S))

    async def _enqueue(
        self, queue: str, rows: Sequence[Row]
    ) -> list[tuple[Row, Receipt[Any] | str]]:
        """Send jobs of one queue, in their order; no more of them once one must wait."""
        answers: list[tuple[Row, Receipt[Any] | str]] = []
        for task, some in _by_task(rows):
            known = self._pg.app.queues[queue].tasks.get(task)
            if known is None:
                continue  # a newer program declares it
            ready: list[tuple[Row, EnqueueOptions]] = []
            for row in some:
                try:
                    ready.append((row, self._options(row)))
                except ConfigError as error:
                    answers.append((row, str(error)))
            receipts = await known.put_encoded([(row.payload.encode(), of) for row, of in ready])
            answers += zip([row for row, _ in ready], receipts, strict=True)
            if any(one.status in _WAITING for one in receipts):
                break
        return answers

    def _options(self, row: Row) -> EnqueueOptions:
        given = dict(row.options)
        for name in ("at", "expires"):
            if name in given:
                given[name] = _EPOCH + timedelta(microseconds=given[name])
        options = EnqueueOptions(tenant=row.tenant, key=row.key, id=row.id, **given)
        by_us = self._settlements.complete_until_us + _VALID_US
        return telling(options, self._tells, sent_by_us=by_us)


async def _is_alone(connection: Connection) -> bool:
    await connection.execute(
        f"SET LOCAL idle_in_transaction_session_timeout = '{_FROZEN}'".encode()
    )
    found = await connection.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
    row = await found.fetchone()
    if row is None:
        raise InternalError("PostgreSQL must answer whether it has locked")
    return bool(row[0])


async def _mark(
    connection: Connection, done: Sequence[Row], refused: Sequence[tuple[Row, str]]
) -> None:
    kept = [row.number for row in done if row.is_kept]
    gone = [row.number for row in done if not row.is_kept]
    if kept:
        await connection.execute(
            "UPDATE faena.outbox SET sent_at = clock_timestamp() WHERE number = ANY(%s)", [kept]
        )
    if gone:
        await connection.execute("DELETE FROM faena.outbox WHERE number = ANY(%s)", [gone])
    for row, why in refused:
        await connection.execute(
            "UPDATE faena.outbox SET refused = %s WHERE number = %s", [why, row.number]
        )


def _by_queue(rows: Sequence[Row]) -> Mapping[str, list[Row]]:
    queues: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        queues[row.queue].append(row)
    return queues


def _by_task(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Runs of rows of one task: a queue may keep an order over all of its tasks."""
    runs: list[tuple[str, list[Row]]] = []
    for row in rows:
        if runs and runs[-1][0] == row.task and len(runs[-1][1]) < _AT_ONCE:
            runs[-1][1].append(row)
        else:
            runs.append((row.task, [row]))
    return runs
