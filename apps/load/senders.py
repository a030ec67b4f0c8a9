"""Who sends notifications and messages, and remembers when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from apps.load.scene import Scene
from apps.stage.town import Business
from faena.errors import Overloaded, StoreUnavailable

_PER_S: Final = 12.0
"""Pushes; half as many messages, a quarter as many mails, and as many texts of customers."""
BURST: Final = 300
_TRIES: Final = 100
_RETRY_S: Final = 0.1
_DEVICE: Final = "UPDATE campotech.users SET push_token = %s WHERE id = %s"


@dataclass(slots=True)
class Sent:
    """What was accepted: its number, and the instants of the monotonic clock."""

    pushes: dict[str, float] = field(default_factory=dict[str, float])
    messages: dict[str, float] = field(default_factory=dict[str, float])
    inbound: dict[str, float] = field(default_factory=dict[str, float])
    mails: set[str] = field(default_factory=set[str])
    """Their subjects."""
    burst: set[str] = field(default_factory=set[str])
    handed_ms: list[float] = field(default_factory=list[float])
    """How long it took to hand a push or a mail over."""
    turned_away: int = 0


class Senders:
    """Everybody who sends."""

    def __init__(self, scene: Scene) -> None:
        self._stage = scene.stage
        self.sent = Sent()
        self._numbers = 0

    async def register(self) -> None:
        """A device for the owner of each business."""
        rows = [[self._stage.sandbox.push.register(), one.owner] for one in self._stage.businesses]
        pg = self._stage.system.pg
        async with pg.transaction("devices") as connection, connection.cursor() as cursor:
            await cursor.executemany(_DEVICE, rows)

    async def play(self, seconds: float) -> None:
        """At a steady rate."""
        began, count = time.monotonic(), int(seconds * _PER_S)
        async with asyncio.TaskGroup() as sending:
            for number in range(count):
                await asyncio.sleep(max(0.0, began + number / _PER_S - time.monotonic()))
                self._numbers += 1
                sending.create_task(self._push(self._numbers, self.sent.pushes))
                if number % 2 == 0:
                    sending.create_task(self._message(self._numbers))
                if number % 4 == 0:
                    sending.create_task(self._text(self._numbers))
                if number % 4 == 1:
                    sending.create_task(self._mail(self._numbers))

    async def burst(self) -> None:
        """All for one organisation, at once."""
        names: dict[str, float] = {}
        for _ in range(BURST):
            self._numbers += 1
            await self._push(self._numbers, names, who=0)
        self.sent.burst |= names.keys()

    async def _push(self, number: int, into: dict[str, float], who: int | None = None) -> None:
        quiet = self._stage.businesses[1:] or self._stage.businesses
        business = quiet[number % len(quiet)] if who is None else self._stage.businesses[who]
        name, began = f"push-{number}", time.monotonic()
        if await self._hand_over("push", business, "Nuevo trabajo", name):
            into[name] = began

    async def _mail(self, number: int) -> None:
        business = self._stage.businesses[number % len(self._stage.businesses)]
        subject = f"Resumen {number}"
        if await self._hand_over("email", business, subject, f"mail-{number}"):
            self.sent.mails.add(subject)

    async def _hand_over(self, channel: str, business: Business, title: str, name: str) -> bool:
        """As the web application does it."""
        data = {
            "userId": str(business.owner),
            "title": title,
            "body": "Te asignaron un trabajo",
            "data": {"n": name},
            "organizationId": business.tenant,
        }

        async def act() -> bool:
            try:
                await self._stage.system.dispatch(
                    f"notification:{channel}", data, idempotency_key=f"load-{name}"
                )
            except (Overloaded, StoreUnavailable):
                return False
            return True

        began = time.monotonic()
        is_taken = await self._until(act)
        self.sent.handed_ms.append(1000 * (time.monotonic() - began))
        return is_taken

    async def _message(self, number: int) -> None:
        business = self._stage.businesses[number % len(self._stage.businesses)]
        text, began = f"Su técnico está en camino, {number}", time.monotonic()
        body: dict[str, Any] = {
            "orgId": business.tenant,
            "idempotencyKey": f"load-message-{number:06}",
            "createdAt": datetime.now(UTC).isoformat(),
            "messageType": "text",
            "recipientPhone": f"+549116{number:07}",
            "text": text,
        }

        async def post() -> bool:
            answer = await self._stage.http.post(
                "/api/v1/messages", json=body, headers=business.headers
            )
            return answer.status_code == 202

        if await self._until(post):
            self.sent.messages[text] = began

    async def _text(self, number: int) -> None:
        """A customer writes; the answer goes to their number."""
        whatsapp = self._stage.sandbox.whatsapp
        business = self._stage.businesses[number % len(self._stage.businesses)]
        phone, began = f"549118{number:07}", time.monotonic()
        event = whatsapp.text(phone, "Hola, ¿atienden hoy?", name=f"Cliente {number}")
        url = f"{self._stage.url}/webhooks/whatsapp"

        async def notify() -> bool:
            sent = await whatsapp.notify(url, event, number=business.phone_number_id)
            return sent.status == 200

        if await self._until(notify):
            self.sent.inbound[phone] = began

    async def _until(self, act: Callable[[], Awaitable[bool]]) -> bool:
        for _ in range(_TRIES):
            if await act():
                return True
            self.sent.turned_away += 1
            await asyncio.sleep(_RETRY_S)
        return False
