"""Tells customers what has changed about their visit: agreed, on the way, done, cancelled.

A change is known by its stamp in the row of the job, so what a device brings hours later is told
only as long as it is worth something, and what was never changed here is nobody's news. Each is
told once for a date of the visit, whichever device says so first. What the job has become since is
what counts: news are made of the row as it is now.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from psycopg.rows import dict_row

from apps.campotech.messages import JobNotification
from apps.campotech.messages.notification import NotificationType
from faena import Snooze
from faena.errors import Overloaded

if TYPE_CHECKING:
    from apps.campotech.system import System

_WORTH: Final[Mapping[NotificationType, str]] = {
    "scheduled": "24h",
    "en_camino": "1h",
    "completed": "24h",
    "cancelled": "24h",
}
"""How long after the change it is still news."""
_VISIT: Final = """
    SELECT customer_id, assigned_to, status, scheduled_date, stamps FROM campotech.jobs
    WHERE id = %s AND organization_id = %s
"""


class VisitNews:
    """`system.visit_news`."""

    def __init__(self, system: System) -> None:
        self._system = system

    async def tell(self, organization: UUID, job: UUID, now: datetime) -> str:
        """Which news the customer is told of a job that has changed; "none" if there are none."""
        async with (
            self._system.pg.transaction("visit news") as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            await cursor.execute(_VISIT, [job, organization])
            row = await cursor.fetchone()
        kind = None if row is None else self._kind(row, now)
        if row is None or kind is None:
            return "none"
        message, notify = _message(organization, job, kind, row), self._system.notifying.notify
        name = f"news-{organization.hex}-{message.idempotency_key}"
        try:
            await notify.enqueue(message, id=name, tenant=str(organization), on_conflict="keep")
        except Overloaded as error:
            raise Snooze(timedelta(seconds=error.retry_after or 5), reason="full") from error
        return kind

    def _kind(self, row: Mapping[str, Any], now: datetime) -> NotificationType | None:
        kind: NotificationType | None = next((one for one in _WORTH if one == row["status"]), None)
        if kind is None or row["customer_id"] is None:
            return None
        date, changed_at = row["scheduled_date"], _changed_at(kind, row["stamps"])
        if kind == "scheduled" and (date is None or date <= now):
            return None
        is_worth = changed_at is not None and now - changed_at < self._system.pace.of(_WORTH[kind])
        return kind if is_worth else None


def _changed_at(kind: NotificationType, stamps: Mapping[str, Any]) -> datetime | None:
    """When the news became true, as the device has it; None: nobody said so here."""
    fields = ("status", "scheduled_date") if kind == "scheduled" else ("status",)
    found = [int(stamps[one][0]) for one in fields if one in stamps]
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=max(found)) if found else None


def _message(
    organization: UUID, job: UUID, kind: NotificationType, row: Mapping[str, Any]
) -> JobNotification:
    """The same bytes for the same news."""
    date: datetime | None = row["scheduled_date"]
    which = 0 if date is None else int(date.timestamp() * 1e6)
    return JobNotification(
        org_id=organization,
        idempotency_key=f"{kind}-{job.hex}-{which:x}",
        created_at=datetime(1970, 1, 1, tzinfo=UTC) if date is None else date,
        job_id=job,
        notification_type=kind,
        customer_id=row["customer_id"],
        technician_id=row["assigned_to"],
        scheduled_time=date if kind == "scheduled" else None,
    )
