"""The request for access (LoginTicketRequest) that WSAA finds in a signed message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Final
from xml.etree.ElementTree import Element

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring

ARGENTINA: Final = timezone(timedelta(hours=-3))
_DAY: Final = timedelta(hours=24)
_SERVICE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{2,31}")
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_DESTINATION: Final = "cn=wsaahomo,o=afip,c=ar,serialnumber=cuit33693450239"
_HEADER: Final = ("source", "destination", "uniqueId", "generationTime", "expirationTime")


class BadRequest(Exception):
    """The request is refused with this code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequest:
    """What is asked for."""

    service: str
    source: str | None
    destination: str | None
    generated_at: datetime
    expires_at: datetime


def read_request(content: bytes) -> AccessRequest:
    """Read it against its schema: no namespace, exact names, no others."""
    try:
        root = fromstring(content, forbid_dtd=True)
        return _read(root)
    except (ParseError, DefusedXmlException, ValueError, LookupError):
        raise BadRequest("xml.bad") from None


def check_request(request: AccessRequest, subject: str, now: datetime) -> None:
    """Refuse names that are not those of this login, and times that are not now."""
    if request.source is not None and _name(request.source) != _name(subject):
        raise BadRequest("xml.source.invalid")
    if request.destination is not None and _name(request.destination) != _DESTINATION:
        raise BadRequest("xml.destination.invalid")
    if not now - _DAY <= request.generated_at <= now:
        raise BadRequest("xml.generationTime.invalid")
    if request.expires_at < now:
        raise BadRequest("xml.expirationTime.expired")
    if request.expires_at > now + _DAY:
        raise BadRequest("xml.expirationTime.invalid")


def _read(root: Element) -> AccessRequest:
    header, service = root
    names = [one.tag for one in header]
    is_known = (root.tag, header.tag, service.tag) == ("loginTicketRequest", "header", "service")
    if not is_known or names != [name for name in _HEADER if name in names]:
        raise ValueError("an element is missing, unknown or out of order")
    if float(root.get("version", "1.0")) != 1.0:
        raise BadRequest("xml.version.notSupported")
    fields = {one.tag: (one.text or "").strip() for one in header}
    if not 0 <= int(fields["uniqueId"]) < 2**32:
        raise ValueError("the id must have 32 bits")
    if not _SERVICE.fullmatch((service.text or "").strip()):
        raise ValueError("the service has no name")
    return AccessRequest(
        service=(service.text or "").strip(),
        source=fields.get("source"),
        destination=fields.get("destination"),
        generated_at=_instant(fields["generationTime"]),
        expires_at=_instant(fields["expirationTime"]),
    )


def _instant(text: str) -> datetime:
    """A time without offset is one of Argentina."""
    if not _INSTANT.fullmatch(text):
        raise ValueError("this is no instant")
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=ARGENTINA)


def _name(text: str) -> str:
    """Names are compared whatever their case and spaces are."""
    return text.replace(" ", "").lower()
