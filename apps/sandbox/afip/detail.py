"""One voucher in a request for CAEs (FECAEDetRequest), and how the service writes it back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from apps.sandbox.afip.fields import Fields
from apps.sandbox.afip.xml import node


@dataclass(frozen=True, slots=True, kw_only=True)
class VatLine:
    """AlicIva."""

    id: int
    base: Decimal
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class TributeLine:
    """Tributo."""

    id: int
    description: str
    base: Decimal
    percent: Decimal
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class AssociatedLine:
    """CbteAsoc."""

    kind: int
    point_of_sale: int
    number: int
    cuit: str | None
    date: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """What was sent. A list is None if it was not sent, and empty if it was sent empty."""

    concept: int
    document_kind: int
    document_number: int
    first: int
    last: int
    date: str | None
    total: Decimal
    untaxed: Decimal
    net: Decimal
    exempt: Decimal
    tributes_total: Decimal
    vat_total: Decimal
    service_since: str
    service_until: str
    pay_by: str
    currency: str
    rate: Decimal | None
    is_same_currency: str | None
    vat_condition: int | None
    associated: tuple[AssociatedLine, ...] | None
    tributes: tuple[TributeLine, ...] | None
    vat: tuple[VatLine, ...] | None
    period: tuple[str, str] | None


def read_detail(sent: Fields) -> Detail:
    """Out of the XML."""
    return Detail(
        concept=sent.int32("Concepto"),
        document_kind=sent.int32("DocTipo"),
        document_number=sent.int64("DocNro"),
        first=sent.int64("CbteDesde"),
        last=sent.int64("CbteHasta"),
        date=sent.text("CbteFch") or None,
        total=sent.decimal("ImpTotal"),
        untaxed=sent.decimal("ImpTotConc"),
        net=sent.decimal("ImpNeto"),
        exempt=sent.decimal("ImpOpEx"),
        tributes_total=sent.decimal("ImpTrib"),
        vat_total=sent.decimal("ImpIVA"),
        service_since=sent.text("FchServDesde") or "",
        service_until=sent.text("FchServHasta") or "",
        pay_by=sent.text("FchVtoPago") or "",
        currency=sent.text("MonId") or "",
        rate=sent.optional_decimal("MonCotiz"),
        is_same_currency=sent.text("CanMisMonExt"),
        vat_condition=_vat_condition(sent),
        associated=_associated(sent.child("CbtesAsoc")),
        tributes=_tributes(sent.child("Tributos")),
        vat=_vat(sent.child("Iva")),
        period=_period(sent.child("PeriodoAsoc")),
    )


def _vat_condition(sent: Fields) -> int | None:
    name = "CondicionIVAReceptorId"
    return None if sent.text(name) is None else sent.int32(name)


def _associated(sent: Fields) -> tuple[AssociatedLine, ...] | None:
    if not sent.is_sent:
        return None
    return tuple(
        AssociatedLine(
            kind=one.int32("Tipo"),
            point_of_sale=one.int32("PtoVta"),
            number=one.int64("Nro"),
            cuit=one.text("Cuit"),
            date=one.text("CbteFch"),
        )
        for one in sent.children("CbteAsoc")
    )


def _tributes(sent: Fields) -> tuple[TributeLine, ...] | None:
    if not sent.is_sent:
        return None
    return tuple(
        TributeLine(
            id=one.int32("Id"),
            description=one.text("Desc") or "",
            base=one.decimal("BaseImp"),
            percent=one.decimal("Alic"),
            amount=one.decimal("Importe"),
        )
        for one in sent.children("Tributo")
    )


def _vat(sent: Fields) -> tuple[VatLine, ...] | None:
    if not sent.is_sent:
        return None
    return tuple(
        VatLine(id=one.int32("Id"), base=one.decimal("BaseImp"), amount=one.decimal("Importe"))
        for one in sent.children("AlicIva")
    )


def _period(sent: Fields) -> tuple[str, str] | None:
    return (sent.text("FchDesde") or "", sent.text("FchHasta") or "") if sent.is_sent else None


def write_head(detail: Detail, date: str) -> list[str]:
    """The fields that both answers begin with."""
    return [
        node("Concepto", detail.concept),
        node("DocTipo", detail.document_kind),
        node("DocNro", detail.document_number),
        node("CbteDesde", detail.first),
        node("CbteHasta", detail.last),
        node("CbteFch", date),
    ]


def write_detail(detail: Detail, date: str, total: Decimal) -> list[str]:
    """All that was sent, as FECompConsultar gives it back."""
    period = detail.period
    return [
        *write_head(detail, date),
        node("ImpTotal", total),
        node("ImpTotConc", detail.untaxed),
        node("ImpNeto", detail.net),
        node("ImpOpEx", detail.exempt),
        node("ImpTrib", detail.tributes_total),
        node("ImpIVA", detail.vat_total),
        node("FchServDesde", detail.service_since),
        node("FchServHasta", detail.service_until),
        node("FchVtoPago", detail.pay_by),
        node("MonId", detail.currency),
        node("MonCotiz", detail.rate),
        node("CanMisMonExt", detail.is_same_currency),
        node("CondicionIVAReceptorId", detail.vat_condition),
        node("CbtesAsoc", _listed("CbteAsoc", map(_associated_nodes, detail.associated or ()))),
        node("Tributos", _listed("Tributo", map(_tribute_nodes, detail.tributes or ()))),
        node("Iva", _listed("AlicIva", map(_vat_nodes, detail.vat or ()))),
        node("PeriodoAsoc", period and [node("FchDesde", period[0]), node("FchHasta", period[1])]),
    ]


def _listed(name: str, rows: Iterable[list[str]]) -> list[str] | None:
    return [node(name, row) for row in rows] or None


def _associated_nodes(one: AssociatedLine) -> list[str]:
    return [
        node("Tipo", one.kind),
        node("PtoVta", one.point_of_sale),
        node("Nro", one.number),
        node("Cuit", one.cuit),
        node("CbteFch", one.date),
    ]


def _tribute_nodes(one: TributeLine) -> list[str]:
    return [
        node("Id", one.id),
        node("Desc", one.description),
        node("BaseImp", one.base),
        node("Alic", one.percent),
        node("Importe", one.amount),
    ]


def _vat_nodes(one: VatLine) -> list[str]:
    return [node("Id", one.id), node("BaseImp", one.base), node("Importe", one.amount)]
