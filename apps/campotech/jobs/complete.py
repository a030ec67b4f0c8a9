"""Completes a job and has its invoice made, in one transaction.

The end of a job is a change like that of a device (`sync.record`), by the device `api`, which had
seen everything: what a phone did meanwhile without a network is merged behind it, and does not open
the job again. `completed_at` says that it was completed here: a second request changes nothing and
asks for no second invoice, unless it brings what was missing for the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from apps.campotech.invoicing.bill import is_billable, name_of
from apps.campotech.sync.record import Change, Record, Stamp, apply
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

DEVICE: Final = "api"
"""Who changes a job here, in its vector clock and stamps."""
_FROM: Final = frozenset({"pending", "scheduled", "en_camino", "in_progress", "completed"})
_FIELDS: Final = ("status", "description", "total_cents")
_LOCK: Final = """
    SELECT id, created_at, status, description, total_cents, customer_id, completed_at, clock,
        stamps
    FROM campotech.jobs WHERE id = %(id)s AND organization_id = %(org)s
    FOR UPDATE
"""
_SAVE: Final = """
    UPDATE campotech.jobs SET status = %(status)s, description = %(description)s,
        total_cents = %(total_cents)s, clock = %(clock)s, stamps = %(stamps)s,
        completed_at = coalesce(completed_at, %(at)s), updated_at = now()
    WHERE id = %(id)s AND organization_id = %(org)s AND created_at = %(created_at)s
"""
_BILLED: Final = "SELECT 1 FROM campotech.invoices WHERE id = %s"


class NoSuchJob(LookupError):
    """Not in this organisation."""


class NotCompletable(ValueError):
    """Why a job cannot be completed, in words for who asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What a technician says at the end."""

    total_cents: int | None = None
    description: str | None = None

    def fields(self) -> dict[str, Any]:
        """Those that are changed."""
        given = {"total_cents": self.total_cents, "description": self.description}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A job that is completed."""

    at: datetime
    is_new: bool
    """False: it was, and nothing has changed."""
    invoice: UUID | None
    """What its invoice will be called; None: it needs a customer and a total for one."""
    is_billed: bool
    """Whether that invoice is there."""


class Completing:
    """`system.completing`."""

    def __init__(self, system: System) -> None:
        self._system = system

    async def complete(self, organization: UUID, job: UUID, given: Completion) -> Completed:
        """Complete it; raises NoSuchJob or NotCompletable, and changes nothing then."""
        async with self._system.pg.transaction("complete") as connection:
            row = await _lock(connection, organization, job)
            if row["status"] not in _FROM:
                raise NotCompletable(f"a job that is {row['status']} cannot be completed")
            invoice = name_of(organization, job)
            found = await connection.execute(_BILLED, [invoice])
            is_billed = await found.fetchone() is not None
            changed = _changed(row, given, is_billed=is_billed)
            now = datetime.now(UTC)
            if changed:
                await self._save(connection, organization, row, changed, now)
            merged = {**row, **changed}
            can_bill = is_billed or is_billable("completed", merged)
            if changed and can_bill and not is_billed:
                data = {"organizationId": str(organization), "jobId": str(job)}
                await self._system.dispatch("invoice:generate", data, connection=connection)
        return Completed(
            at=row["completed_at"] or now,
            is_new=bool(changed),
            invoice=invoice if can_bill else None,
            is_billed=is_billed,
        )

    async def _save(
        self,
        connection: Connection,
        organization: UUID,
        row: dict[str, Any],
        changed: dict[str, Any],
        now: datetime,
    ) -> None:
        record = _record(row)
        clock = {**record.clock, DEVICE: record.clock.get(DEVICE, 0) + 1}
        made = apply(record, Change(DEVICE, int(now.timestamp() * 1e6), changed, clock)).record
        given = {name: made.fields[name] for name in _FIELDS}
        given |= {"clock": Jsonb(dict(made.clock)), "stamps": Jsonb(dict(made.stamps))}
        given |= {"id": row["id"], "org": organization, "created_at": row["created_at"], "at": now}
        await connection.execute(_SAVE, given)
        await self._system.reminders.plan(connection, organization, row["id"])


async def _lock(connection: Connection, organization: UUID, job: UUID) -> dict[str, Any]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_LOCK, {"id": job, "org": organization})
        row = await cursor.fetchone()
    if row is None:
        raise NoSuchJob(f"no job {job} in this organisation")
    return row


def _changed(row: dict[str, Any], given: Completion, *, is_billed: bool) -> dict[str, Any]:
    """What the request brings that the row does not have; what has been billed stays."""
    fields = {} if is_billed else given.fields()
    changed = {name: value for name, value in fields.items() if row[name] != value}
    is_first = row["status"] != "completed" or row["completed_at"] is None
    return {"status": "completed", **changed} if is_first or changed else {}


def _record(row: dict[str, Any]) -> Record:
    stamps = {name: Stamp(*stamp) for name, stamp in row["stamps"].items()}
    return Record({name: row[name] for name in _FIELDS}, stamps, row["clock"])
