"""The weekly report of an organisation: figures from roll-ups, stored and mailed once a week."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from apps.campotech.invoicing.money import pesos
from apps.campotech.messages import SchedulerMessage
from apps.campotech.tiers import BATCH
from apps.campotech.upkeep.comparison import ZONE, midnight
from apps.campotech.upkeep.owner import tell_owners
from apps.campotech.upkeep.page import Asked, Page, Work
from faena import Discard
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

_WEEK: Final = timedelta(days=7)
_FRESH: Final = "rollups"
"""In the metadata of a message: the roll-ups of its week have been computed."""
_PAGE: Final = """
    SELECT id FROM campotech.organizations WHERE id > %(after)s ORDER BY id LIMIT %(most)s
"""
_KNOWN: Final = "SELECT 1 FROM campotech.organizations WHERE id = %s"
_JOBS: Final = """
    SELECT coalesce(jsonb_object_agg(status, jobs), '{}') FROM (
        SELECT status, sum(jobs)::bigint AS jobs FROM campotech.jobs_per_day
        WHERE organization_id = %(org)s AND day >= %(week)s AND day < %(end)s GROUP BY 1) one
"""
_INVOICES: Final = """
    SELECT coalesce(sum(invoices), 0)::bigint, coalesce(sum(total_cents), 0)::bigint
    FROM campotech.revenue_per_day
    WHERE organization_id = %(org)s AND day >= %(week)s AND day < %(end)s
"""
_PAID: Final = """
    SELECT coalesce(sum(amount_cents - refunded_cents), 0)::bigint FROM campotech.payments
    WHERE organization_id = %(org)s AND status = 'approved'
        AND changed_at >= %(begins)s AND changed_at < %(ends)s
"""
_STORE: Final = """
    INSERT INTO campotech.reports (organization_id, week, figures) VALUES (%s, %s, %s)
    ON CONFLICT (organization_id, week) DO NOTHING RETURNING 1
"""
_STORED: Final = "SELECT figures FROM campotech.reports WHERE organization_id = %s AND week = %s"


class Reports(Work):
    """The work `weekly_report`."""

    kind: ClassVar[str] = "weekly_report"
    metadata: ClassVar[Mapping[str, str]] = {_FRESH: "fresh"}

    def __init__(self, system: System) -> None:
        self._system = system
        # Longer than the queue's: roll-ups of a week are computed first.
        self.options = {"timeout": "2m", "retry": BATCH.retry(system.pace)}

    async def prepare(self, message: SchedulerMessage) -> None:
        """Compute the roll-ups of the week; late rows are counted, too."""
        week = self.week_of(message)
        for day in (week + timedelta(days=n) for n in range(7)):
            await self._system.rollups.jobs.run(day)
            await self._system.rollups.revenue_per_day.run(day)

    async def page(self, transaction: Connection, page: Page) -> list[UUID]:
        """All of them."""
        given = {"after": page.after, "most": page.most}
        return [row[0] for row in await (await transaction.execute(_PAGE, given)).fetchall()]

    async def do(self, transaction: Connection, asked: Asked) -> dict[str, Any]:
        """The figures of the week, those that were stored first."""
        organization, message = asked.organization, asked.message
        week = self.week_of(message)
        stored = await transaction.execute(_STORED, [organization, week])
        if known := await stored.fetchone():
            return known[0]
        if await (await transaction.execute(_KNOWN, [organization])).fetchone() is None:
            raise Discard(f"no organisation {organization}")
        if _FRESH not in message.metadata:
            await self.prepare(message)
        # Nothing older than the roll-ups that were computed right before.
        async with self._system.pg.reading(max_lag="0s") as connection:
            figures = await read_figures(connection, organization, week)
        new = await transaction.execute(_STORE, [organization, week, Jsonb(figures)])
        if await new.fetchone() is not None:
            said = _words(week, figures)
            await tell_owners(self._system, transaction, organization, said, by="email")
        return figures

    def week_of(self, message: SchedulerMessage) -> date:
        """The Monday of the week before the message's instant."""
        day = (message.scheduled_for - self._system.pace.of(_WEEK)).astimezone(ZONE).date()
        return day - timedelta(days=day.weekday())


async def read_figures(connection: Connection, organization: UUID, week: date) -> dict[str, Any]:
    """What an organisation did in a week."""
    end = week + _WEEK
    given = {
        "org": organization,
        "week": week,
        "end": end,
        "begins": midnight(week),
        "ends": midnight(end),
    }
    jobs = await (await connection.execute(_JOBS, given)).fetchone()
    invoices = await (await connection.execute(_INVOICES, given)).fetchone()
    paid = await (await connection.execute(_PAID, given)).fetchone()
    number, billed = invoices or (0, 0)
    return {
        "jobs": jobs[0] if jobs else {},
        "invoices": number,
        "invoicedCents": billed,
        "paidCents": paid[0] if paid else 0,
    }


def _words(week: date, figures: dict[str, Any]) -> tuple[str, str]:
    last = week + timedelta(days=6)
    jobs = figures["jobs"]
    lines = [
        f"Trabajos nuevos: {sum(jobs.values())}, terminados: {jobs.get('completed', 0)}",
        f"Facturas: {figures['invoices']} por {pesos(figures['invoicedCents'])}",
        f"Cobrado: {pesos(figures['paidCents'])}",
    ]
    return f"Tu semana del {week:%d/%m} al {last:%d/%m}", "\n".join(lines)
