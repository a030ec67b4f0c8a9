"""The stand-in's WSFEv1 speaks SOAP as the real one does, and believes only tickets of its WSAA."""

from __future__ import annotations

import base64

import pytest
from apps.sandbox.afip import WSFE_PATH, Afip
from defusedxml.ElementTree import fromstring

from tests.apps.afip.speech import (
    CUIT,
    FEV1,
    OTHER,
    SOAP,
    Speech,
    auth,
    codes,
    envelope,
    fault_code,
    fields,
    request,
    result,
    text,
)

LAST = "FECompUltimoAutorizado"
SERIES = fields(PtoVta=1, CbteTipo=6)


async def test_the_dummy_needs_no_ticket_and_has_the_header_of_all_answers(speech: Speech) -> None:
    response = await speech.call("FEDummy", "")
    dummy = result(response, "FEDummy")
    assert [one.text for one in dummy] == ["OK", "OK", "OK"]
    header = fromstring(response.content).find(f"{{{SOAP}}}Header/{{{FEV1}}}FEHeaderInfo")
    assert header.findtext(f"{{{FEV1}}}fecha").endswith("-03:00")


async def test_an_operation_is_found_by_its_action_or_by_its_element(speech: Speech) -> None:
    body = envelope(f'<FEDummy xmlns="{FEV1}"/>')
    by_element = await speech.post(WSFE_PATH, body)
    by_action = await speech.post(WSFE_PATH, body, soapaction=f"{FEV1}FEDummy")
    assert [by_element.status_code, by_action.status_code] == [200, 200]


@pytest.mark.parametrize("action", ["", '""', f"{FEV1}FEXXX", "FEDummy", f"{FEV1.lower()}FEDummy"])
async def test_an_unknown_action_gets_a_fault(speech: Speech, action: str) -> None:
    body = envelope(f'<FEDummy xmlns="{FEV1}"/>')
    response = await speech.post(WSFE_PATH, body, soapaction=action)
    assert fault_code(response) == "soap:Client"


@pytest.mark.parametrize("body", ["", "<a", envelope("<a>")[:-5], "<!DOCTYPE a []><a/>"])
async def test_broken_xml_gets_status_400_and_nothing_else(speech: Speech, body: str) -> None:
    response = await speech.post(WSFE_PATH, body, soapaction=f"{FEV1}FEDummy")
    assert (response.status_code, response.content) == (400, b"")


async def test_a_body_that_is_too_large_is_refused(speech: Speech, afip: Afip) -> None:
    response = await speech.post(WSFE_PATH, envelope(f"<a>{'x' * 5_000_000}</a>"))
    assert response.status_code == 400
    assert afip.ledger.entries[-1].outcome == "refused"


async def test_other_content_types_are_refused(speech: Speech) -> None:
    response = await speech.call("FEDummy", "", content_type="application/json")
    assert response.status_code == 415


@pytest.mark.parametrize("value", ["abc", "", "1.5", "2147483648", "0x10"])
async def test_a_number_that_is_none_gets_a_fault(speech: Speech, value: str) -> None:
    content = auth(*await speech.ticket()) + f"<PtoVta>{value}</PtoVta><CbteTipo>6</CbteTipo>"
    assert fault_code(await speech.call(LAST, content)) == "soap:Client"


async def test_a_request_whose_number_is_none_is_noted_without_one(
    speech: Speech, afip: Afip
) -> None:
    content = auth(*await speech.ticket()) + request({"CbteDesde": "one"})
    assert fault_code(await speech.call("FECAESolicitar", content)) == "soap:Client"
    assert afip.ledger.of("FECAESolicitar")[0].subject == ""


@pytest.mark.parametrize("value", ["abc", "1,5", "NaN", "1.2.3", ""])
async def test_an_amount_that_is_none_gets_a_fault(speech: Speech, value: str) -> None:
    content = auth(*await speech.ticket()) + request({"ImpTotal": value})
    assert fault_code(await speech.call("FECAESolicitar", content)) == "soap:Client"


async def test_order_is_free_and_unknown_elements_are_ignored(speech: Speech) -> None:
    content = (
        f"<CbteTipo>6</CbteTipo><Odd>1</Odd><PtoVta> 1 </PtoVta>{auth(*await speech.ticket())}"
    )
    last = result(await speech.call(LAST, content), LAST)
    assert (text(last, "CbteNro"), codes(last, "Err")) == ("0", [])


async def test_elements_of_no_namespace_are_not_seen(speech: Speech) -> None:
    inner = auth(*await speech.ticket()) + SERIES
    body = envelope(f'<f:{LAST} xmlns:f="{FEV1}">{inner}</f:{LAST}>')
    last = result(await speech.post(WSFE_PATH, body), LAST)
    assert codes(last, "Err") == [500]


async def test_a_missing_ticket_is_an_error_with_zeros_and_status_200(speech: Speech) -> None:
    last = result(await speech.call(LAST, SERIES), LAST)
    assert codes(last, "Err") == [500]
    assert [text(last, name) for name in ("PtoVta", "CbteTipo", "CbteNro")] == ["0", "0", "0"]


async def error(speech: Speech, content: str) -> str:
    """The one error, which must have the code 600."""
    last = result(await speech.call(LAST, content + SERIES), LAST)
    assert codes(last, "Err") == [600]
    return text(last, "Errors/Err/Msg") or ""


async def test_tokens_are_refused_in_the_order_of_the_real_checks(speech: Speech) -> None:
    token, sign = await speech.ticket()
    assert "Parametro nulo" in await error(speech, auth("", sign))
    assert "No valido token" in await error(speech, auth("abc", sign))
    assert "No valido token" in await error(speech, auth(base64.b64encode(b"<a/>").decode(), sign))
    assert "Error al verificar hash" in await error(speech, auth(token, sign[::-1]))
    assert "Error al verificar hash" in await error(speech, auth(token, ""))
    stretched = base64.b64decode(token).replace(b'exp_time="1', b'exp_time="2')
    forged = base64.b64encode(stretched).decode()
    assert forged != token
    assert "Error al verificar hash" in await error(speech, auth(forged, sign))
    assert f"relaciones: {OTHER}" in await error(speech, auth(token, sign, OTHER))
    speech.clock.advance(hours=12)
    assert "No validaron las fechas" in await error(speech, auth(token, sign[::-1]))


async def test_a_ticket_of_another_service_is_refused(speech: Speech, afip: Afip) -> None:
    afip.registry.businesses[int(CUIT)].services.add("wsfex")
    assert "Id Sistema" in await error(speech, auth(*await speech.ticket("wsfex")))


async def test_a_ticket_is_good_until_its_very_end(speech: Speech) -> None:
    given = await speech.ticket()
    speech.clock.advance(hours=11, minutes=59, seconds=59)
    assert codes(result(await speech.call(LAST, auth(*given) + SERIES), LAST), "Err") == []


async def test_delegations_are_those_of_when_the_ticket_was_given(
    speech: Speech, afip: Afip
) -> None:
    before = await speech.ticket()
    afip.registry.register(int(OTHER), (1,))
    afip.delegate(OTHER, to=CUIT)
    assert "relaciones" in await error(speech, auth(*before, OTHER))
    speech.clock.advance(minutes=10)
    after = await speech.ticket()
    assert codes(result(await speech.call(LAST, auth(*after, OTHER) + SERIES), LAST), "Err") == []


async def test_a_request_without_a_ticket_has_no_head_in_its_answer(speech: Speech) -> None:
    answer = result(
        await speech.call("FECAESolicitar", auth("", "") + request({})), "FECAESolicitar"
    )
    assert codes(answer, "Err") == [600]
    assert text(answer, "FeCabResp/Cuit") is None


@pytest.mark.parametrize(
    ("point", "kind", "wanted"),
    [(0, 6, 11000), (99_999, 6, 11000), (1, 0, 11001), (1, 14, 11001), (7, 6, 11002)],
)
async def test_a_series_must_exist(speech: Speech, point: int, kind: int, wanted: int) -> None:
    content = auth(*await speech.ticket()) + fields(PtoVta=point, CbteTipo=kind)
    assert codes(result(await speech.call(LAST, content), LAST), "Err") == [wanted]


@pytest.mark.parametrize(
    ("point", "kind", "number", "wanted"),
    [(0, 6, 1, 10200), (1, 0, 1, 10201), (7, 6, 1, 10104), (1, 6, 0, 10202), (1, 6, 1, 602)],
)
async def test_a_question_must_be_about_a_number_of_a_series(
    speech: Speech, point: int, kind: int, number: int, wanted: int
) -> None:
    asked = f"<FeCompConsReq>{fields(CbteTipo=kind, CbteNro=number, PtoVta=point)}</FeCompConsReq>"
    content = auth(*await speech.ticket()) + asked
    answer = result(await speech.call("FECompConsultar", content), "FECompConsultar")
    assert codes(answer, "Err") == [wanted]
    assert answer.find(f"{{{FEV1}}}ResultGet") is None


async def test_the_most_vouchers_of_a_request_can_be_asked_for(speech: Speech) -> None:
    content = auth(*await speech.ticket())
    answer = result(await speech.call("FECompTotXRequest", content), "FECompTotXRequest")
    assert text(answer, "RegXReq") == "250"
    refused = result(await speech.call("FECompTotXRequest", ""), "FECompTotXRequest")
    assert (text(refused, "RegXReq"), codes(refused, "Err")) == ("0", [500])


async def test_texts_with_accents_come_mangled(speech: Speech) -> None:
    message = await error(speech, auth(*await speech.ticket(), OTHER))
    assert "No apareciÃ³ CUIT" in message
