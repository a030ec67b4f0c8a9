"""Numbers of a series have no gaps and no repetitions, whoever asks at once."""

from __future__ import annotations

import asyncio

from apps.sandbox.afip import Afip

from tests.apps.afip.speech import CUIT, Speech, auth, codes, fields, request, result, text

REQUEST = "FECAESolicitar"
LAST = "FECompUltimoAutorizado"


def numbered(first: int, last: int | None = None, day: str = "20261117") -> dict[str, object]:
    return {"CbteDesde": first, "CbteHasta": last or first, "CbteFch": day}


def small(first: int, last: int) -> dict[str, object]:
    """A batch: many vouchers to people unknown, under one CAE."""
    return {**numbered(first, last), "DocTipo": 99, "DocNro": 0}


async def ask(speech: Speech, ticket: str, content: str) -> tuple[str | None, list[int]]:
    answer = result(await speech.call(REQUEST, ticket + content), REQUEST)
    return text(answer, "FeCabResp/Resultado"), codes(answer, "Err")


async def last_of(speech: Speech, ticket: str, kind: int = 6, point: int = 1) -> int:
    response = await speech.call(LAST, ticket + fields(PtoVta=point, CbteTipo=kind))
    return int(text(result(response, LAST), "CbteNro") or -1)


def subjects(afip: Afip) -> list[str]:
    """What has got a CAE, as the ledger has it."""
    return [subject for one in afip.ledger.of(REQUEST, "ok") for subject in one.detail["caes"]]


async def test_a_number_is_given_once_to_fifty_askers(speech: Speech, afip: Afip) -> None:
    ticket = auth(*await speech.ticket())
    asked = [ask(speech, ticket, request(numbered(1))) for _ in range(50)]
    answers = await asyncio.gather(*asked)
    assert sorted(answers) == [("A", []), *[("R", [10016])] * 49]
    assert subjects(afip) == [f"{CUIT}/1/6/1"]
    assert await last_of(speech, ticket) == 1


async def test_series_grow_without_gaps_while_many_compete(speech: Speech, afip: Afip) -> None:
    ticket = auth(*await speech.ticket())

    async def issue(point: int) -> None:
        verdict = "R"
        while verdict != "A":
            number = await last_of(speech, ticket, point=point) + 1
            verdict, _ = await ask(speech, ticket, request(numbered(number), point=point))

    await asyncio.gather(*(issue(point) for point in (1, 2) for _ in range(8)))
    wanted = [f"{CUIT}/{point}/6/{number}" for point in (1, 2) for number in range(1, 9)]
    assert sorted(subjects(afip)) == wanted
    assert len({one.cae for one in afip.register.records}) == 16


async def test_kinds_and_points_of_sale_count_for_themselves(speech: Speech) -> None:
    ticket = auth(*await speech.ticket())
    c = {"ImpTotal": 100, "ImpIVA": 0, "Iva": None}
    assert await ask(speech, ticket, request(numbered(1))) == ("A", [])
    assert await ask(speech, ticket, request(numbered(1), point=2)) == ("A", [])
    assert await ask(speech, ticket, request({**numbered(1), **c}, kind=11)) == ("A", [])
    assert await last_of(speech, ticket, kind=8) == 0


async def test_days_of_a_series_never_go_back(speech: Speech) -> None:
    ticket = auth(*await speech.ticket())
    assert await ask(speech, ticket, request(numbered(1, day="20261118"))) == ("A", [])
    assert await ask(speech, ticket, request(numbered(2, day="20261117"))) == ("R", [10016])
    assert await ask(speech, ticket, request(numbered(2, day="20261118"))) == ("A", [])


async def test_a_request_goes_up_to_its_first_refusal(speech: Speech, afip: Afip) -> None:
    ticket = auth(*await speech.ticket())
    bad = {**numbered(3), "ImpTotal": 1}
    content = request(numbered(1), numbered(2), bad, numbered(3))
    answer = result(await speech.call(REQUEST, ticket + content), REQUEST)
    assert text(answer, "FeCabResp/Resultado") == "P"
    assert (codes(answer, "Err"), codes(answer, "Obs")) == ([], [10048])
    assert subjects(afip) == [f"{CUIT}/1/6/1", f"{CUIT}/1/6/2"]
    assert await last_of(speech, ticket) == 2


async def test_a_batch_of_class_b_takes_all_of_its_numbers(speech: Speech, afip: Afip) -> None:
    ticket = auth(*await speech.ticket())
    assert await ask(speech, ticket, request(small(1, 99_999_990))) == ("A", [])
    assert await last_of(speech, ticket) == 99_999_990
    found = fields(CbteTipo=6, CbteNro=5_000, PtoVta=1)
    content = f"{ticket}<FeCompConsReq>{found}</FeCompConsReq>"
    consulted = result(await speech.call("FECompConsultar", content), "FECompConsultar")
    assert text(consulted, "ResultGet/CodAutorizacion") == afip.register.records[0].cae


async def test_what_is_on_record_is_what_was_sent(speech: Speech) -> None:
    ticket = auth(*await speech.ticket())
    note = {
        "CbtesAsoc": f"<CbteAsoc>{fields(Tipo=6, PtoVta=1, Nro=7, Cuit=CUIT)}</CbteAsoc>",
        "ImpTotal": "126.50",
        "ImpTrib": "5.5",
        "Tributos": f"<Tributo>{fields(Id=99, Desc='a & b', BaseImp=100, Alic=5.5, Importe=5.5)}"
        "</Tributo>",
    }
    assert await ask(speech, ticket, request(note, kind=8)) == ("A", [])
    asked = f"<FeCompConsReq>{fields(CbteTipo=8, CbteNro=1, PtoVta=1)}</FeCompConsReq>"
    answer = result(await speech.call("FECompConsultar", ticket + asked), "FECompConsultar")
    wanted = {
        "ImpTotal": "126.5",
        "ImpNeto": "100",
        "CbteFch": "20261117",
        "FchVto": "20261127",
        "FchProceso": "20261117120000",
        "EmisionTipo": "CAE",
        "Resultado": "A",
        "FchServDesde": "",
        "Tributos/Tributo/Desc": "a & b",
        "Iva/AlicIva/Importe": "21",
        "CbtesAsoc/CbteAsoc/Nro": "7",
        "Observaciones/Obs/Code": "10041",
        "CbteTipo": "8",
    }
    assert {path: text(answer, f"ResultGet/{path}") for path in wanted} == wanted
