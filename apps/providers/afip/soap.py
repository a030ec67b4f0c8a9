"""SOAP 1.1 envelopes: written with escaped text, read without entities and document types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring

from apps.providers.reading import Unreadable

SOAP: Final = "http://schemas.xmlsoap.org/soap/envelope/"


@dataclass(frozen=True, slots=True)
class Fault:
    """A SOAP fault."""

    code: str
    """Without its prefix: `cms.bad`, `Client`."""


def headers(action: str) -> dict[str, str]:
    """Those of a request."""
    return {"content-type": "text/xml; charset=utf-8", "soapaction": f'"{action}"'}


def envelope(body: Element) -> bytes:
    """A message around the element of an operation."""
    root = Element(f"{{{SOAP}}}Envelope")
    SubElement(root, f"{{{SOAP}}}Body").append(body)
    return tostring(root, encoding="utf-8", xml_declaration=True)


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
