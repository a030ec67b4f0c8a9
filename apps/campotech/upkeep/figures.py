"""Figures of an organisation over the last thirty days, one row a day: computed anew, the same."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from apps.campotech.messages.dispatched import OfOrganization
from apps.campotech.tiers import BATCH
from apps.campotech.upkeep.comparison import ZONE
from faena import Discard, Job
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

_PERIOD: Final = timedelta(days=30)
_KNOWN: Final = "SELECT 1 FROM campotech.organizations WHERE id = %s"
_FIGURES: Final = """
    SELECT jsonb_build_object(
        'jobs', (SELECT coalesce(jsonb_object_agg(status, number), '{}') FROM (
            SELECT status, count(*) AS number FROM campotech.jobs
            WHERE organization_id = %(org)s AND created_at >= %(since)s AND created_at < %(until)s
            GROUP BY 1) one),
        'invoices', count(*),
        'invoicedCents', coalesce(sum(total_cents), 0),
        'paidCents', coalesce(sum(paid_cents), 0),
        'overdueCents', coalesce(sum(total_cents - paid_cents)
            FILTER (WHERE due_at < %(until)s AND paid_cents < total_cents), 0))
    FROM campotech.invoices
    WHERE organization_id = %(org)s AND issued_at >= %(since)s AND issued_at < %(until)s
"""
_TALKS: Final = """
    SELECT count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM waited))
    FROM (
        SELECT (SELECT min(said.created_at) FROM campotech.whatsapp_messages said
            WHERE said.conversation_id = asked.conversation_id AND said.direction = 'outbound'
                AND said.created_at > asked.created_at
                AND said.created_at < asked.created_at + interval '1 day') - asked.created_at
            AS waited
        FROM campotech.whatsapp_messages asked
        WHERE asked.organization_id = %(org)s AND asked.direction = 'inbound'
            AND asked.created_at >= %(since)s AND asked.created_at < %(until)s) one
"""
_RATINGS: Final = """
    SELECT count(stars), round(avg(stars), 2)::float8 FROM campotech.ratings
    WHERE organization_id = %(org)s AND asked_at >= %(since)s AND asked_at < %(until)s
"""
_STORE: Final = """
    INSERT INTO campotech.organization_figures (organization_id, day, figures)
    VALUES (%s, %s, %s)
    ON CONFLICT (organization_id, day)
    DO UPDATE SET figures = excluded.figures, created_at = now()
"""


class Figures:
    """The task `calculate` of the queue `analytics`."""

    def __init__(self, system: System) -> None:
        self._pg = system.pg
        task = system.queues["analytics"].task(name="calculate", retry=BATCH.retry(system.pace))
        self.calculate = task(self._calculate)

    async def _calculate(self, asked: OfOrganization, job: Job) -> dict[str, Any]:
        """Compute and store them; a second time, the same row."""
        organization = _organization(asked, job)
        now = job.started_at
        given = {"org": organization, "since": now - _PERIOD, "until": now}
        async with self._pg.reading() as connection:
            if await (await connection.execute(_KNOWN, [organization])).fetchone() is None:
                raise Discard(f"no organisation {organization}")
            figures = await _compute(connection, given)
        day = now.astimezone(ZONE).date()
        async with self._pg.transaction("figures") as connection:
            await connection.execute(_STORE, [organization, day, Jsonb(figures)])
        return figures


async def _compute(connection: Connection, given: dict[str, Any]) -> dict[str, Any]:
    (figures,) = await _row(connection, _FIGURES, given)
    received, median = await _row(connection, _TALKS, given)
    rated, stars = await _row(connection, _RATINGS, given)
    waited = None if median is None else round(median, 1)
    talks = {"messagesReceived": received, "responseSeconds": waited}
    return {**figures, **talks, "ratings": rated, "stars": stars}


async def _row(connection: Connection, query: str, given: dict[str, Any]) -> tuple[Any, ...]:
    row = await (await connection.execute(query.encode(), given)).fetchone()
    if row is None:
        raise RuntimeError("an aggregate must have a row")
    return row


def _organization(asked: OfOrganization, job: Job) -> UUID:
    try:
        organization = UUID(asked.organization_id)
    except ValueError:
        raise Discard("organizationId must be a UUID") from None
    if job.tenant not in (None, str(organization)):
        raise Discard("organizationId must be that of the job")
    return organization
