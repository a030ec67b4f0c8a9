"""Work at fixed times, for one organisation, one job, or all that there are.

All of them are not worked through at once: a page of organisations gets a job each, and the next
page is a job, too, in the transaction that records this one. So no job takes long, and one that is
killed leaves all of its page or nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid5

from apps.campotech.keys import key_of
from apps.campotech.messages import SchedulerMessage
from apps.campotech.upkeep import certificate, daily, overdue, report
from apps.campotech.upkeep.comparison import ALL
from apps.campotech.upkeep.page import AFTER, Asked, Page, Work
from faena import Discard, Job, Receipt, Task
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

PAGE: Final = 100
"""Organisations that get a job each from one job."""
Outcome = dict[str, Any]
_JOB: Final = "SELECT organization_id FROM campotech.jobs WHERE id = %s"


class Scheduled:
    """The queue `scheduler`: a task for each type of message."""

    def __init__(self, system: System) -> None:
        self._system, self._pg = system, system.pg
        self._queue = system.queues["scheduler"]
        self.tasks: Mapping[str, Task[SchedulerMessage, Any]] = {
            "job_reminder": self._queue.task(name="job_reminder")(self._remind),
            "invoice_overdue_check": self._each(overdue.Overdue(system)),
            "daily_reconciliation": self._daily(),
            "weekly_report": self._each(report.Reports(system)),
            "cert_expiry_check": self._each(certificate.Warnings(system)),
        }

    async def enqueue(self, message: SchedulerMessage, **options: Any) -> Receipt[Any]:
        """Have the work of a message done; the same message is the same job."""
        options = {"id": str(key_of(message)), "on_conflict": "keep", **options}
        return await self.tasks[message.scheduled_job_type].enqueue(message, **options)

    def starter(self, kind: str) -> Callable[[datetime], Awaitable[object]]:
        """What a schedule calls: the work of one instant, for all."""

        async def start(at: datetime) -> object:
            return await self.enqueue(message_of(kind, at))

        return start

    # -- tasks ------------------------------------------------------------------------------------

    def _daily(self) -> Task[SchedulerMessage, Any]:
        async def start(transaction: Connection, message: SchedulerMessage) -> list[str]:
            _check(message, "daily_reconciliation")
            return await daily.start(self._system, transaction, message, _target(message))

        return self._queue.task(name="daily_reconciliation")(self._pg.effect(start))

    def _each(self, work: Work) -> Task[SchedulerMessage, Any]:
        async def each(transaction: Connection, message: SchedulerMessage, job: Job) -> Outcome:
            _check(message, work.kind)
            target = _target(message)
            if target is not None:
                return await work.do(transaction, Asked(target, message, job.started_at))
            return await self._fan_out(transaction, message, work, job.started_at)

        task = self._queue.task(name=work.kind, **work.options)
        return task(self._pg.effect(each))

    async def _fan_out(
        self, transaction: Connection, message: SchedulerMessage, work: Work, now: datetime
    ) -> Outcome:
        if AFTER not in message.metadata:
            await work.prepare(message)
        after = UUID(message.metadata.get(AFTER, str(ALL)))
        found = await work.page(transaction, Page(after, PAGE, now))
        more = {} if len(found) < PAGE else {AFTER: str(found[-1])}
        for one in found:
            part = message_of(work.kind, message.scheduled_for, target=one, metadata=work.metadata)
            await self._hand_on(transaction, part, tenant=str(one))
        if more:
            rest = message_of(work.kind, message.scheduled_for, metadata=more)
            await self._hand_on(transaction, rest)
        return {"organizations": len(found), "isLast": not more}

    async def _hand_on(
        self, transaction: Connection, one: SchedulerMessage, **options: Any
    ) -> None:
        task = self.tasks[one.scheduled_job_type]
        await self._pg.outbox.enqueue(transaction, task, one, id=str(key_of(one)), **options)

    async def _remind(self, message: SchedulerMessage, job: Job) -> Outcome:
        """Set reminders that are missing: of one visit, or of all that come soon."""
        _check(message, "job_reminder")
        reminders = self._system.reminders
        if message.target_id is not None:
            whose = await self._whose(message.target_id)
            if whose is None or message.org_id not in (ALL, whose):
                raise Discard(f"targetId must be a job, got {message.target_id}")
            return dict(await reminders.arrange_now(whose, message.target_id, job.started_at))
        swept = await reminders.sweep(job.started_at, message.metadata.get(AFTER))
        if swept.after is not None:
            rest = message_of("job_reminder", message.scheduled_for, metadata={AFTER: swept.after})
            await self.enqueue(rest)
        return {"visits": swept.visits, "set": swept.made, "isLast": swept.after is None}

    async def _whose(self, job: UUID) -> UUID | None:
        async with self._pg.transaction("reminder") as connection:
            row = await (await connection.execute(_JOB, [job])).fetchone()
        return None if row is None else row[0]


def message_of(
    kind: str,
    at: datetime,
    *,
    target: UUID | None = None,
    metadata: Mapping[str, str] = MappingProxyType({}),
) -> SchedulerMessage:
    """The work of one instant; always the same for the same instant, target and page."""
    which = uuid5(target or ALL, f"{at.timestamp():.6f} {metadata.get(AFTER, '')}")
    given: dict[str, Any] = {
        "org_id": target or ALL,
        "idempotency_key": f"{kind}-{which.hex}",
        "created_at": at,
        "scheduled_job_type": kind,
        "target_id": target,
        "scheduled_for": at,
        "metadata": dict(metadata),
    }
    return SchedulerMessage(**given)


def _check(message: SchedulerMessage, kind: str) -> None:
    if message.scheduled_job_type != kind:
        raise Discard(f"scheduledJobType must be {kind}, got {message.scheduled_job_type}")


def _target(message: SchedulerMessage) -> UUID | None:
    """The organisation that it is for; None: all. An organisation's message is for itself."""
    if message.org_id == ALL:
        return message.target_id
    if message.target_id not in (None, message.org_id):
        raise Discard("targetId must be the organisation of the message")
    return message.org_id
