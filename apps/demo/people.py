"""What people do: owners invoice, customers pay, write and speak, devices come back from offline.

Everything goes over HTTP, as from outside. A request that is turned away for now is made again; so
is one whose answer did not come, with the same key.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final
from uuid import UUID

import httpx

from apps.campotech.messages import Analytics
from apps.demo.plan import CAMPAIGN, MONTH, Act
from apps.sandbox.openai import spoken
from apps.stage.stage import Stage
from apps.stage.town import Business
from faena.errors import Overloaded, StoreUnavailable

_AT_ONCE: Final = 32
_MOST_STATUSES: Final = 100
_DELIVERED_AFTER_S: Final = 0.5
_TRIES: Final = 200
_LEAST_PAUSE_S: Final = 0.05
_MOST_PAUSE_S: Final = 1.0


class GaveUp(Exception):
    """A request was turned away too often."""


@dataclass(slots=True)
class Accepted:
    """What was promised: kept here, outside of the system."""

    invoices: dict[UUID, Business] = field(default_factory=dict[UUID, Business])
    payments: dict[UUID, int] = field(default_factory=dict[UUID, int])
    """What was paid of each invoice, in centavos."""
    campaign: set[str] = field(default_factory=set[str])
    """Messages of the campaign, by their words."""
    texts: int = 0
    recordings: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])
    turned_away: int = 0


class People:
    """Everybody outside. What one business does happens in its order."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self._stage, self._seed, self._day = stage, seed, 1
        self.accepted = Accepted()
        self._turns = defaultdict[int, asyncio.Lock](asyncio.Lock)
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._paying: set[asyncio.Task[None]] = set()

    def begin(self, day: int) -> None:
        """Another day: the same acts are other ones."""
        self._day = day

    async def do(self, act: Act) -> None:
        """Do what the plan says."""
        business = self._stage.businesses[act.business]
        async with self._turns[act.business], self._room:
            await getattr(self, f"_{act.kind}")(business, act)
        self.accepted.counts[act.kind] += 1

    async def settle(self) -> None:
        """Until everybody has paid who wanted to."""
        await asyncio.gather(*self._paying)

    # -- owners -----------------------------------------------------------------------------------

    async def _invoice(self, business: Business, act: Act) -> None:
        cents, is_paid = act.given
        customer = business.customers[act.number % len(business.customers)]
        invoice = await self._bill(business, f"{act.number}", cents, customer.id)
        if is_paid:
            self._paying.add(task := asyncio.create_task(self._pay(business, invoice)))
            task.add_done_callback(self._paying.discard)

    async def _campaign(self, business: Business, _act: Act) -> None:
        """A message to each of many customers, and the month's invoices, all at once."""
        for number in range(CAMPAIGN):
            text = f"Promo del día {self._day}, {number}: 20 % en mantenimiento"
            await self._message(business, number, text)
            self.accepted.campaign.add(text)
        for number in range(MONTH):
            await self._bill(business, f"month-{number}", 1_000_000, business.customers[0].id)

    async def _bill(self, business: Business, name: str, cents: int, customer: UUID) -> UUID:
        body = {
            "customerId": str(customer),
            "invoiceType": "B",
            "puntoVenta": 1,
            "net": f"{cents // 100}.{cents % 100:02}",
            "description": "Servicio técnico",
        }
        key = {"idempotency-key": self._key(business, "invoice", name)}
        answer = await self._post(business, "/api/v1/invoices", body, **key)
        invoice = UUID(answer["id"])
        self.accepted.invoices[invoice] = business
        return invoice

    async def _message(self, business: Business, number: int, text: str) -> None:
        body = {
            "orgId": business.tenant,
            "idempotencyKey": self._key(business, "campaign", str(number)),
            "createdAt": datetime.now(UTC).isoformat(),
            "messageType": "text",
            "recipientPhone": f"+549116{number:07}",
            "text": text,
        }
        await self._post(business, "/api/v1/messages", body)

    # -- customers --------------------------------------------------------------------------------

    async def _pay(self, business: Business, invoice: UUID) -> None:
        """Ask for the link, and pay there; MercadoPago tells us."""
        pay = self._stage.sandbox.mercadopago
        await self._post(business, f"/api/v1/invoices/{invoice}/payment-link", None)
        found = [
            one
            for one in pay.account.preferences.values()
            if one.get("external_reference") == str(invoice)
        ]
        if not found:
            return  # MercadoPago was out: they pay by transfer
        payment = pay.pay(found[0]["id"])
        self.accepted.payments[invoice] = payment.amount_centavos
        url = f"{self._stage.url}/webhooks/mercadopago/{business.id}"
        for _ in range(_TRIES):
            if (await pay.notify(url, payment.id)).status == 200:
                return
            await self._pause(None)
        raise GaveUp(url)

    async def _text(self, business: Business, act: Act) -> None:
        whatsapp, customer = self._stage.sandbox.whatsapp, business.customers[act.number % 3]
        event = whatsapp.text(customer.digits, act.given, name=customer.name)
        await self._tell(business.phone_number_id, event)
        self.accepted.texts += 1

    async def _voice(self, business: Business, act: Act) -> None:
        whatsapp, customer = self._stage.sandbox.whatsapp, business.customers[0]
        event = whatsapp.voice(customer.digits, spoken(act.given))
        await self._tell(business.phone_number_id, event)
        self.accepted.recordings += 1

    async def receive(self) -> None:
        """Customers' phones get our messages, which Meta tells us, until cancelled."""
        whatsapp, told = self._stage.sandbox.whatsapp, 0
        while True:
            new = [*islice(whatsapp.conversation.sent, told, told + _MOST_STATUSES)]
            news = defaultdict[str, list[Any]](list)
            for one in new:
                number = whatsapp.conversation.sent[one].number
                news[number].append(whatsapp.status(one, "delivered"))
            await asyncio.gather(*[self._tell(number, *some) for number, some in news.items()])
            told += len(new)
            await asyncio.sleep(_DELIVERED_AFTER_S)

    async def _tell(self, number: str, *events: Any) -> None:
        """What Meta does: the same webhook until somebody takes it."""
        url = f"{self._stage.url}/webhooks/whatsapp"
        whatsapp = self._stage.sandbox.whatsapp
        sent = await whatsapp.notify(url, *events, number=number)
        for _ in range(_TRIES):
            if sent.status == 200:
                return
            await self._pause(None)
            sent = await whatsapp.replay(sent)
        raise GaveUp(url)

    # -- devices and programs ---------------------------------------------------------------------

    async def _sync(self, business: Business, act: Act) -> None:
        job, now = f"visit-{self._day}-{act.number}", datetime.now(UTC).isoformat()
        operation = {"entityType": "job", "localId": job, "clientTimestamp": now}
        made = {"description": "visita", "status": "scheduled"}
        body = {
            "orgId": business.tenant,
            "idempotencyKey": self._key(business, "sync", str(act.number)),
            "createdAt": now,
            "userId": str(business.owner),
            "deviceId": f"phone-{business.number}",
            "operations": [
                {**operation, "type": "create", "data": made},
                {**operation, "type": "status_change", "data": {"status": "en_camino"}},
            ],
        }
        await self._post(business, "/api/v1/sync", body)

    async def _event(self, business: Business, act: Act) -> None:
        """The web application counts something; it enqueues by itself."""
        now = datetime.now(UTC)
        event = Analytics(
            org_id=business.id,
            idempotency_key=self._key(business, "event", str(act.number)),
            created_at=now,
            event_type="page_view",
            event_data={"page": "/jobs"},
            timestamp=now,
        )
        record = self._stage.system.statistics.record
        for _ in range(_TRIES):
            try:
                await record.enqueue(event, tenant=business.tenant)
            except (Overloaded, StoreUnavailable) as error:
                await self._pause(getattr(error, "retry_after", None))
            else:
                return
        raise GaveUp("analytics")

    # -- requests ---------------------------------------------------------------------------------

    async def _post(self, business: Business, path: str, body: Any, **headers: str) -> Any:
        shown = {**business.headers, **headers}
        for _ in range(_TRIES):
            wait: float | None = None
            try:
                answer = await self._stage.http.post(path, json=body, headers=shown)
            except httpx.TransportError:
                pass
            else:
                if answer.status_code < 300:
                    return answer.json()
                if answer.status_code != 503:
                    raise GaveUp(f"{path}: {answer.status_code} {answer.text[:300]}")
                wait = float(answer.headers.get("retry-after", "1"))
            await self._pause(wait)
        raise GaveUp(path)

    async def _pause(self, seconds: float | None) -> None:
        """Turned away: as long as was asked for, in the time of this day."""
        self.accepted.turned_away += 1
        wait = (seconds or 1.0) / self._stage.wanted.speed
        await asyncio.sleep(min(max(wait, _LEAST_PAUSE_S), _MOST_PAUSE_S))

    def _key(self, business: Business, kind: str, name: str) -> str:
        return uuid.uuid5(business.id, f"{self._seed} {self._day} {kind} {name}").hex
