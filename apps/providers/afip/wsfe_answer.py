"""Answers of WSFEv1, read strictly: what is not as it must be is `Unreadable`, never guessed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Final
from xml.etree.ElementTree import Element

from apps.providers.afip.answers import Authorized, Issued, Remark, ServerStatus
from apps.providers.afip.soap import Fault, body_of, repaired
from apps.providers.afip.voucher import Voucher
from apps.providers.afip.wsfe_request import NAMESPACE
from apps.providers.reading import Unreadable

_CAE: Final = re.compile(r"[0-9]{14}")
_DAY: Final = re.compile(r"[0-9]{8}")
_LONGEST_TEXT: Final = 500


@dataclass(frozen=True, slots=True)
class Result:
    """The `…Result` of an operation, with the errors that every operation may have."""

    element: Element
    errors: tuple[Remark, ...]

    @property
    def codes(self) -> tuple[int, ...]:
        """Those of the errors."""
        return tuple(one.code for one in self.errors)


@dataclass(frozen=True, slots=True)
class Refused:
    """A voucher that got no CAE."""

    errors: tuple[Remark, ...]
    observations: tuple[Remark, ...]


def read_result(content: bytes, operation: str) -> Result | Fault:
    """What an operation has answered."""
    body = body_of(content)
    if isinstance(body, Fault):
        return body
    if body.tag != _qualified(f"{operation}Response"):
        raise Unreadable("the answer is that of another operation")
    element = _child(body, f"{operation}Result")
    return Result(element, _remarks(element, "Errors", "Err"))


def read_status(result: Result) -> ServerStatus:
    """Of FEDummy."""
    element = result.element
    return ServerStatus(
        application=_text(element, "AppServer"),
        database=_text(element, "DbServer"),
        authentication=_text(element, "AuthServer"),
    )


def read_last(result: Result, point_of_sale: int, kind: int) -> int:
    """Of FECompUltimoAutorizado: the number, 0 if there is none."""
    element = result.element
    if (_whole(element, "PtoVta"), _whole(element, "CbteTipo")) != (point_of_sale, kind):
        raise Unreadable("the answer is about another series")
    return _whole(element, "CbteNro")


def read_cae(result: Result, cuit: str, voucher: Voucher) -> Authorized | Refused:
    """Of FECAESolicitar, if it speaks of this very voucher."""
    response = result.element.find(f"{_qualified('FeDetResp')}/{_qualified('FECAEDetResponse')}")
    if response is None:
        if not result.errors:
            raise Unreadable("the answer has neither a voucher nor an error")
        return Refused(result.errors, ())
    _check_echo(_child(result.element, "FeCabResp"), response, cuit, voucher)
    observations = _remarks(response, "Observaciones", "Obs")
    match _text(response, "Resultado"):
        case "A":
            return Authorized(
                cae=_code(response, "CAE"),
                expires_on=_day(response, "CAEFchVto"),
                number=voucher.number,
                observations=observations,
            )
        case "R":
            return Refused(result.errors, observations)
        case _:
            raise Unreadable("the voucher is neither approved nor rejected")


def read_issued(result: Result, point_of_sale: int, kind: int, number: int) -> Issued:
    """Of FECompConsultar, if it speaks of this number."""
    got = _child(result.element, "ResultGet")
    issued = Issued(
        point_of_sale=_whole(got, "PtoVta"),
        kind=_whole(got, "CbteTipo"),
        first_number=_whole(got, "CbteDesde"),
        last_number=_whole(got, "CbteHasta"),
        date=_day(got, "CbteFch"),
        concept=_whole(got, "Concepto"),
        document_kind=_whole(got, "DocTipo"),
        document_number=_whole(got, "DocNro"),
        total_cents=_cents(got, "ImpTotal"),
        untaxed_cents=_cents(got, "ImpTotConc"),
        net_cents=_cents(got, "ImpNeto"),
        exempt_cents=_cents(got, "ImpOpEx"),
        tributes_cents=_cents(got, "ImpTrib"),
        vat_cents=_cents(got, "ImpIVA"),
        currency=_text(got, "MonId"),
        code=_code(got, "CodAutorizacion"),
        emission=_text(got, "EmisionTipo"),
        expires_on=_day(got, "FchVto"),
        observations=_remarks(got, "Observaciones", "Obs"),
    )
    is_asked = (issued.point_of_sale, issued.kind) == (point_of_sale, kind)
    if not is_asked or not issued.first_number <= number <= issued.last_number:
        raise Unreadable("the answer is about another voucher")
    if _text(got, "Resultado") != "A":
        raise Unreadable("a voucher on record is not approved")
    _check_sum(issued)
    return issued


def _check_echo(head: Element, response: Element, cuit: str, voucher: Voucher) -> None:
    """An answer that belongs to another request says nothing about this one."""
    echo = (
        *(_whole(head, name) for name in ("Cuit", "PtoVta", "CbteTipo")),
        *(_whole(response, name) for name in ("CbteDesde", "CbteHasta", "DocTipo", "DocNro")),
    )
    receiver = voucher.receiver
    asked = (
        *(int(cuit), voucher.point_of_sale, voucher.kind),
        *(voucher.number, voucher.number, receiver.document_kind, receiver.document_number),
    )
    if echo != asked:
        raise Unreadable("the answer is about another voucher")


def _check_sum(issued: Issued) -> None:
    """AFIP takes totals that differ from their parts by a cent, or by a ten-thousandth."""
    parts = issued.untaxed_cents + issued.net_cents + issued.exempt_cents
    parts += issued.tributes_cents + issued.vat_cents
    difference = abs(issued.total_cents - parts)
    if difference > 1 and difference * 10_000 > issued.total_cents:
        raise Unreadable("the total on record is not the sum of its parts")


def _remarks(parent: Element, container: str, item: str) -> tuple[Remark, ...]:
    found = parent.iterfind(f"{_qualified(container)}/{_qualified(item)}")
    return tuple(
        Remark(_whole(one, "Code"), repaired(_optional(one, "Msg"))[:_LONGEST_TEXT])
        for one in found
    )


def _child(parent: Element, name: str) -> Element:
    found = parent.find(_qualified(name))
    if found is None:
        raise Unreadable(f"the answer has no {name}")
    return found


def _optional(parent: Element, name: str) -> str:
    return (parent.findtext(_qualified(name)) or "").strip()


def _text(parent: Element, name: str) -> str:
    text = _optional(parent, name)
    if not text:
        raise Unreadable(f"the answer has no {name}")
    return text


def _whole(parent: Element, name: str) -> int:
    text = _text(parent, name)
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise Unreadable(f"{name} is no whole number")
    return int(text)


def _code(parent: Element, name: str) -> str:
    text = _text(parent, name)
    if not _CAE.fullmatch(text):
        raise Unreadable(f"{name} has not fourteen digits")
    return text


def _day(parent: Element, name: str) -> date:
    text = _text(parent, name)
    try:
        return _read_day(text)
    except ValueError:
        raise Unreadable(f"{name} is no day") from None


def _read_day(text: str) -> date:
    if not _DAY.fullmatch(text):
        raise ValueError("a day must have eight digits")
    return date(int(text[:4]), int(text[4:6]), int(text[6:]))


def _cents(parent: Element, name: str) -> int:
    cents = _decimal(_text(parent, name)) * 100
    if cents != cents.to_integral_value():
        raise Unreadable(f"{name} is no amount")
    return int(cents)


def _decimal(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise Unreadable("a number cannot be read") from None
    if not number.is_finite() or not 0 <= number < 10**16:
        raise Unreadable("a number is out of range")
    return number


def _qualified(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"
