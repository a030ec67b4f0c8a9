"""What a message must be; names that WhatsApp does not know are refused, as it does."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import urlsplit

from apps.sandbox.whatsapp.graph_error import Refused
from apps.sandbox.whatsapp.template import ApprovedTemplate

_PHONE: Final = re.compile(r"\d{8,15}", re.ASCII)
_COMMON: Final = frozenset(
    {"messaging_product", "recipient_type", "to", "type", "context", "biz_opaque_callback_data"}
)
_MEDIA: Final = ("image", "video", "audio", "document", "sticker")
_WITH_CAPTION: Final = ("image", "video", "document")
_LONGEST_DATA: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCheck:
    """The rules, and what they depend on."""

    templates: Mapping[tuple[str, str], ApprovedTemplate]
    media_ids: Collection[str]

    def __call__(self, body: Mapping[str, Any]) -> None:
        """Refuse a message that is against the rules."""
        type_ = _text(body, "type", 20) if "type" in body else "text"
        checks: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "text": _check_text,
            "template": self._check_template,
            "interactive": _check_interactive,
            **{kind: lambda given, kind=kind: self._check_media(kind, given) for kind in _MEDIA},
        }
        if type_ not in checks:
            raise Refused(131009, f"type {type_} is not supported")
        _known("message", body, _COMMON | {type_})
        if body.get("recipient_type", "individual") != "individual":
            raise Refused(131009, "recipient_type must be individual")
        if not _PHONE.fullmatch(_text(body, "to", 20)):
            raise Refused(131009, "to must have 8 to 15 digits")
        if "context" in body:
            context = _object(body, "context")
            _known("context", context, {"message_id"})
            _text(context, "message_id", 512)
        if "biz_opaque_callback_data" in body:
            _text(body, "biz_opaque_callback_data", _LONGEST_DATA)
        checks[type_](_object(body, type_))

    def _check_media(self, kind: str, media: Mapping[str, Any]) -> None:
        more = {"caption"} if kind in _WITH_CAPTION else set[str]()
        more |= {"filename"} if kind == "document" else set[str]()
        _known(kind, media, {"id", "link"} | more)
        if ("id" in media) == ("link" in media):
            raise Refused(100, f"{kind} must have exactly one of id and link")
        if "id" in media and media["id"] not in self.media_ids:
            raise Refused(131009, f"{kind}: there is no such media id")
        if "link" in media and not _is_url(_text(media, "link", 2048)):
            raise Refused(131009, f"{kind}: link is not valid")
        if "caption" in media:
            _text(media, "caption", 1024)
        if "filename" in media:
            _text(media, "filename", 240)

    def _check_template(self, template: Mapping[str, Any]) -> None:
        _known("template", template, {"name", "language", "components"})
        name, language = _text(template, "name", 512), _object(template, "language")
        _known("language", language, {"code", "policy"})
        if language.get("policy", "deterministic") != "deterministic":
            raise Refused(131009, "policy must be deterministic")
        code = _text(language, "code", 10)
        found = self.templates.get((name, code))
        if found is None:
            raise Refused(132001, f"template name ({name}) does not exist in {code}")
        found.check(template.get("components", []))


def _check_text(text: Mapping[str, Any]) -> None:
    _known("text", text, {"body", "preview_url"})
    _text(text, "body", 4096)
    if not isinstance(text.get("preview_url", False), bool):
        raise Refused(100, "preview_url must be a boolean")


def _check_interactive(interactive: Mapping[str, Any]) -> None:
    _known("interactive", interactive, {"type", "header", "body", "footer", "action"})
    if interactive.get("type") != "button":
        raise Refused(131009, "only interactive messages of type button are supported")
    _text(_object(interactive, "body"), "text", 1024)
    if "header" in interactive:
        header = _object(interactive, "header")
        if header.get("type") != "text":
            raise Refused(131009, "header must be a text")
        _text(header, "text", 60)
    if "footer" in interactive:
        _text(_object(interactive, "footer"), "text", 60)
    _check_buttons(_object(interactive, "action").get("buttons"))


def _check_buttons(buttons: Any) -> None:
    if not isinstance(buttons, list):
        raise Refused(131008, "buttons are required")
    given = cast("list[Any]", buttons)
    if not 1 <= len(given) <= 3:
        raise Refused(131009, "buttons must be 1 to 3")
    ids: set[str] = set()
    for one in given:
        if not isinstance(one, dict) or one.get("type") != "reply":
            raise Refused(131009, "a button must be a reply")
        reply = _object(cast("dict[str, Any]", one), "reply")
        ids.add(_text(reply, "id", 256))
        _text(reply, "title", 20)
    if len(ids) < len(given):
        raise Refused(131009, "buttons must have different ids")


def _object(inside: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = inside.get(name)
    if value is None:
        raise Refused(131008, f"The parameter {name} is required")
    if not isinstance(value, dict):
        raise Refused(100, f"Param {name} must be a JSON object")
    return cast("dict[str, Any]", value)


def _text(inside: Mapping[str, Any], name: str, most: int) -> str:
    value = inside.get(name)
    if value is None or value == "":
        raise Refused(131008, f"The parameter {name} is required")
    if not isinstance(value, str):
        raise Refused(100, f"Param {name} must be a string")
    if len(value) > most:
        raise Refused(100, f"Param {name} must be at most {most} characters long")
    return value


def _known(what: str, value: Mapping[str, Any], known: Collection[str]) -> None:
    if unknown := sorted(value.keys() - set(known)):
        raise Refused(100, f"Unexpected key of {what}: {', '.join(unknown)}")


def _is_url(text: str) -> bool:
    parts = urlsplit(text)
    return parts.scheme in {"http", "https"} and bool(parts.netloc)
