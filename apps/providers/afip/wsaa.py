"""WSAA, the login service: a signed request for access, a ticket for twelve hours."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from apps.providers.afip import codes
from apps.providers.afip.credentials import Credentials
from apps.providers.afip.errors import (
    AfipError,
    ClockSkewed,
    LoginRefused,
    RateLimited,
    Retryable,
    TicketHeld,
)
from apps.providers.afip.settings import Settings
from apps.providers.afip.soap import Fault, body_of, envelope, fault_of, headers, read
from apps.providers.afip.tickets import Ticket
from apps.providers.http import Answer, Exchange, Unanswered, Unsent
from apps.providers.reading import Unreadable

ARGENTINA: Final = timezone(timedelta(hours=-3))
"""Without summer time since 2009."""

_NAMESPACE: Final = "http://wsaa.view.sua.dvadac.desein.afip.gov"
_OPERATION: Final = "loginCms"
_LEEWAY: Final = timedelta(minutes=10)
"""WSAA tolerates no request of the future, not by a second, so ours is made out for the past."""
_DOWN_FOR: Final = 60.0


class Wsaa:
    """Asks for tickets."""

    def __init__(
        self, settings: Settings, exchange: Exchange, *, now: Callable[[], datetime]
    ) -> None:
        self._settings, self._exchange, self._now = settings, exchange, now

    async def login(self, credentials: Credentials, service: str) -> Ticket:
        """A new ticket."""
        request = credentials.sign(access_request(service, self._now()))
        signed = base64.b64encode(request).decode("ascii")
        answer = await self._post(envelope(_OPERATION, _NAMESPACE, [("in0", signed)]))
        if answer.status != 200:
            raise self._refusal(answer)
        try:
            return _ticket(answer.body, credentials.cuit, service)
        except (Unreadable, ValueError):
            raise _retryable("the login answered with no readable ticket") from None

    async def _post(self, request: bytes) -> Answer:
        try:
            return await self._exchange.ask(
                "POST", self._settings.wsaa_url, content=request, headers=headers("")
            )
        except (Unsent, Unanswered) as failure:
            raise _retryable(f"the login failed: {failure}") from None

    def _refusal(self, answer: Answer) -> AfipError:
        fault = fault_of(answer.body)
        if fault is not None:
            return self._of_fault(fault.code)
        if answer.status == 429:
            return RateLimited(
                "the login asks to wait", operation=_OPERATION, retry_after=answer.retry_after
            )
        return _retryable(f"the login answered with status {answer.status}")

    def _of_fault(self, code: str) -> AfipError:
        if code == codes.ALREADY_AUTHENTICATED:
            return TicketHeld(
                "the login gives no second ticket while the first, which is not here, is new",
                operation=_OPERATION,
                retry_after=self._settings.guard_window.total_seconds(),
            )
        if code in codes.CLOCK:
            return ClockSkewed(
                f"the login finds the clock wrong ({_safe(code)})",
                operation=_OPERATION,
                retry_after=_DOWN_FOR,
            )
        if code not in codes.DOWN and code.startswith(codes.LOGIN_FAMILIES):
            message = f"the login was refused ({_safe(code)})"
            return LoginRefused(message, operation=_OPERATION, code=_safe(code))
        return _retryable(f"the login is out of order ({_safe(code)})", _DOWN_FOR)


def access_request(service: str, now: datetime) -> bytes:
    """The LoginTicketRequest; without source and destination, as the manual advises."""
    here = now.astimezone(ARGENTINA)
    root = Element("loginTicketRequest", version="1.0")
    header = SubElement(root, "header")
    SubElement(header, "uniqueId").text = f"{secrets.randbits(32)}"
    SubElement(header, "generationTime").text = (here - _LEEWAY).isoformat(timespec="seconds")
    SubElement(header, "expirationTime").text = (here + _LEEWAY).isoformat(timespec="seconds")
    SubElement(root, "service").text = service
    return tostring(root, encoding="utf-8", xml_declaration=True)


def _ticket(content: bytes, cuit: str, service: str) -> Ticket:
    body = body_of(content)
    if isinstance(body, Fault):
        raise Unreadable("a fault came with status 200")
    root = read(body.findtext(f"{{{_NAMESPACE}}}loginCmsReturn") or "")
    return Ticket(
        cuit=cuit,
        service=service,
        token=_text(root, "credentials/token"),
        sign=_text(root, "credentials/sign"),
        generated_at=_instant(_text(root, "header/generationTime")),
        expires_at=_instant(_text(root, "header/expirationTime")),
    )


def _text(root: Element, path: str) -> str:
    text = (root.findtext(path) or "").strip()
    if not text:
        raise Unreadable("the ticket lacks a field")
    return text


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=ARGENTINA)


def _safe(code: str) -> str:
    """Codes come from outside, and go into messages: only what looks like one."""
    is_plain = code.isascii() and code.replace(".", "").isalnum() and len(code) <= 40
    return code if is_plain else "unknown"


def _retryable(message: str, retry_after: float | None = None) -> Retryable:
    return Retryable(message, operation=_OPERATION, retry_after=retry_after)
