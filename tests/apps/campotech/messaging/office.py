"""An organisation at work: what customers write, and everything that follows from it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from apps.campotech.keys import key_of
from apps.campotech.messaging.status import record_status
from apps.campotech.system import System
from apps.providers.whatsapp import read_webhook
from apps.sandbox.sandbox import Sandbox
from apps.sandbox.whatsapp import Event
from apps.sandbox.whatsapp.delivery import envelope, signed

from apps.campotech.messages import WhatsAppInbound
from faena import Receipt
from faena.testing import Harness
from faena.testing.report import Ran
from tests.apps.campotech.business import Business
from tests.apps.campotech.outbox import relay

SEND = "POST /{id}/messages"
_numbers = itertools.count(1)


@dataclass
class Office:
    """What tests do and see."""

    system: System
    world: Sandbox
    business: Business
    harness: Harness
    owner: UUID = field(default_factory=uuid4)
    device: str = ""

    @property
    def id(self) -> UUID:
        return self.business.id

    @property
    def tenant(self) -> str:
        return str(self.business.id)

    @property
    def customer_digits(self) -> str:
        """The customer's number as WhatsApp writes it."""
        return self.business.phone.removeprefix("+")

    async def open(self) -> None:
        """Hire an owner, and let the database know what tasks take, as workers do."""
        await self.system.pg.outbox.publish()
        self.device = self.world.push.register()
        await self.hire("owner", id=self.owner, push_token=self.device)

    async def hire(self, role: str, **given: Any) -> UUID:
        user: dict[str, Any] = {
            "id": uuid4(),
            "email": "dueña@campotech.example".replace("ñ", "n"),
            "phone": "+5491144440000",
            "push_token": None,
            **given,
        }
        await self.run(
            "INSERT INTO campotech.users (id, organization_id, name, role, email, phone, "
            "push_token) VALUES (%s, %s, 'Eva', %s, %s, %s, %s)",
            user["id"],
            given.get("organization", self.id),
            role,
            user["email"],
            user["phone"],
            user["push_token"],
        )
        return user["id"]

    # -- customers --------------------------------------------------------------------------------

    def written(self, text: str = "¿Atienden hoy?", **given: Any) -> WhatsAppInbound:
        """What a customer has written, as a webhook's job has it."""
        made: dict[str, Any] = {
            "org_id": self.id,
            "idempotency_key": f"inbound-message-{next(_numbers):06}",
            "created_at": datetime.now(UTC),
            "wa_message_id": f"wamid.{next(_numbers):09}",
            "wa_timestamp": datetime.now(UTC).replace(microsecond=0),
            "sender_phone": self.customer_digits,
            "message_type": "text",
            "content": text,
            "is_business_initiated": False,
        }
        return WhatsAppInbound(**{**made, **given})

    def spoken(self, sound: bytes, **given: Any) -> WhatsAppInbound:
        """A recording, which WhatsApp keeps."""
        event = self.world.whatsapp.voice(self.customer_digits, sound)
        audio = event.value["audio"]
        kept = {"media_id": audio["id"], "media_mime_type": audio["mime_type"], "content": None}
        return self.written(**{"message_type": "voice", **kept, **given})

    async def take(self, message: WhatsAppInbound) -> Receipt[str]:
        """What the outbox of a webhook becomes."""
        receive, name = self.system.inbound.receive, str(key_of(message))
        return await receive.enqueue(
            message, tenant=str(message.org_id), id=name, on_conflict="keep"
        )

    async def receive(self, message: WhatsAppInbound) -> UUID:
        """Take a message in, and do all that follows."""
        receipt = await self.take(message)
        await self.settle()
        return UUID(await receipt.handle.result(timeout="10s"))

    async def receive_through(self, message: WhatsAppInbound, time: str = "1m") -> UUID:
        """The same, with the attempts that come later."""
        receipt = await self.take(message)
        await self.settle()
        await self.settle(through=time)
        await self.settle()
        return UUID(await receipt.handle.result(timeout="10s"))

    async def hear(self, event: Event, **changed: Any) -> list[bool]:
        """What a signed webhook tells; whether it was news."""
        whatsapp = self.world.whatsapp
        metadata = {"phone_number_id": whatsapp.phone_number_id}
        content = envelope([event], account_id=whatsapp.account_id, metadata=metadata)
        sent = signed("http://127.0.0.1", content, [event.id], whatsapp.app_secret, None)
        batch = read_webhook(self.system.settings.whatsapp, headers=sent.headers, body=sent.body)
        async with self.system.pg.transaction() as connection:
            return [
                await record_status(connection, replace(one, **changed)) for one in batch.statuses
            ]

    # -- work -------------------------------------------------------------------------------------

    async def relay(self) -> int:
        """Send what is in the outbox; workers do it by themselves."""
        return await relay(self.system)

    async def settle(self, *, through: str | None = None, at_once: int = 1) -> list[Ran]:
        """Run jobs and send the outbox until nothing is left to do now; all attempts."""
        attempts: list[Ran] = []
        while True:
            report = await self.harness.drain(schedules=False, through=through, at_once=at_once)
            attempts += report.runs
            if not await self.relay() and not report.runs:
                return attempts
            through = None

    # -- what there is ----------------------------------------------------------------------------

    async def run(self, query: str, *given: Any) -> None:
        async with self.system.pg.transaction() as connection:
            await connection.execute(query.encode(), given)

    async def rows(self, query: str, *given: Any) -> list[tuple[Any, ...]]:
        return await self.business.rows(query, *given)

    async def needs_person(self) -> list[bool]:
        query = "SELECT needs_person FROM campotech.conversations WHERE organization_id = %s"
        return [row[0] for row in await self.rows(query, self.id)]

    async def status_of(self, message: UUID) -> str:
        query = "SELECT status FROM campotech.whatsapp_messages WHERE id = %s"
        ((status,),) = await self.rows(query, message)
        return status

    def told(self) -> list[str]:
        """The texts that customers have got by WhatsApp, and the names of templates."""
        sent = [one.body for one in self.world.whatsapp.conversation.sent.values()]
        return [
            one["text"]["body"] if one["type"] == "text" else one["template"]["name"]
            for one in sent
        ]

    def pushed(self) -> list[str]:
        """The titles of what devices have got."""
        return [one["notification"]["title"] for one in self.world.push.messages]

    def mailed(self) -> list[str]:
        """The subjects of what is in the mailbox."""
        return [one.message["Subject"] for one in self.world.mail.mailbox]

    def texted(self) -> list[str]:
        return [one["body"] for one in self.world.twilio.messages.values()]
