"""What webhooks tell: messages of customers, statuses of ours.

Both may come twice and in any order. A message is known by its id; a status by `Status.key`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from apps.providers.reading import Unreadable
from apps.providers.whatsapp.error_code import Kind, code_of
from apps.providers.whatsapp.fields import Fields

InboundKind: TypeAlias = Literal["voice", "audio", "image", "document", "video", "sticker"]
T = TypeVar("T")

_MEDIA: Final = ("audio", "image", "document", "video", "sticker")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedError:
    """Why something did not work."""

    code: int
    title: str
    details: str = field(default="", repr=False)

    @property
    def kind(self) -> Kind:
        """What to do about it; what is not known is taken for permanent."""
        found = code_of(self.code)
        return "permanent" if found is None else found.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """A message of a customer."""

    id: str
    sender: str
    """The customer's number, in digits."""
    sender_name: str = field(default="", repr=False)
    at: datetime
    phone_number_id: str
    """Which of our numbers it was sent to: whose customer it is."""
    reply_to: str = ""
    """The id of the message that it answers, if it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMessage(Inbound):
    """Words."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaMessage(Inbound):
    """A file, which can be had by its id."""

    kind: InboundKind
    """A recording made in the chat is `voice`, another sound `audio`."""
    media_id: str
    mime_type: str
    sha256: str = ""
    caption: str = field(default="", repr=False)
    filename: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyMessage(Inbound):
    """A button or an entry of a list that was chosen."""

    reply_id: str
    """What we gave it: the id of the button, or the payload of a template's."""
    title: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherMessage(Inbound):
    """One of a type that is not read here, such as a location, or that WhatsApp cannot show."""

    type: str
    errors: tuple[ReportedError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How far a message of ours has come."""

    message_id: str
    status: str
    """`sent`, `delivered`, `read`, `played` or `failed`; `failed` may follow `sent`."""
    at: datetime
    recipient: str
    phone_number_id: str
    callback_data: str = ""
    """What `send` was given: how to know the message if its id was never told."""
    errors: tuple[ReportedError, ...] = ()

    @property
    def key(self) -> str:
        """The same for the same news."""
        return f"{self.message_id}:{self.status}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """All that one webhook tells."""

    messages: tuple[Inbound, ...] = ()
    statuses: tuple[Status, ...] = ()
    errors: tuple[ReportedError, ...] = ()
    """Of the account, not of one message."""
    skipped: int = 0
    """How many could not be read; the others can."""


class _Reader:
    """Reads entry by entry; one that is odd does not lose the others."""

    def __init__(self) -> None:
        self.messages: list[Inbound] = []
        self.statuses: list[Status] = []
        self.errors: list[ReportedError] = []
        self.skipped = 0

    def read(self, envelope: Fields) -> Batch:
        for entry in self._each(envelope, "entry", lambda one: one):
            for change in self._each(entry, "changes", lambda one: one):
                self._change(change)
        return Batch(
            messages=tuple(self.messages),
            statuses=tuple(self.statuses),
            errors=tuple(self.errors),
            skipped=self.skipped,
        )

    def _change(self, change: Fields) -> None:
        try:
            if change.text("field") != "messages":
                return
            value = change.inner("value")
            number = value.inner("metadata").text("phone_number_id")
        except Unreadable:
            self.skipped += 1
            return
        names = dict(self._each(value, "contacts", _name))
        self.messages += self._each(value, "messages", lambda one: _message(one, number, names))
        self.statuses += self._each(value, "statuses", lambda one: _status(one, number))
        self.errors += self._each(value, "errors", _error)

    def _each(self, inside: Fields, name: str, read: Callable[[Fields], T]) -> list[T]:
        found: list[T] = []
        try:
            values = inside.items(name)
        except Unreadable:
            self.skipped += 1
            return []
        for value in values:
            try:
                found.append(read(Fields(value)))
            except Unreadable:
                self.skipped += 1
        return found


def read_batch(value: object) -> Batch:
    """What an envelope holds; refuses one that is not WhatsApp's."""
    envelope = Fields(value)
    if envelope.text_or_empty("object") != "whatsapp_business_account":
        raise Unreadable("it is not of a whatsapp account")
    return _Reader().read(envelope)


def _name(contact: Fields) -> tuple[str, str]:
    return contact.text_or_empty("wa_id"), contact.inner("profile").text_or_empty("name")


def _message(one: Fields, number: str, names: dict[str, str]) -> Inbound:
    sender, type_ = one.text("from"), one.text("type")
    base: dict[str, Any] = {
        "id": one.text("id"),
        "sender": sender,
        "sender_name": names.get(sender, ""),
        "at": one.instant("timestamp"),
        "phone_number_id": number,
        "reply_to": one.inner("context").text_or_empty("id"),
    }
    if type_ == "text":
        return TextMessage(**base, text=one.inner("text").text("body"))
    if type_ in _MEDIA:
        return _media(one.inner(type_), type_, base)
    if type_ in {"interactive", "button"}:
        return _reply(one.inner(type_), base)
    errors = tuple(_error(each) for each in one.objects("errors"))
    return OtherMessage(**base, type=type_, errors=errors)


def _media(media: Fields, type_: str, base: dict[str, Any]) -> MediaMessage:
    return MediaMessage(
        **base,
        kind=cast("InboundKind", "voice" if media.is_true("voice") else type_),
        media_id=media.text("id"),
        mime_type=media.text("mime_type"),
        sha256=media.text_or_empty("sha256"),
        caption=media.text_or_empty("caption"),
        filename=media.text_or_empty("filename"),
    )


def _reply(reply: Fields, base: dict[str, Any]) -> Inbound:
    kind = reply.text_or_empty("type")
    if kind in {"button_reply", "list_reply"}:
        chosen = reply.inner(kind)
        return ReplyMessage(**base, reply_id=chosen.text("id"), title=chosen.text("title"))
    if not kind:  # the button of a template
        return ReplyMessage(**base, reply_id=reply.text("payload"), title=reply.text("text"))
    return OtherMessage(**base, type=kind)


def _status(one: Fields, number: str) -> Status:
    return Status(
        message_id=one.text("id"),
        status=one.text("status"),
        at=one.instant("timestamp"),
        recipient=one.text_or_empty("recipient_id"),
        phone_number_id=number,
        callback_data=one.text_or_empty("biz_opaque_callback_data"),
        errors=tuple(_error(each) for each in one.objects("errors")),
    )


def _error(one: Fields) -> ReportedError:
    return ReportedError(
        code=one.whole("code"),
        title=one.text_or_empty("title"),
        details=one.inner("error_data").text_or_empty("details"),
    )
