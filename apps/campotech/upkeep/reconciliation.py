"""Compares our records with those of providers, repairs what is safe, and says what is not.

A run has one row, made of the message: attempts of it, and the same message sent again, go on where
the row says. Each part commits with its position, and only by who finds the row as it was, so a
worker that was killed or frozen neither loses nor counts anything twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import NAMESPACE_OID, UUID, uuid5

from psycopg.types.json import Jsonb

from apps.campotech.keys import key_of
from apps.campotech.messages import Reconciliation
from apps.campotech.upkeep.comparison import Comparison, Difference, Found, Part, Period, Position
from apps.campotech.upkeep.invoice_comparison import Invoices
from apps.campotech.upkeep.message_comparison import Messages
from apps.campotech.upkeep.owner import tell_owners
from apps.campotech.upkeep.payment_comparison import Payments
from faena import Job, Snooze
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

MOST_LISTED: Final = 1000
"""Differences that are stored; all are counted and audited."""
_LONGEST_S: Final = 200.0
"""After this the next attempt goes on, well before the queue's time limit."""
_SOON: Final = timedelta(seconds=1)
_NAMES: Final = {"payments": "pagos", "invoices": "facturas", "messages": "mensajes"}
_BEGIN: Final = """
    INSERT INTO campotech.reconciliations
        (id, organization_id, kind, first_day, last_day, is_full)
    VALUES (%(id)s, %(org)s, %(kind)s, %(first)s, %(last)s, %(full)s)
    ON CONFLICT (id) DO NOTHING
"""
_STATE: Final = """
    SELECT looked_at, repaired, differing, position, finished_at IS NOT NULL
    FROM campotech.reconciliations WHERE id = %s
"""
_LOCK: Final = """
    SELECT 1 FROM campotech.reconciliations
    WHERE id = %s AND position = %s AND finished_at IS NULL FOR UPDATE
"""
_ADVANCE: Final = """
    UPDATE campotech.reconciliations SET position = %(then)s,
        looked_at = looked_at + %(looked)s, repaired = repaired + %(repaired)s,
        differing = differing + %(differing)s, differences = differences || %(listed)s,
        finished_at = CASE WHEN %(over)s THEN now() END
    WHERE id = %(id)s
"""
_ROOM: Final = """
    SELECT %s - jsonb_array_length(differences) FROM campotech.reconciliations WHERE id = %s
"""
_WHOSE: Final = """
    SELECT (one ->> 'organization')::uuid, count(*)
    FROM campotech.reconciliations, jsonb_array_elements(differences) one
    WHERE id = %s AND one ? 'organization' GROUP BY 1 ORDER BY 1
"""
_AUDIT: Final = """
    INSERT INTO campotech.audit_logs (organization_id, subject, action, detail)
    VALUES (%s, %s, 'reconciliation', %s)
"""


class Reconciled(NamedTuple):
    """What a run has found."""

    looked_at: int
    repaired: int
    differing: int


@dataclass(frozen=True, slots=True)
class Run:
    """How far a run is."""

    id: UUID
    kind: str
    so_far: Reconciled
    position: Position
    is_over: bool


class Reconciling:
    """The queue `reconciliation`."""

    def __init__(self, system: System) -> None:
        self._system, self._pg = system, system.pg
        self._comparisons: Mapping[str, Comparison] = {
            "payments": Payments(system),
            "invoices": Invoices(system),
            "messages": Messages(system),
        }
        # It names no upstream: each kind of it calls another one.
        queue = system.queues["reconciliation"]
        self.reconcile = queue.task(name="reconcile")(self._reconcile)

    async def _reconcile(self, message: Reconciliation, job: Job) -> Reconciled:
        """Go through the period; what was found."""
        period = Period.of(message, job.started_at)
        comparison = self._comparisons[message.reconciliation_type]
        clock = asyncio.get_running_loop().time
        ends = clock() + _LONGEST_S
        run = await self._begin(message)
        while not run.is_over:
            part = await comparison.read(period, run.position)
            run = await self._advance(run, part)
            job.progress(run.so_far._asdict())
            if not run.is_over and (part.pause is not None or clock() > ends):
                raise Snooze(part.pause or _SOON, reason="the next part comes later")
        return run.so_far

    async def _begin(self, message: Reconciliation) -> Run:
        name = run_id(message)
        given: dict[str, Any] = {
            "id": name,
            "org": message.org_id,
            "kind": message.reconciliation_type,
            "first": message.date_from,
            "last": message.date_to,
            "full": message.full_reconciliation,
        }
        async with self._pg.transaction("reconciliation") as connection:
            await connection.execute(_BEGIN, given)
            return await _read(connection, name, message.reconciliation_type)

    async def _advance(self, run: Run, part: Part) -> Run:
        """Write a part down, unless another attempt has; how far the run is now."""
        async with self._pg.transaction("reconciliation") as connection:
            lock = await connection.execute(_LOCK, [run.id, Jsonb(dict(run.position))])
            if await lock.fetchone() is not None:
                await self._count(connection, run, part, await part.write(connection))
                if part.then is None:
                    await self._tell(connection, run)
            return await _read(connection, run.id, run.kind)

    async def _count(self, connection: Connection, run: Run, part: Part, found: Found) -> None:
        room = await (await connection.execute(_ROOM, [MOST_LISTED, run.id])).fetchone()
        most = max(0, int(room[0]) if room else 0)
        given: dict[str, Any] = {
            "id": run.id,
            "then": Jsonb(dict(run.position if part.then is None else part.then)),
            "over": part.then is None,
            "looked": found.looked_at,
            "repaired": found.repaired,
            "differing": len(found.differences),
            "listed": Jsonb([one.as_json() for one in found.differences[:most]]),
        }
        await connection.execute(_ADVANCE, given)
        for one in found.differences:
            await _audit(connection, one)

    async def _tell(self, connection: Connection, run: Run) -> None:
        """The owners of each organisation with differences, once for each run."""
        whose = await (await connection.execute(_WHOSE, [run.id])).fetchall()
        for organization, number in whose:
            said = (
                "Conciliación con diferencias",
                f"Se encontraron {number} diferencias en {_NAMES[run.kind]} que requieren revisión",
            )
            data = {"reconciliationId": str(run.id)}
            await tell_owners(self._system, connection, organization, said, data=data)


def run_id(message: Reconciliation) -> UUID:
    """The row of a message's run."""
    return uuid5(NAMESPACE_OID, str(key_of(message)))


async def _read(connection: Connection, run: UUID, kind: str) -> Run:
    row = await (await connection.execute(_STATE, [run])).fetchone()
    if row is None:
        raise RuntimeError("a run must have a row")
    return Run(run, kind, Reconciled(*row[:3]), row[3], row[4])


async def _audit(connection: Connection, one: Difference) -> None:
    if one.organization is not None:
        await connection.execute(
            _AUDIT, [one.organization, one.subject, Jsonb({"problem": one.problem, **one.detail})]
        )
