"""Requests of WSFEv1, in its namespace and in the order of its schema."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Final

from apps.providers.afip.soap import Node
from apps.providers.afip.tickets import Ticket
from apps.providers.afip.voucher import (
    PESOS,
    Associated,
    Tribute,
    VatLine,
    Voucher,
    decimal_text,
    plain,
)

NAMESPACE: Final = "http://ar.gov.afip.dif.FEV1/"


def auth(cuit: str, ticket: Ticket) -> Node:
    """Who asks."""
    return "Auth", [("Token", ticket.token), ("Sign", ticket.sign), ("Cuit", cuit)]


def series(point_of_sale: int, kind: int) -> list[Node]:
    """What FECompUltimoAutorizado asks for."""
    return [("PtoVta", point_of_sale), ("CbteTipo", int(kind))]


def one_of_series(point_of_sale: int, kind: int, number: int) -> list[Node]:
    """What FECompConsultar asks for."""
    return [
        (
            "FeCompConsReq",
            [("CbteTipo", int(kind)), ("CbteNro", number), ("PtoVta", point_of_sale)],
        )
    ]


def cae_of(voucher: Voucher) -> list[Node]:
    """What FECAESolicitar asks for, for one voucher."""
    head: list[Node] = [
        ("CantReg", 1),
        ("PtoVta", voucher.point_of_sale),
        ("CbteTipo", int(voucher.kind)),
    ]
    details: list[Node] = [("FECAEDetRequest", _detail(voucher))]
    return [("FeCAEReq", [("FeCabReq", head), ("FeDetReq", details)])]


def _detail(voucher: Voucher) -> list[Node]:
    receiver, service = voucher.receiver, voucher.service
    return [
        ("Concepto", int(voucher.concept)),
        ("DocTipo", int(receiver.document_kind)),
        ("DocNro", receiver.document_number),
        ("CbteDesde", voucher.number),
        ("CbteHasta", voucher.number),
        ("CbteFch", _day(voucher.date)),
        ("ImpTotal", decimal_text(voucher.total_cents)),
        ("ImpTotConc", decimal_text(voucher.untaxed_cents)),
        ("ImpNeto", decimal_text(voucher.net_cents)),
        ("ImpOpEx", decimal_text(voucher.exempt_cents)),
        ("ImpTrib", decimal_text(voucher.tributes_cents)),
        ("ImpIVA", decimal_text(voucher.vat_cents)),
        ("FchServDesde", service and _day(service.since)),
        ("FchServHasta", service and _day(service.until)),
        ("FchVtoPago", service and _day(service.pay_by)),
        ("MonId", voucher.currency),
        ("MonCotiz", plain(voucher.exchange_rate)),
        ("CanMisMonExt", _is_paid_in_currency(voucher)),
        ("CondicionIVAReceptorId", int(receiver.vat_condition)),
        ("CbtesAsoc", _list("CbteAsoc", map(_associated, voucher.associated))),
        ("Tributos", _list("Tributo", map(_tribute, voucher.tributes))),
        ("Iva", _list("AlicIva", map(_vat, voucher.vat))),
        ("PeriodoAsoc", _period(voucher)),
    ]


def _is_paid_in_currency(voucher: Voucher) -> str | None:
    if voucher.currency == PESOS:
        return None
    return "S" if voucher.is_paid_in_currency else "N"


def _associated(one: Associated) -> list[Node]:
    return [
        ("Tipo", int(one.kind)),
        ("PtoVta", one.point_of_sale),
        ("Nro", one.number),
        ("Cuit", one.cuit),
        ("CbteFch", one.date and _day(one.date)),
    ]


def _tribute(one: Tribute) -> list[Node]:
    return [
        ("Id", one.id),
        ("Desc", one.description),
        ("BaseImp", decimal_text(one.base_cents)),
        ("Alic", plain(one.percent)),
        ("Importe", decimal_text(one.amount_cents)),
    ]


def _vat(one: VatLine) -> list[Node]:
    return [
        ("Id", int(one.rate)),
        ("BaseImp", decimal_text(one.base_cents)),
        ("Importe", decimal_text(one.amount_cents)),
    ]


def _period(voucher: Voucher) -> list[Node] | None:
    period = voucher.period
    return period and [("FchDesde", _day(period.since)), ("FchHasta", _day(period.until))]


def _list(name: str, items: Iterable[list[Node]]) -> list[Node] | None:
    """AFIP refuses lists that are empty: they are left out."""
    return [(name, item) for item in items] or None


def _day(day: date) -> str:
    return f"{day:%Y%m%d}"
