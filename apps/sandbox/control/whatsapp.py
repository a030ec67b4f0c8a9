"""Customers and the network of WhatsApp. Those marked * are told to the webhook.

add_number    id: another number of the account
add_template  name, parameters, language, header, buttons, state
text *        sender, body, number, name, reply_to → id
voice *       sender, text and seconds of a recording (or `audio` in Base64), … → id, media_id
choice *      sender, reply_id, title, … → id: a button is pressed
deliver *     message_id, statuses (such as ["sent", "delivered"] or ["read"]), error
messages      (a list) what the numbers have sent: id, number, to, statuses, body
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from apps.sandbox.control.act import Acts, Given, one_of
from apps.sandbox.control.telling import Telling
from apps.sandbox.openai.spoken import spoken
from apps.sandbox.whatsapp import ApprovedTemplate, Delivery, Event, WhatsApp


class _Number(Given, frozen=True, kw_only=True):
    id: str


class _Template(Given, frozen=True, kw_only=True):
    name: str
    language: str = "es_AR"
    parameters: int = 0
    header: Literal["text", "image", "video", "document"] | None = None
    buttons: tuple[Literal["url", "quick_reply"], ...] = ()
    state: Literal["approved", "paused", "disabled"] = "approved"


class _Said(Given, frozen=True, kw_only=True):
    sender: str
    number: str = ""
    """Which number it is said to; empty: the first."""
    name: str = "Ana"
    reply_to: str = ""

    @property
    def more(self) -> dict[str, Any]:
        return {"name": self.name, "reply_to": self.reply_to}


class _Text(_Said, frozen=True, kw_only=True):
    body: str


class _Voice(_Said, frozen=True, kw_only=True):
    text: str = ""
    seconds: float = 3.0
    audio: bytes | None = None


class _Choice(_Said, frozen=True, kw_only=True):
    reply_id: str
    title: str


class _News(Given, frozen=True, kw_only=True):
    message_id: str
    statuses: tuple[Literal["sent", "delivered", "read", "played"], ...] = ("sent", "delivered")
    error: int | None = None
    number: str = ""
    """In whose name; empty: of the number that has sent it."""


def whatsapp_acts(whatsapp: WhatsApp, telling: Telling) -> Acts:
    """What can happen."""
    acts, said = Acts(), _Spoken(whatsapp, telling)

    def add_template(given: _Template) -> None:
        made = ApprovedTemplate(**{one: getattr(given, one) for one in given.__struct_fields__})
        whatsapp.templates[made.name, made.language] = made

    acts.on("add_number", _Number, lambda given: whatsapp.numbers.add(given.id))
    acts.on("add_template", _Template, add_template)
    acts.on("text", _Text, said.text)
    acts.on("voice", _Voice, said.voice)
    acts.on("choice", _Choice, said.choice)
    acts.on("deliver", _News, said.deliver)
    acts.things["messages"] = lambda: _messages(whatsapp)
    return acts


class _Spoken:
    def __init__(self, whatsapp: WhatsApp, telling: Telling) -> None:
        self._whatsapp, self._telling = whatsapp, telling

    def text(self, given: _Text) -> dict[str, str]:
        url, number = self._where(given.number)
        event = self._whatsapp.text(given.sender, given.body, **given.more)
        return self._tell(url, number, event)

    def voice(self, given: _Voice) -> dict[str, str]:
        url, number = self._where(given.number)
        sound = spoken(given.text, given.seconds) if given.audio is None else given.audio
        event = self._whatsapp.voice(given.sender, sound, **given.more)
        return {**self._tell(url, number, event), "media_id": event.value["audio"]["id"]}

    def choice(self, given: _Choice) -> dict[str, str]:
        url, number = self._where(given.number)
        event = self._whatsapp.choice(given.sender, given.reply_id, given.title, **given.more)
        return self._tell(url, number, event)

    def deliver(self, given: _News) -> None:
        sent = one_of(self._whatsapp.conversation.sent, given.message_id, "message_id")
        url, number = self._where(given.number or sent.number)
        self._tell(url, number, *self._whatsapp.news(sent.id, given.statuses, given.error))

    def _where(self, number: str) -> tuple[str, str]:
        if number and number not in self._whatsapp.numbers:
            raise LookupError(f"number must be one of the account, got {number!r}")
        return self._telling.url("whatsapp"), number or self._whatsapp.phone_number_id

    def _tell(self, url: str, number: str, *events: Event) -> dict[str, str]:
        sent: list[Delivery] = []

        async def attempt() -> bool:
            """The same request again, as Meta does."""
            if sent:
                sent[0] = await self._whatsapp.replay(sent[0])
            else:
                sent.append(await self._whatsapp.notify(url, *events, number=number))
            return self._whatsapp.webhooks.is_taken(sent[0])

        self._telling.tell(attempt)
        return {"id": events[0].id}


def _messages(whatsapp: WhatsApp) -> Iterable[dict[str, Any]]:
    return [
        {
            "id": one.id,
            "number": one.number,
            "to": one.to,
            "statuses": one.statuses,
            "body": one.body,
        }
        for one in whatsapp.conversation.sent.values()
    ]
