"""Reminds customers of visits, a day and an hour before.

A reminder is a delayed job with an id of its own. `arrange` makes them what the job's date wants
now: it reads the date when it runs, so the last of several changes counts, and it may run again
wherever a process dies. A reminder that slips through is outdated when it runs (see `notify.py`).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from apps.campotech.messages import JobNotification
from apps.campotech.messages.base import Schema
from apps.campotech.messages.fields import Id
from apps.campotech.messages.notification import NotificationType
from apps.campotech.messaging.notify import TRUE_WHILE
from faena import Snooze
from faena.errors import InvalidTransition, JobNotFound, Overloaded
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

BEFORE: Final[dict[NotificationType, str]] = {"reminder_24h": "24h", "reminder_1h": "1h"}
_SOON: Final = timedelta(seconds=5)
_DATE: Final = """
    SELECT customer_id, status, scheduled_date FROM campotech.jobs
    WHERE id = %s AND organization_id = %s
"""


class Appointment(Schema):
    """A job whose date, customer or state may have changed."""

    organization_id: Id
    job_id: Id


class _Wanted(NamedTuple):
    message: JobNotification
    due: datetime


class Reminders:
    """The task `arrange_reminders` of the queue `job.notification`."""

    def __init__(self, system: System) -> None:
        self._system, self._pg, self._pace = system, system.pg, system.pace
        queue = system.queues["job.notification"]
        self.arrange = queue.task(name="arrange_reminders")(self._arrange)

    async def plan(self, connection: Connection, organization: UUID, job: UUID) -> None:
        """To be called in each transaction that changes a job's date, customer or state."""
        one = Appointment(organization_id=organization, job_id=job)
        await self._pg.outbox.enqueue(connection, self.arrange, one, tenant=str(organization))

    async def _arrange(self, one: Appointment) -> dict[str, str]:
        """What became of each reminder."""
        async with self._pg.transaction("reminder") as connection:
            found = await connection.execute(_DATE, [one.job_id, one.organization_id])
            row = await found.fetchone()
        wanted = {} if row is None else self._wanted(one, *row)
        return {kind: await self._match(one, kind, wanted.get(kind)) for kind in BEFORE}

    def _wanted(
        self, one: Appointment, customer: UUID | None, status: str, date: datetime | None
    ) -> dict[str, _Wanted]:
        made: dict[str, _Wanted] = {}
        for kind, before in BEFORE.items():
            if customer is None or date is None or status not in TRUE_WHILE[kind]:
                continue
            due = date - self._pace.of(before)
            if due > datetime.now(UTC):
                made[kind] = _Wanted(_reminder(one, kind, customer, date), due)
        return made

    async def _match(self, one: Appointment, kind: str, wanted: _Wanted | None) -> str:
        """Enqueue, replace or cancel a reminder, or leave it as it is."""
        task, tenant = self._system.notifying.notify, str(one.organization_id)
        # All organisations share the ids of a queue: nobody's plan may touch another's reminder.
        name = f"{kind}-{one.organization_id.hex}-{one.job_id.hex}"
        known = await task.handle(name, tenant=tenant).view()
        payload = None if wanted is None else task.encode(wanted.message)
        if known is not None and known.payload == payload:
            return "kept"
        if known is not None:
            await self._remove(name, tenant)
        if wanted is None:
            return "none"
        options: dict[str, Any] = {"at": wanted.due, "expires": wanted.message.scheduled_time}
        try:
            await task.enqueue(wanted.message, id=name, tenant=tenant, **options)
        except Overloaded as error:
            raise Snooze(timedelta(seconds=error.retry_after or 5), reason="full") from error
        return "set"

    async def _remove(self, name: str, tenant: str) -> None:
        """It may be gone by now; one that runs is waited for."""
        try:
            await self._system.notifying.notify.handle(name, tenant=tenant).remove()
        except JobNotFound:
            return
        except InvalidTransition as error:
            raise Snooze(_SOON, reason="a reminder is being sent") from error


def _reminder(
    one: Appointment, kind: NotificationType, customer: UUID, date: datetime
) -> JobNotification:
    """The same bytes for the same date: they tell whether a reminder is the one that is wanted."""
    return JobNotification(
        org_id=one.organization_id,
        idempotency_key=f"{kind}-{one.job_id.hex}-{int(date.timestamp() * 1e6):x}",
        created_at=date,
        job_id=one.job_id,
        notification_type=kind,
        customer_id=customer,
        scheduled_time=date,
    )
