"""Tells customers about visits, and asks how they were: by WhatsApp, else by mail, else by SMS.

    1. note      the notification, with the channel by which it goes
    2. hand on   to a job with the notification's id and instant

A process that dies in between hands it on in its next attempt, to the same job. News that are not
true any more, such as a reminder of a visit that was moved, are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import NAMESPACE_OID, UUID, uuid5

from psycopg.rows import class_row

from apps.campotech.keys import key_of
from apps.campotech.messages import JobNotification, WhatsAppOutbound
from apps.campotech.messages.dispatched import RatingRequest
from apps.campotech.messaging import notification_log
from apps.campotech.messaging.delivery import CustomerNotice
from apps.campotech.messaging.notification_log import QUEUED, SENT, Begun, Channel, Note
from apps.campotech.messaging.recipient import channel_of
from apps.campotech.messaging.wording import WORDINGS, local, on_one_line
from faena import Discard, Job
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

_AHEAD: Final = frozenset({"pending", "scheduled"})
TRUE_WHILE: Final[Mapping[str, frozenset[str]]] = {
    "scheduled": _AHEAD,
    "reminder_24h": _AHEAD,
    "reminder_1h": _AHEAD,
    "en_camino": _AHEAD | {"en_camino"},
    "completed": frozenset({"completed"}),
    "cancelled": frozenset({"cancelled"}),
}
"""In which states of a job each of the news is still one."""
_DATED: Final = frozenset({"scheduled", "reminder_24h", "reminder_1h"})
_VISIT: Final = """
    SELECT one.id, one.organization_id AS organization, one.status, one.scheduled_date,
        customer.id AS customer_id, customer.name AS customer, customer.phone, customer.email,
        org.name AS organization_name, org.phone_number_id, technician.name AS technician
    FROM campotech.jobs one
    JOIN campotech.organizations org ON org.id = one.organization_id
    JOIN campotech.customers customer
        ON customer.id = one.customer_id AND customer.organization_id = one.organization_id
    LEFT JOIN campotech.users technician
        ON technician.id = coalesce(%(technician)s, one.assigned_to)
        AND technician.organization_id = one.organization_id
    WHERE one.id = %(job)s AND one.organization_id = %(organization)s
"""
_ASK: Final = """
    INSERT INTO campotech.ratings (id, organization_id, job_id) VALUES (%s, %s, %s)
    ON CONFLICT (job_id) DO NOTHING
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A job, and whom to tell about it."""

    id: UUID
    organization: UUID
    status: str
    scheduled_date: datetime | None
    customer_id: UUID
    customer: str
    phone: str | None
    email: str | None
    organization_name: str
    phone_number_id: str | None
    technician: str | None

    def is_outdated(self, message: JobNotification) -> bool:
        """Whether the news are not true any more."""
        kind = message.notification_type
        is_moved = message.scheduled_time not in (None, self.scheduled_date)
        return self.status not in TRUE_WHILE[kind] or (kind in _DATED and is_moved)

    def facts(self) -> dict[str, str]:
        """What wordings say."""
        facts = {
            "customer": self.customer,
            "organization": self.organization_name,
            "technician": self.technician or self.organization_name,
            "when": local(self.scheduled_date),
        }
        return {name: on_one_line(one) for name, one in facts.items()}

    @property
    def channel(self) -> Channel | None:
        """The best one by which the customer can be reached."""
        return channel_of(self.phone_number_id, self.phone, self.email)


class Notifying:
    """`notify` and `ask_rating` of the queue `job.notification`."""

    def __init__(self, system: System) -> None:
        self._system, self._pg = system, system.pg
        queue = system.queues["job.notification"]
        self.notify = queue.task(name="notify")(self._notify)
        self.ask_rating = queue.task(name="ask_rating")(self._ask_rating)

    async def _notify(self, message: JobNotification) -> str:
        """By which channel the customer is told, or why not."""
        async with self._pg.transaction("notify") as connection:
            visit = await _find(connection, message.org_id, message.job_id, message.technician_id)
            if visit is None or visit.customer_id != message.customer_id:
                raise Discard(f"no job {message.job_id} of this customer in this organisation")
            if visit.is_outdated(message):
                return "outdated"
            name = uuid5(NAMESPACE_OID, str(key_of(message)))
            noted = await _note(connection, visit, message.notification_type, name)
        return await self._hand_on(visit, message.notification_type, noted)

    async def _ask_rating(self, asked: RatingRequest, job: Job) -> str:
        """By which channel the customer is asked; once for each job."""
        try:
            organization, wanted = UUID(asked.organization_id), UUID(asked.job_id)
        except ValueError:
            raise Discard("organizationId and jobId must be UUIDs") from None
        name = uuid5(wanted, "rating")
        async with self._pg.transaction("rating") as connection:
            visit = await _find(connection, organization, wanted)
            is_own = job.tenant in (None, str(organization))
            if visit is None or not is_own or visit.status != "completed":
                raise Discard(f"no completed job {wanted} with a customer in this organisation")
            await connection.execute(_ASK, [name, organization, wanted])
            noted = await _note(connection, visit, "rating", name)
        return await self._hand_on(visit, "rating", noted)

    async def _hand_on(self, visit: Visit, kind: str, noted: Begun | None) -> str:
        if noted is None:
            return "unreachable"
        if noted.status != QUEUED:
            return "known"
        if noted.channel == "whatsapp":
            message = _template(visit, kind, noted)
            await self._enqueue(self._system.sender.send, message, visit, noted)
            await notification_log.end(self._pg, noted, SENT)
        else:
            delivery = self._system.delivery
            is_mail = noted.channel == "email"
            task = delivery.mail_customer if is_mail else delivery.text_customer
            await self._enqueue(task, _notice(visit, kind, noted), visit, noted)
        return noted.channel

    async def _enqueue(
        self, task: Any, payload: CustomerNotice | WhatsAppOutbound, visit: Visit, noted: Begun
    ) -> None:
        name, tenant = f"notice-{noted.id.hex}", str(visit.organization)
        await task.enqueue(payload, tenant=tenant, id=name, on_conflict="keep")


def _template(visit: Visit, kind: str, noted: Begun) -> WhatsAppOutbound:
    wording, facts = WORDINGS[kind], visit.facts()
    return WhatsAppOutbound(
        org_id=visit.organization,
        idempotency_key=f"notice-{noted.id.hex}",
        created_at=noted.at,
        message_type="template",
        recipient_phone=visit.phone or "",
        customer_id=visit.customer_id,
        template_name=wording.template,
        template_params=[facts[each] for each in wording.parameters],
        job_id=visit.id,
    )


def _notice(visit: Visit, kind: str, noted: Begun) -> CustomerNotice:
    wording = WORDINGS[kind]
    return CustomerNotice(
        organization_id=visit.organization,
        notification_id=noted.id,
        customer_id=visit.customer_id,
        kind=kind,
        title=wording.title,
        body=wording.text.format(**visit.facts()),
    )


async def _note(connection: Connection, visit: Visit, kind: str, name: UUID) -> Begun | None:
    """None if the customer cannot be reached."""
    channel = visit.channel
    if channel is None:
        return None
    one = Note(
        id=name,
        organization=visit.organization,
        recipient=str(visit.customer_id),
        channel=channel,
        kind=kind,
    )
    return await notification_log.note(connection, one)


async def _find(
    connection: Connection, organization: UUID, job: UUID, technician: UUID | None = None
) -> Visit | None:
    given = {"organization": organization, "job": job, "technician": technician}
    async with connection.cursor(row_factory=class_row(Visit)) as cursor:
        await cursor.execute(_VISIT, given)
        return await cursor.fetchone()
