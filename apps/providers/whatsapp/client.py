"""A client of the WhatsApp Cloud API: messages, marks, media.

A good answer to `send` says that WhatsApp has taken the message; whether it arrives is told later,
by webhooks. Nothing is sent twice here: see `errors.py` for what to do after an unknown outcome.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Self

import httpx

from apps.providers.reading import Unreadable
from apps.providers.whatsapp.download import StoredMedia, download
from apps.providers.whatsapp.errors import Invalid, MediaTooLarge, Retryable
from apps.providers.whatsapp.exchange import Exchange, Request
from apps.providers.whatsapp.fields import Fields
from apps.providers.whatsapp.outgoing import Message, phone_digits
from apps.providers.whatsapp.settings import Settings

_MEDIA_ID: Final = re.compile(r"\d{1,32}", re.ASCII)
_MIME: Final = re.compile(r"[a-z]+/[A-Za-z0-9.+-]+(; ?codecs=[a-z0-9]+)?")
_LONGEST_DATA: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A message that WhatsApp has taken."""

    message_id: str
    """Statuses name it."""
    wa_id: str
    """The recipient as WhatsApp knows them, which may differ from the number that was given."""
    status: str
    """`accepted`, or `held_for_quality_assessment`, `paused`."""

    @classmethod
    def read(cls, found: Fields) -> Self:
        """From the answer."""
        messages, contacts = found.objects("messages"), found.objects("contacts")
        if len(messages) != 1:
            raise Unreadable("there is not one message")
        return cls(
            message_id=messages[0].text("id"),
            wa_id=contacts[0].text_or_empty("wa_id") if contacts else "",
            status=messages[0].text_or_empty("message_status") or "accepted",
        )


class Client:
    """Sends from one number; the connections are the caller's."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient) -> None:
        self._settings, self._http = settings, http
        self._exchange = Exchange(settings, http)

    async def send(
        self, to: str, message: Message, *, reply_to: str = "", callback_data: str = ""
    ) -> Sent:
        """Send a message; `callback_data` comes back with its statuses: an id of our own."""
        if len(callback_data) > _LONGEST_DATA:
            raise Invalid(f"callback_data must have at most {_LONGEST_DATA} characters")
        body: dict[str, Any] = {
            "messaging_product": "whatsapp",
            "recipient_type": "individual",
            "to": phone_digits(to),
            **message.as_json(),
        }
        if reply_to:
            body["context"] = {"message_id": reply_to}
        if callback_data:
            body["biz_opaque_callback_data"] = callback_data
        return await self._exchange.ask(self._post("messages", body=body, is_send=True), Sent.read)

    async def mark_read(self, message_id: str) -> None:
        """Show the customer that their message was read."""
        body = {"messaging_product": "whatsapp", "status": "read", "message_id": message_id}
        request = self._post("messages", body=body)
        if not await self._exchange.ask(request, lambda found: found.is_true("success")):
            raise Retryable("whatsapp did not say that it marked a message")

    async def upload_media(self, data: bytes, mime_type: str, *, filename: str = "file") -> str:
        """Keep a file at WhatsApp, for about 30 days; its id."""
        if not data or not _MIME.fullmatch(mime_type):
            raise Invalid("a file must have content and a type such as audio/ogg")
        request = self._post(
            "media",
            form={"messaging_product": "whatsapp", "type": mime_type},
            file=(filename, data, mime_type),
        )
        return await self._exchange.ask(request, lambda found: found.text("id"))

    async def get_media(self, media_id: str) -> StoredMedia:
        """Where a file is, for the next five minutes; only one of this number's."""
        if not _MEDIA_ID.fullmatch(media_id):
            raise Invalid("media_id must have digits only")
        request = Request(
            method="GET",
            path=f"/{media_id}",
            query={"phone_number_id": self._settings.phone_number_id},
        )
        return await self._exchange.ask(request, StoredMedia.read)

    async def download_media(self, media: StoredMedia, *, most_bytes: int | None = None) -> bytes:
        """The content of a file; an address is good once, and a `MediaGone` asks for a new one."""
        most = self._settings.most_media_bytes if most_bytes is None else most_bytes
        if media.size > most:
            raise MediaTooLarge(f"a file must have at most {most} bytes, got {media.size}")
        return await download(self._settings, self._http, media.url, most_bytes=most)

    def _post(self, what: str, **more: Any) -> Request:
        return Request(method="POST", path=f"/{self._settings.phone_number_id}/{what}", **more)
