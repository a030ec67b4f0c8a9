"""Tells customers about visits, and asks how they were: by WhatsApp, else by mail, else by SMS.

A notification is noted and handed on in one transaction, so it is told once, wherever a process
dies. News that are not true any more, such as a reminder of a visit that was moved, are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import NAMESPACE_OID, UUID, uuid5

from psycopg.rows import class_row

from apps.campotech.keys import key_of
from apps.campotech.messages import JobNotification, WhatsAppOutbound
from apps.campotech.messages.dispatched import RatingRequest
from apps.campotech.messaging import notification_log
from apps.campotech.messaging.delivery import CustomerNotice
from apps.campotech.messaging.notification_log import Channel, Note
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
_ARGENTINE: Final = re.compile(r"\+54[0-9]{10,11}")
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
        can_chat = self.phone_number_id is not None and _ARGENTINE.fullmatch(self.phone or "")
        if can_chat:
            return "whatsapp"
        if self.email is not None:
            return "email"
        return None if self.phone is None else "sms"


class Notifying:
    """`notify` and `ask_rating` of the queue `job.notification`."""

    def __init__(self, system: System) -> None:
        self._system, self._pg = system, system.pg
        queue = system.queues["job.notification"]
        self.notify = queue.task(name="notify")(system.pg.effect(self._notify))
        self.ask_rating = queue.task(name="ask_rating")(system.pg.effect(self._ask_rating))

    async def _notify(self, transaction: Connection, message: JobNotification) -> str:
        """By which channel the customer is told, or why not."""
        visit = await _find(transaction, message.org_id, message.job_id, message.technician_id)
        if visit is None or visit.customer_id != message.customer_id:
            raise Discard(f"no job {message.job_id} of this customer in this organisation")
        if visit.is_outdated(message):
            return "outdated"
        name = uuid5(NAMESPACE_OID, str(key_of(message)))
        return await self._tell(transaction, visit, message.notification_type, name)

    async def _ask_rating(self, transaction: Connection, asked: RatingRequest, job: Job) -> str:
        """By which channel the customer is asked; once for each job."""
        try:
            organization, wanted = UUID(asked.organization_id), UUID(asked.job_id)
        except ValueError:
            raise Discard("organizationId and jobId must be UUIDs") from None
        visit = await _find(transaction, organization, wanted)
        is_own = job.tenant in (None, str(organization))
        if visit is None or not is_own or visit.status != "completed":
            raise Discard(f"no completed job {wanted} with a customer in this organisation")
        name = uuid5(wanted, "rating")
        made = await transaction.execute(_ASK, [name, organization, wanted])
        return await self._tell(transaction, visit, "rating", name) if made.rowcount else "known"

    async def _tell(self, connection: Connection, visit: Visit, kind: str, name: UUID) -> str:
        channel = visit.channel
        if channel is None:
            return "unreachable"
        one = Note(
            id=name,
            organization=visit.organization,
            recipient=str(visit.customer_id),
            channel=channel,
            kind=kind,
        )
        if not await notification_log.note(connection, one):
            return "known"
        if channel == "whatsapp":
            await self._by_whatsapp(connection, visit, one)
        else:
            await self._otherwise(connection, visit, one)
        return channel

    async def _by_whatsapp(self, connection: Connection, visit: Visit, one: Note) -> None:
        wording, facts = WORDINGS[one.kind], visit.facts()
        message = WhatsAppOutbound(
            org_id=visit.organization,
            idempotency_key=f"notice-{one.id.hex}",
            created_at=datetime.now(UTC),
            message_type="template",
            recipient_phone=visit.phone or "",
            customer_id=visit.customer_id,
            template_name=wording.template,
            template_params=[facts[each] for each in wording.parameters],
            job_id=visit.id,
        )
        await self._hand_on(connection, self._system.sender.send, message, visit, one)

    async def _otherwise(self, connection: Connection, visit: Visit, one: Note) -> None:
        wording, delivery = WORDINGS[one.kind], self._system.delivery
        told = CustomerNotice(
            organization_id=visit.organization,
            notification_id=one.id,
            customer_id=visit.customer_id,
            kind=one.kind,
            title=wording.title,
            body=wording.text.format(**visit.facts()),
        )
        task = delivery.mail_customer if one.channel == "email" else delivery.text_customer
        await self._hand_on(connection, task, told, visit, one)

    async def _hand_on(
        self, connection: Connection, task: Any, payload: Any, visit: Visit, one: Note
    ) -> None:
        await self._pg.outbox.enqueue(
            connection, task, payload, tenant=str(visit.organization), id=f"notice-{one.id.hex}"
        )


async def _find(
    connection: Connection, organization: UUID, job: UUID, technician: UUID | None = None
) -> Visit | None:
    given = {"organization": organization, "job": job, "technician": technician}
    async with connection.cursor(row_factory=class_row(Visit)) as cursor:
        await cursor.execute(_VISIT, given)
        return await cursor.fetchone()
