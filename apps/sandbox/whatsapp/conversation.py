"""What customers and the number have said to each other, as news for webhooks."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from apps.sandbox.whatsapp.delivery import Event
from apps.sandbox.whatsapp.graph_error import title_of
from apps.sandbox.whatsapp.media import File

StatusName = Literal["sent", "delivered", "read", "played", "failed"]

DISPLAYED: Final = "5491155550000"
"""The number itself."""
WINDOW_S: Final = 24 * 3600
_ERRORS_PAGE: Final = "https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes/"


@dataclass(slots=True, kw_only=True)
class Outbound:
    """A message that one of the numbers has sent."""

    id: str
    number: str
    """Which one: its news are told in its name."""
    body: Mapping[str, Any]
    at: float
    statuses: list[str] = field(default_factory=list[str])

    @property
    def to(self) -> str:
        """Who gets it."""
        return self.body["to"]

    @property
    def is_template(self) -> bool:
        """Whether it may begin a conversation."""
        return self.body.get("type") == "template"


class Conversation:
    """Messages in both directions."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.sent: dict[str, Outbound] = {}
        self.received: dict[str, Event] = {}
        self.read: set[str] = set()
        self._last_heard: dict[str, float] = {}
        self._numbers = itertools.count(1)

    def take(self, body: Mapping[str, Any], number: str) -> Outbound:
        """Keep a message of ours."""
        name = self._new_id(body["to"])
        message = Outbound(id=name, number=number, body=body, at=self.clock())
        self.sent[message.id] = message
        return message

    def is_open(self, customer: str) -> bool:
        """Whether they have written in the last 24 hours."""
        return self.clock() - self._last_heard.get(customer, -WINDOW_S) < WINDOW_S

    def hear(
        self,
        sender: str,
        type_: str,
        content: Mapping[str, Any],
        *,
        name: str = "Ana",
        reply_to: str = "",
        at: float | None = None,
    ) -> Event:
        """A customer says something."""
        at = self.clock() if at is None else at
        value: dict[str, Any] = {
            "from": sender,
            "id": self._new_id(sender),
            "timestamp": str(int(at)),
            "type": type_,
            type_: content,
        }
        if reply_to:
            value["context"] = {"from": DISPLAYED, "id": reply_to}
        contact = {"profile": {"name": name}, "wa_id": sender}
        event = Event(id=value["id"], kind="messages", value=value, contact=contact)
        self.received[event.id] = event
        self._last_heard[sender] = max(at, self._last_heard.get(sender, at))
        return event

    def status(self, message: Outbound, status: StatusName, error: int | None = None) -> Event:
        """Something happens to a message of ours."""
        if (status == "failed") != (error is not None):
            raise ValueError("an error must be given with failed, and with nothing else")
        message.statuses.append(status)
        value: dict[str, Any] = {
            "id": message.id,
            "status": status,
            "timestamp": str(int(self.clock())),
            "recipient_id": message.to,
        }
        if data := message.body.get("biz_opaque_callback_data"):
            value["biz_opaque_callback_data"] = data
        if error is not None:
            value["errors"] = [error_json(error)]
        else:
            category = "utility" if message.is_template else "service"
            value["pricing"] = {"billable": True, "pricing_model": "PMP", "category": category}
        return Event(id=message.id, kind="statuses", value=value)

    def _new_id(self, phone: str) -> str:
        text = f"{phone}:{next(self._numbers):012d}"
        return f"wamid.{base64.b64encode(text.encode()).decode()}"


def file_json(file: File, **more: Any) -> dict[str, Any]:
    """A file as a message shows it; its digest is written otherwise than by the API."""
    sha256 = base64.b64encode(file.sha256).decode()
    return {"id": file.id, "mime_type": file.mime_type, "sha256": sha256, **more}


def error_json(code: int) -> dict[str, Any]:
    """An error as webhooks show it."""
    title = title_of(code)
    return {
        "code": code,
        "title": title,
        "message": title,
        "error_data": {"details": title},
        "href": _ERRORS_PAGE,
    }
