"""SOAP 1.1 envelopes: written with escaped text, read without entities and document types."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring

from apps.providers.reading import Unreadable

SOAP: Final = "http://schemas.xmlsoap.org/soap/envelope/"

Node = tuple[str, "str | int | Iterable[Node] | None"]
"""A name and its text, number or children; None leaves it out."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A SOAP fault."""

    code: str
    """Without its prefix: `cms.bad`, `Client`."""


def headers(action: str) -> dict[str, str]:
    """Those of a request."""
    return {"content-type": "text/xml; charset=utf-8", "soapaction": f'"{action}"'}


def envelope(name: str, namespace: str, content: Iterable[Node]) -> bytes:
    """A message with the element of an operation."""
    inner = "".join(map(_written, content))
    return (
        f'<?xml version="1.0" encoding="utf-8"?><soap:Envelope xmlns:soap="{SOAP}"><soap:Body>'
        f'<{name} xmlns="{namespace}">{inner}</{name}></soap:Body></soap:Envelope>'
    ).encode()


def _written(node: Node) -> str:
    name, content = node
    if content is None:
        return ""
    if isinstance(content, str | int):
        return f"<{name}>{escape(f'{content}')}</{name}>"
    return f"<{name}>{''.join(map(_written, content))}</{name}>"


def read(content: bytes | str) -> Element:
    """Parse what came from outside."""
    try:
        return fromstring(content, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError):
        raise Unreadable("the answer is not readable XML") from None


def body_of(content: bytes) -> Element | Fault:
    """What an envelope holds: the element of an answer, or a fault."""
    body = read(content).find(f"{{{SOAP}}}Body")
    if body is None or len(body) == 0:
        raise Unreadable("the answer has no SOAP body")
    if body[0].tag != f"{{{SOAP}}}Fault":
        return body[0]
    code = (body[0].findtext("faultcode") or "").strip()
    return Fault(code.rpartition(":")[2])


def fault_of(content: bytes) -> Fault | None:
    """The fault in an answer, if it is one."""
    try:
        found = body_of(content)
    except Unreadable:
        return None
    return found if isinstance(found, Fault) else None


def repaired(text: str) -> str:
    """Some texts are UTF-8 that was taken for Latin-1 on the way; those that were not stay."""
    for encoding in ("latin-1", "cp1252"):
        try:
            return text.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
    return text
