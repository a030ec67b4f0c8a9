"""What a voucher must be like: each rule by its code, among errors or observations."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import pytest
from apps.sandbox.afip import Afip

from tests.apps.afip.speech import (
    CUIT,
    OTHER,
    TODAY,
    Speech,
    auth,
    codes,
    fields,
    request,
    result,
    text,
    vat,
)

REQUEST = "FECAESolicitar"
A = {"DocTipo": 80, "DocNro": OTHER, "CondicionIVAReceptorId": 1}
C = {"ImpTotal": 100, "ImpIVA": 0, "Iva": None}
SERVICE = {
    "Concepto": 2,
    "FchServDesde": TODAY,
    "FchServHasta": TODAY,
    "FchVtoPago": TODAY,
}
TRIBUTE = {
    "ImpTotal": 126,
    "ImpTrib": 5,
    "Tributos": "<Tributo>"
    + fields(Id=99, Desc="municipal", BaseImp=100, Alic=5, Importe=5)
    + "</Tributo>",
}


def about(kind: int, number: int = 1, **more: Any) -> dict[str, str]:
    return {"CbtesAsoc": f"<CbteAsoc>{fields(Tipo=kind, PtoVta=1, Nro=number, **more)}</CbteAsoc>"}


async def judge(speech: Speech, content: str) -> tuple[str | None, list[int], list[int]]:
    """The result of a request, its errors and its observations."""
    answer = result(await speech.call(REQUEST, auth(*await speech.ticket()) + content), REQUEST)
    return text(answer, "FeCabResp/Resultado"), codes(answer, "Err"), codes(answer, "Obs")


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (6, {}),
        (6, {"CbteFch": None}),
        (6, {"CbteFch": "20261112"}),
        (6, {"CbteFch": "20261122"}),
        (6, {"DocTipo": 96, "DocNro": 30_111_222}),
        (6, {"DocTipo": 80, "DocNro": OTHER, "CondicionIVAReceptorId": 4}),
        (6, {"ImpTotal": "121.01"}),  # within the margin
        (6, {"ImpTotal": 100, "ImpIVA": 0, "Iva": vat((3, "100", "0"))}),
        (6, {"ImpNeto": 0, "ImpIVA": 0, "ImpTotal": 50, "ImpOpEx": 50, "Iva": None}),
        (6, TRIBUTE),
        (6, SERVICE),
        (6, {**SERVICE, "CbteFch": "20261107"}),
        (6, {"MonId": "DOL", "MonCotiz": "1450.5", "CanMisMonExt": "S"}),
        (6, {"MonId": "DOL", "MonCotiz": None, "CanMisMonExt": "S"}),
        (6, {"MonId": "060", "MonCotiz": "1500", "CanMisMonExt": "N"}),
        (1, A),
        (1, {**A, "CondicionIVAReceptorId": 6}),
        (51, A),
        (11, C),
        (11, {**C, "CondicionIVAReceptorId": 1, "DocTipo": 80, "DocNro": OTHER}),
        (8, {"PeriodoAsoc": fields(FchDesde="20261101", FchHasta=TODAY)}),
    ],
)
async def test_what_is_in_order_gets_a_cae(
    speech: Speech, afip: Afip, kind: int, changes: dict[str, Any]
) -> None:
    assert await judge(speech, request(changes, kind=kind)) == ("A", [], [])
    (record,) = afip.register.records
    assert len(record.cae) == 14
    assert record.cae.isdigit()


@pytest.mark.parametrize(
    ("kind", "changes", "wanted"),
    [
        (6, {"CbteDesde": 2, "CbteHasta": 2}, "number"),
        (6, {"CbteDesde": 0, "CbteHasta": 0}, 10008),
        (6, {"CbteDesde": -1, "CbteHasta": 5}, 10008),
        (6, {"CbteDesde": 2, "CbteHasta": 1}, 10011),
        (6, {"CbteHasta": 2, "ImpTotal": 20_000_000}, 10014),
        (6, {"CbteHasta": 100_000_000, "DocNro": 0}, 10010),
        (11, {**C, "CbteHasta": 2}, 10012),
        (6, {"CbteHasta": 2, "DocTipo": 96, "DocNro": 5}, 10015),
        (1, {**A, "DocTipo": 96}, 10013),
        (6, {"DocTipo": 99, "DocNro": 7}, 10015),
        (6, {"DocTipo": 96, "DocNro": 0}, 10015),
        (6, {"DocTipo": 80, "DocNro": 30_500_010_911}, 10015),
        (6, {"DocTipo": 15, "DocNro": 1}, 10015),
        (1, {**A, "DocNro": 30_500_010_911}, 10247),
        (6, {"DocTipo": 80, "DocNro": CUIT}, 10069),
        (6, {"CbteFch": "20261111"}, 10016),
        (6, {"CbteFch": "20261123"}, 10016),
        (6, {"CbteFch": "2026-11-17"}, 10016),
        (6, {"CbteFch": "20261131"}, 10016),
        (6, {**SERVICE, "CbteFch": "20261106"}, 10016),
        (6, {"Concepto": 4}, 10030),
        (6, {"Concepto": 2}, 10049),
        (6, {**SERVICE, "FchServDesde": None}, 10031),
        (6, {**SERVICE, "FchServHasta": ""}, 10033),
        (6, {**SERVICE, "FchVtoPago": None}, 10035),
        (6, {**SERVICE, "FchServDesde": "20261118"}, 10032),
        (6, {**SERVICE, "FchVtoPago": "20261116"}, 10036),
        (6, {**SERVICE, "FchVtoPago": "tomorrow"}, 10049),
        (6, {"MonId": None}, 10037),
        (6, {"MonId": "XXX"}, 10037),
        (6, {"MonCotiz": None}, 10039),
        (6, {"MonCotiz": 2}, 10039),
        (6, {"MonId": "DOL", "MonCotiz": 0}, 10038),
        (6, {"MonId": "DOL", "MonCotiz": None}, 10038),
        (6, {"MonId": "DOL", "MonCotiz": "1450.4", "CanMisMonExt": "S"}, 10038),
        (6, {"MonId": "DOL", "MonCotiz": 6000}, 10119),
        (6, {"CanMisMonExt": "X"}, 10239),
        (6, {"CanMisMonExt": "S"}, 10241),
        (6, {"ImpTotal": "121.02"}, 10048),
        (6, {"ImpTotal": "121.001"}, 10056),
        (6, {"ImpTotal": "10000000000000"}, 10056),
        (6, {"ImpTotConc": -1}, 10043),
        (6, {"ImpOpEx": -1}, 10044),
        (6, {"ImpNeto": -1}, 10045),
        (6, {"ImpTrib": -1}, 10046),
        (6, {"ImpIVA": -1}, 10047),
        (6, {"ImpTotal": -1}, 10065),
        (6, {"Iva": None}, 10070),
        (6, {"ImpNeto": 0, "ImpTotal": 21, "Iva": None}, 10018),
        (6, {"ImpTotal": 100, "ImpIVA": 0, "Iva": vat((5, "100", "0"))}, 10018),
        (6, {"Iva": ""}, 10018),
        (6, {"Iva": vat((7, "100", "21"))}, 10019),
        (6, {"Iva": vat((5, "0", "21"))}, 10020),
        (6, {"Iva": vat((5, "50", "10.5"), (5, "50", "10.5"))}, 10022),
        (6, {"Iva": vat((5, "100", "20"))}, 10023),
        (6, {"ImpIVA": 22, "ImpTotal": 122, "Iva": vat((5, "100", "22"))}, 10051),
        (6, {"ImpNeto": 90, "ImpTotal": 111}, 10061),
        (11, {**C, "Iva": vat((3, "100", "0"))}, 10071),
        (11, {**C, "ImpOpEx": 1, "ImpTotal": 101}, 10044),
        (6, {**TRIBUTE, "Tributos": None}, 10024),
        (6, {**TRIBUTE, "ImpTrib": 0, "ImpTotal": 121}, 10024),
        (6, {**TRIBUTE, "ImpTrib": 6, "ImpTotal": 127}, 10029),
        (6, {**TRIBUTE, "Tributos": TRIBUTE["Tributos"].replace("municipal", "")}, 10042),
        (6, {**TRIBUTE, "Tributos": TRIBUTE["Tributos"].replace("99", "98")}, 10025),
        (6, {**TRIBUTE, "Tributos": TRIBUTE["Tributos"].replace(">100<", ">-1<")}, 10026),
        (6, {**TRIBUTE, "Tributos": TRIBUTE["Tributos"].replace("<Alic>5", "<Alic>-5")}, 10027),
        (6, {**TRIBUTE, "Tributos": TRIBUTE["Tributos"].replace("rte>5", "rte>-5")}, 10028),
        (6, {"Iva": vat((5, "100", "-21"))}, 10021),
        (8, {}, 10197),
        (8, about(0), 10057),
        (8, {"CbtesAsoc": ""}, 10062),
        (8, about(1), 10040),
        (6, about(6), 10040),
        (8, about(6, number=0), 10059),
        (8, about(6, Cuit="123"), 10151),
        (8, about(6, CbteFch="yesterday"), 10213),
        (8, {"CbtesAsoc": about(6)["CbtesAsoc"] * 2}, 10060),
        (6, {"PeriodoAsoc": fields(FchDesde=TODAY, FchHasta=TODAY)}, 10198),
        (8, {"CbtesAsoc": about(6)["CbtesAsoc"].replace("<PtoVta>1", "<PtoVta>0")}, 10058),
        (8, {"PeriodoAsoc": fields(FchHasta=TODAY)}, 10199),
        (8, {"PeriodoAsoc": fields(FchDesde=TODAY)}, 10203),
        (8, {"PeriodoAsoc": fields(FchDesde="20261131", FchHasta=TODAY)}, 10204),
        (8, {"PeriodoAsoc": fields(FchDesde=TODAY, FchHasta="2026")}, 10205),
        (8, {"PeriodoAsoc": fields(FchDesde=TODAY, FchHasta="20261116")}, 10207),
        (8, {"PeriodoAsoc": fields(FchDesde=TODAY, FchHasta="20261118")}, 10208),
        (8, {"PeriodoAsoc": fields(FchDesde="20051231", FchHasta=TODAY)}, 10206),
        (6, {"CondicionIVAReceptorId": 2}, 10242),
        (6, {"CondicionIVAReceptorId": 1}, 10243),
        (1, {**A, "CondicionIVAReceptorId": 5}, 10243),
        (6, {"CondicionIVAReceptorId": None}, 10246),
    ],
)
async def test_what_is_not_in_order_gets_none(
    speech: Speech, afip: Afip, kind: int, changes: dict[str, Any], wanted: int | str
) -> None:
    verdict, errors, observations = await judge(speech, request(changes, kind=kind))
    assert verdict == "R"
    if wanted == "number":
        assert (errors, observations) == ([10016], [])
    else:
        assert errors == []
        assert wanted in observations
    assert afip.register.records == []


async def test_a_rejected_voucher_has_an_empty_cae(speech: Speech) -> None:
    content = auth(*await speech.ticket()) + request({"ImpTotal": 1})
    response = await speech.call(REQUEST, content)
    assert "<CAE /><CAEFchVto />" in response.text


async def test_a_date_ahead_must_be_in_this_month(speech: Speech) -> None:
    speech.clock.advance(days=11)  # the 28th
    ahead = {"CbteFch": "20261201"}
    assert await judge(speech, request(ahead)) == ("R", [], [10152])
    speech.clock.advance(minutes=11)
    service = {**SERVICE, **ahead, "FchVtoPago": "20261201"}
    assert (await judge(speech, request(service)))[0] == "A"


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        (request({}, count=0), [10001, 10002]),
        (request({}, count=2), [10002]),
        (request(), [10001]),
        (request({}, point=0), [10004]),
        (request({}, point=7), [10005]),
        (request({}, kind=0), [10006]),
        (request({}, kind=14), [10007]),
        (request({}, kind=201), [10000]),
        (request({}, kind=49), [10000]),
    ],
)
async def test_a_wrong_head_refuses_the_whole_request(
    speech: Speech, sent: str, wanted: list[int]
) -> None:
    assert await judge(speech, sent) == ("R", wanted, [])


async def test_a_business_that_is_not_active_may_not_issue(speech: Speech, afip: Afip) -> None:
    afip.registry.businesses[int(CUIT)].is_active = False
    assert await judge(speech, request({})) == ("R", [10000], [])


async def test_observations_do_not_keep_a_cae_back(speech: Speech, afip: Afip) -> None:
    afip.registry.remarks[int(OTHER)] = (10017, 10217)
    assert await judge(speech, request(A, kind=1)) == ("A", [], [10017, 10217])
    assert afip.register.records[0].observations == (10017, 10217)


async def test_an_inactive_receiver_is_refused_but_for_credit_notes(
    speech: Speech, afip: Afip
) -> None:
    afip.registry.remarks[int(OTHER)] = (10247,)
    assert (await judge(speech, request(A, kind=1)))[0] == "R"
    speech.clock.advance(minutes=11)
    assert (await judge(speech, request({**A, **about(1)}, kind=3)))[0] == "A"


async def test_a_note_about_an_unknown_voucher_is_observed(speech: Speech) -> None:
    assert await judge(speech, request(about(6), kind=8)) == ("A", [], [10041])


async def test_a_note_above_what_it_is_about_is_observed(speech: Speech) -> None:
    assert (await judge(speech, request({})))[0] == "A"
    speech.clock.advance(minutes=11)
    more = {"ImpTotal": 242, "ImpNeto": 200, "ImpIVA": 42, "Iva": vat((5, "200", "42"))}
    assert await judge(speech, request({**more, **about(6)}, kind=8)) == ("A", [], [10237])


async def test_terms_can_be_others(
    speech: Speech, http: httpx.AsyncClient, build: Callable[..., Afip]
) -> None:
    afip = build(is_vat_condition_required=False, identified_from=Decimal(121), most_per_request=1)
    async with afip.serving() as url:
        free = Speech(url, http, speech.credentials, speech.clock)
        large = request({"CondicionIVAReceptorId": None})
        assert await judge(free, large) == ("R", [], [10015, 10245])
        speech.clock.advance(minutes=11)
        small = {"ImpTotal": "60.5", "ImpNeto": 50, "ImpIVA": "10.5", "Iva": vat((5, "50", "10.5"))}
        without = {**small, "CondicionIVAReceptorId": None}
        assert await judge(free, request(without)) == ("A", [], [10245])
        speech.clock.advance(minutes=11)
        assert await judge(free, request(small, small)) == ("R", [10003], [])
