"""SOAP around WSFEv1: which operation a request is for, and how answers and faults are wrapped.

Not like the real one: SOAP 1.2 is not spoken, and there are neither WSDL nor help pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from xml.etree.ElementTree import Element

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring
from starlette.responses import Response

from apps.sandbox.afip.access_request import ARGENTINA
from apps.sandbox.afip.fields import NAMESPACE, Fields, qualified
from apps.sandbox.afip.texts import text_of
from apps.sandbox.afip.xml import DECLARATION, SCHEMAS, SOAP, node, xml_response
from apps.sandbox.stand_in import Reply

UNKNOWN: Final = "?"
"""The operation of requests that cannot be told."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request for an operation."""

    operation: str
    fields: Fields


class BadCall(Exception):
    """A request that is refused before any operation looks at it."""

    def __init__(self, response: Response, operation: str = UNKNOWN) -> None:
        super().__init__(operation)
        self.response, self.operation = response, operation


def read_call(action: str | None, body: bytes, operations: Iterable[str]) -> Call:
    """Routed by SOAPAction, or by the element in the body where there is none."""
    element = _body(body)
    tag = "" if element is None else element.tag
    wanted = tag if action is None else _tag_of(action.strip('"'))
    operation = next((name for name in operations if qualified(name) == wanted), None)
    if operation is None:
        known = "Server did not recognize the value of HTTP Header SOAPAction"
        raise BadCall(fault(f"{known}: {action or ''}."))
    return Call(operation, Fields(element if tag == wanted else None))


def _tag_of(action: str) -> str:
    """The element that belongs to an action; none if it is not one of this service."""
    return qualified(action.removeprefix(NAMESPACE)) if action.startswith(NAMESPACE) else ""


def fault(text: str) -> Response:
    """A fault of the caller's making, with status 500."""
    inner = node("faultcode", "soap:Client") + node("faultstring", text) + node("detail", "")
    return xml_response(
        f'{DECLARATION}<soap:Envelope xmlns:soap="{SOAP}" {SCHEMAS}><soap:Body><soap:Fault>'
        f"{inner}</soap:Fault></soap:Body></soap:Envelope>",
        500,
    )


def unreadable() -> Response:
    """The fault of a value that is not of its type."""
    return fault(
        "Server was unable to read request. ---> System.InvalidOperationException: There is an "
        "error in XML document. ---> System.FormatException: Input string was not in a correct "
        "format."
    )


def answer(operation: str, content: Iterable[str], now: datetime) -> Response:
    """A result in its envelope, with the header that every answer has."""
    when = now.astimezone(ARGENTINA).isoformat(timespec="microseconds")
    header = node("ambiente", "Sandbox") + node("fecha", when) + node("id", "1.0.0.0")
    result = node(f"{operation}Result", content)
    return xml_response(
        f'{DECLARATION}<soap:Envelope xmlns:soap="{SOAP}" {SCHEMAS}><soap:Header>'
        f'<FEHeaderInfo xmlns="{NAMESPACE}">{header}</FEHeaderInfo></soap:Header><soap:Body>'
        f'<{operation}Response xmlns="{NAMESPACE}">{result}</{operation}Response>'
        "</soap:Body></soap:Envelope>"
    )


def errors(*found: tuple[int, str]) -> str:
    """The list of errors in a result."""
    return _remarks("Errors", "Err", found)


def observations(codes: Iterable[int]) -> str:
    """The list of observations of a voucher; nothing if there are none."""
    found = [(code, text_of(code)) for code in codes]
    return _remarks("Observaciones", "Obs", found) if found else ""


def refused(response: Response, codes: Iterable[int], subject: str = "") -> Reply:
    """What the ledger keeps of a refusal."""
    detail = {"codes": list(codes)}
    return Reply(response=response, outcome="refused", subject=subject, detail=detail)


def _remarks(container: str, item: str, found: Iterable[tuple[int, str]]) -> str:
    return node(
        container,
        [node(item, [node("Code", code), node("Msg", text)]) for code, text in found],
    )


def _body(body: bytes) -> Element | None:
    """The element of the operation; broken XML gets status 400 and no body."""
    try:
        root: Element = fromstring(body, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError):
        raise BadCall(Response(status_code=400)) from None
    found = root.find(f"{{{SOAP}}}Body") if root.tag == f"{{{SOAP}}}Envelope" else None
    if found is None:
        raise BadCall(fault("Possible SOAP version mismatch or missing envelope."))
    return found[0] if len(found) else None
