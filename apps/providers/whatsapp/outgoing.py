"""Messages to send, checked against WhatsApp's rules before they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from apps.providers.whatsapp.errors import Invalid

MediaKind: TypeAlias = Literal["image", "video", "audio", "document", "sticker"]

_PHONE: Final = re.compile(r"\+?(\d{8,15})", re.ASCII)
_NAME: Final = re.compile(r"[a-z0-9_]{1,512}")
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(_[A-Z]{2})?")
_LINK: Final = re.compile(r"https?://[^\s/]+\S*")
_BROKEN: Final = re.compile(r"[\n\r\t]| {5}")
_WITH_CAPTION: Final = ("image", "video", "document")


def phone_digits(phone: str) -> str:
    """A number with its country, as WhatsApp wants it: `+5491155550000` without the plus."""
    found = _PHONE.fullmatch(phone)
    if not found:
        raise Invalid("a phone number must have 8 to 15 digits, with the country's first")
    return found[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Plain text, within 24 h of the customer's last message."""

    body: str = field(repr=False)
    has_preview: bool = False
    """Whether a link in it is shown with a preview."""

    def __post_init__(self) -> None:
        _check_length("body", self.body, 4096)

    def as_json(self) -> dict[str, Any]:
        """As WhatsApp reads it."""
        return {"type": "text", "text": {"body": self.body, "preview_url": self.has_preview}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """A file: one that was uploaded (`id`), or one that WhatsApp fetches (`link`)."""

    kind: MediaKind
    id: str = ""
    link: str = field(default="", repr=False)
    caption: str = field(default="", repr=False)
    filename: str = ""
    """What a document is called."""

    def __post_init__(self) -> None:
        if bool(self.id) == bool(self.link):
            raise Invalid("exactly one of id and link must be given")
        if self.link and not _LINK.fullmatch(self.link):
            raise Invalid("link must be an http or https address")
        if self.caption and self.kind not in _WITH_CAPTION:
            raise Invalid(f"caption must not be given with {self.kind}")
        if self.filename and self.kind != "document":
            raise Invalid(f"filename must be given with documents only, got {self.kind}")
        if self.caption:
            _check_length("caption", self.caption, 1024)

    def as_json(self) -> dict[str, Any]:
        """As WhatsApp reads it; a header of a template has the same form."""
        where = {"id": self.id} if self.id else {"link": self.link}
        more = {"caption": self.caption, "filename": self.filename}
        return {
            "type": self.kind,
            self.kind: where | {name: value for name, value in more.items() if value},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateButton:
    """The variable part of a template's button: the end of its link, or what its reply carries."""

    index: int
    kind: Literal["url", "quick_reply"]
    value: str = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """As WhatsApp reads it."""
        name = "text" if self.kind == "url" else "payload"
        return {
            "type": "button",
            "sub_type": self.kind,
            "index": str(self.index),
            "parameters": [{"type": name, name: self.value}],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A message that Meta has approved; the only kind that may begin a conversation."""

    name: str
    language: str = "es_AR"
    parameters: Sequence[str] = field(default=(), repr=False)
    """What stands for {{1}}, {{2}} and so on in its text."""
    header: str | Media | None = field(default=None, repr=False)
    """What stands for the one variable of its header."""
    buttons: Sequence[TemplateButton] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise Invalid("the name of a template must have lower-case letters, digits and _ only")
        if not _LANGUAGE.fullmatch(self.language):
            raise Invalid("language must be a code such as es_AR")
        if isinstance(self.parameters, str):
            raise Invalid("parameters must be a list of texts, got one text")
        for one in self.parameters:
            _check_length("a parameter", one, 1024)
            if _BROKEN.search(one):
                raise Invalid("a parameter must not have line breaks, tabs or five spaces in a row")
        if isinstance(self.header, str):
            _check_length("header", self.header, 60)

    def as_json(self) -> dict[str, Any]:
        """As WhatsApp reads it."""
        template = {
            "name": self.name,
            "language": {"code": self.language, "policy": "deterministic"},
            "components": self._components(),
        }
        return {"type": "template", "template": template}

    def _components(self) -> list[dict[str, Any]]:
        components: list[dict[str, Any]] = []
        if self.header is not None:
            components.append({"type": "header", "parameters": [_parameter(self.header)]})
        if self.parameters:
            values = [_parameter(one) for one in self.parameters]
            components.append({"type": "body", "parameters": values})
        return components + [one.as_json() for one in self.buttons]


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """One answer to choose."""

    id: str
    """What comes back when it is chosen."""
    title: str

    def __post_init__(self) -> None:
        _check_length("id", self.id, 256)
        _check_length("title", self.title, 20)

    def as_json(self) -> dict[str, Any]:
        """As WhatsApp reads it."""
        return {"type": "reply", "reply": {"id": self.id, "title": self.title}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Buttons:
    """Text with up to three answers to choose from."""

    body: str = field(repr=False)
    buttons: Sequence[Button]
    header: str = field(default="", repr=False)
    footer: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        _check_length("body", self.body, 1024)
        if not 1 <= len(self.buttons) <= 3:
            raise Invalid(f"buttons must be 1 to 3, got {len(self.buttons)}")
        if len({one.id for one in self.buttons}) < len(self.buttons):
            raise Invalid("buttons must have different ids")
        for name in ("header", "footer"):
            if given := getattr(self, name):
                _check_length(name, given, 60)

    def as_json(self) -> dict[str, Any]:
        """As WhatsApp reads it."""
        interactive: dict[str, Any] = {
            "type": "button",
            "body": {"text": self.body},
            "action": {"buttons": [one.as_json() for one in self.buttons]},
        }
        if self.header:
            interactive["header"] = {"type": "text", "text": self.header}
        if self.footer:
            interactive["footer"] = {"text": self.footer}
        return {"type": "interactive", "interactive": interactive}


Message: TypeAlias = Text | Media | Template | Buttons


def _parameter(value: str | Media) -> dict[str, Any]:
    return {"type": "text", "text": value} if isinstance(value, str) else value.as_json()


def _check_length(what: str, text: str, most: int) -> None:
    if not 0 < len(text) <= most:
        raise Invalid(f"{what} must have 1 to {most} characters, got {len(text)}")
