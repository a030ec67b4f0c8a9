"""Reminds customers of visits, a day and an hour before.

A reminder is a delayed job with an id of its own. `arrange` makes them what the job's date wants
now: it reads the date when it runs, so the last of several changes counts, and it may run again
wherever a process dies. A reminder that slips through is outdated when it runs (see `notify.py`).

Delayed jobs count when a queue decides whether it is full. So only reminders that are due within
`HORIZON` are jobs; an hourly sweep sets those that come within it, and any that are missing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from apps.campotech.messages import JobNotification
from apps.campotech.messages.base import Schema
from apps.campotech.messages.fields import Id
from apps.campotech.messages.notification import NotificationType
from apps.campotech.messaging.notify import TRUE_WHILE
from faena import Job, Snooze
from faena.errors import InvalidTransition, JobNotFound, Overloaded
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

BEFORE: Final[dict[NotificationType, str]] = {"reminder_24h": "24h", "reminder_1h": "1h"}
HORIZON: Final = "6h"
"""Several sweeps: nothing is missed while schedulers are out for some hours."""
PAGE: Final = 100
_SOON: Final = timedelta(seconds=5)
_DATE: Final = """
    SELECT customer_id, status, scheduled_date FROM campotech.jobs
    WHERE id = %s AND organization_id = %s
"""
_VISITS: Final = """
    SELECT organization_id, id, scheduled_date FROM campotech.jobs
    WHERE status IN ('pending', 'scheduled') AND customer_id IS NOT NULL
        AND (scheduled_date BETWEEN %(near)s AND %(near_end)s
            OR scheduled_date BETWEEN %(far)s AND %(far_end)s)
        AND (scheduled_date, id) > (%(after_date)s, %(after_id)s)
    ORDER BY scheduled_date, id LIMIT %(most)s
"""


class Appointment(Schema):
    """A job whose date, customer or state may have changed."""

    organization_id: Id
    job_id: Id


class _Wanted(NamedTuple):
    message: JobNotification
    due: datetime


class Swept(NamedTuple):
    """What a part of a sweep has found."""

    visits: int
    made: int
    """Reminders that were missing."""
    after: str | None
    """Where the next part begins; None: this was the last one."""


class Reminders:
    """The task `arrange_reminders` of the queue `job.notification`."""

    def __init__(self, system: System) -> None:
        self._system, self._pg, self._pace = system, system.pg, system.pace
        self._horizon = system.pace.of(HORIZON)
        queue = system.queues["job.notification"]
        self.arrange = queue.task(name="arrange_reminders")(self._arrange)

    async def plan(self, connection: Connection, organization: UUID, job: UUID) -> None:
        """To be called in each transaction that changes a job's date, customer or state."""
        one = Appointment(organization_id=organization, job_id=job)
        await self._pg.outbox.enqueue(connection, self.arrange, one, tenant=str(organization))

    async def _arrange(self, one: Appointment, job: Job) -> dict[str, str]:
        """What became of each reminder, and which news the change is."""
        organization, which, now = one.organization_id, one.job_id, job.started_at
        arranged = await self.arrange_now(organization, which, now)
        return {**arranged, "news": await self._system.visit_news.tell(organization, which, now)}

    async def arrange_now(self, organization: UUID, job: UUID, now: datetime) -> dict[str, str]:
        """The same without a job of its own."""
        one = Appointment(organization_id=organization, job_id=job)
        async with self._pg.transaction("reminder") as connection:
            found = await connection.execute(_DATE, [job, organization])
            row = await found.fetchone()
        wanted = {} if row is None else self._wanted(one, now, *row)
        return {kind: await self._match(one, kind, wanted.get(kind), now) for kind in BEFORE}

    async def sweep(self, now: datetime, after: str | None) -> Swept:
        """Arrange the reminders of some visits that come soon; as often as one likes."""
        rows = await self._soon(now, after)
        made = 0
        for organization, job, _ in rows:
            arranged = await self.arrange_now(organization, job, now)
            made += sum(one == "set" for one in arranged.values())
        is_last = len(rows) < PAGE
        then = None if is_last else f"{rows[-1][2].isoformat()} {rows[-1][1]}"
        return Swept(len(rows), made, then)

    async def _soon(self, now: datetime, after: str | None) -> list[tuple[Any, ...]]:
        date, _, job = (after or f"{now.isoformat()} {UUID(int=0)}").partition(" ")
        far, near = (now + self._pace.of(one) for one in BEFORE.values())
        given = {
            "near": near,
            "near_end": near + self._horizon,
            "far": far,
            "far_end": far + self._horizon,
            "after_date": datetime.fromisoformat(date),
            "after_id": UUID(job),
            "most": PAGE,
        }
        async with self._pg.transaction("reminder") as connection:
            return await (await connection.execute(_VISITS, given)).fetchall()

    def _wanted(
        self,
        one: Appointment,
        now: datetime,
        customer: UUID | None,
        status: str,
        date: datetime | None,
    ) -> dict[str, _Wanted]:
        made: dict[str, _Wanted] = {}
        for kind, before in BEFORE.items():
            if customer is None or date is None or status not in TRUE_WHILE[kind]:
                continue
            due = date - self._pace.of(before)
            if due > now:
                made[kind] = _Wanted(_reminder(one, kind, customer, date), due)
        return made

    async def _match(
        self, one: Appointment, kind: str, wanted: _Wanted | None, now: datetime
    ) -> str:
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
        if wanted.due > now + self._horizon:
            return "later"
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
