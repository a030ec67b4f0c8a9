"""How the service writes verdicts and records, and how they look when they are to be wrong."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from apps.sandbox.afip.access_request import ARGENTINA
from apps.sandbox.afip.authoriser import Judged, Verdict
from apps.sandbox.afip.detail import write_detail, write_head
from apps.sandbox.afip.register import Record
from apps.sandbox.afip.texts import NOT_NEXT, text_of
from apps.sandbox.afip.wsfe_soap import errors, observations
from apps.sandbox.afip.xml import node

WrongCae = Literal["short", "other"]
"""One that has too few digits, or one that belongs to no voucher."""


def verdict_nodes(verdict: Verdict, now: datetime, wrong: WrongCae | None) -> list[str]:
    """The result of FECAESolicitar."""
    series = verdict.series
    head = [
        node("Cuit", series.cuit),
        node("PtoVta", series.point_of_sale),
        node("CbteTipo", series.kind),
        node("FchProceso", _instant(now)),
        node("CantReg", verdict.count),
        node("Resultado", verdict.result),
        node("Reproceso", "N"),
    ]
    details = [_judged_node(one, wrong) for one in verdict.vouchers]
    found = [(code, NOT_NEXT if code == 10016 else text_of(code)) for code in verdict.errors]
    return [
        node("FeCabResp", head),
        node("FeDetResp", details or None),
        errors(*found) if found else "",
    ]


def record_nodes(record: Record, *, is_wrong: bool) -> list[str]:
    """What FECompConsultar has on record; a wrong total is no sum of its parts."""
    total = record.detail.total * 10 + 1 if is_wrong else record.detail.total
    return [
        *write_detail(record.detail, _day(record.date), Decimal(total)),
        node("Resultado", "A"),
        node("CodAutorizacion", record.cae),
        node("EmisionTipo", "CAE"),
        node("FchVto", _day(record.expires_on)),
        node("FchProceso", _instant(record.processed_at)),
        observations(record.observations),
        node("PtoVta", record.series.point_of_sale),
        node("CbteTipo", record.series.kind),
    ]


def _judged_node(judged: Judged, wrong: WrongCae | None) -> str:
    record, sent = judged.record, judged.detail
    day = _day(record.date) if record is not None else sent.date or ""
    return node(
        "FECAEDetResponse",
        [
            *write_head(sent, day),
            node("Resultado", "R" if record is None else "A"),
            observations(judged.observations),
            node("CAE", "" if record is None else _code(record.cae, wrong)),
            node("CAEFchVto", "" if record is None else _day(record.expires_on)),
        ],
    )


def _code(cae: str, wrong: WrongCae | None) -> str:
    match wrong:
        case "short":
            return cae[:-1]
        case "other":
            return cae[::-1]
        case None:
            return cae


def _day(day: date) -> str:
    return f"{day:%Y%m%d}"


def _instant(instant: datetime) -> str:
    return f"{instant.astimezone(ARGENTINA):%Y%m%d%H%M%S}"
