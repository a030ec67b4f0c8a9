"""Answers that no office would give do no harm: they are refused, and nothing of them leaks."""

from __future__ import annotations

import gzip
import traceback
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import httpx
import pytest
from apps.providers.afip import (
    AfipError,
    Authorized,
    Client,
    Credentials,
    Different,
    MemoryTicketStore,
    Permanent,
    RateLimited,
    Rejected,
    Retryable,
    Settings,
    Ticket,
    UnknownOutcome,
    Voucher,
)
from apps.sandbox.stand_in import serving
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.apps.afip.speech import CUIT, FEV1, LOGIN, NOON, SOAP, Clock, envelope, fields

REQUEST = "FECAESolicitar"
SECRETS = ("s3cr3t-token", "s3cr3t-sign", "BEGIN PRIVATE", "s3cr3t-text")


@dataclass
class Impostor:
    """A server that answers everything with the same."""

    content: bytes = b""
    status: int = 200
    content_type: str = "text/xml"
    encoding: str = ""
    location: str = ""
    bodies: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()
        self.bodies += 1
        response = Response(self.content, self.status, media_type=self.content_type)
        if self.encoding:
            response.headers["content-encoding"] = self.encoding
        if self.location:
            response.headers["location"] = self.location
        await response(scope, receive, send)


@pytest.fixture
async def impostor() -> AsyncIterator[tuple[Impostor, str]]:
    impostor = Impostor()
    async with serving(impostor) as url:
        yield impostor, url


@pytest.fixture
async def fooled(
    impostor: tuple[Impostor, str], http: httpx.AsyncClient, credentials: Credentials
) -> Client:
    """A client that has a ticket, and speaks to the impostor."""
    store = MemoryTicketStore()
    await store.save(
        Ticket(
            cuit=CUIT,
            service="wsfe",
            token="s3cr3t-token",
            sign="s3cr3t-sign",
            generated_at=NOON,
            expires_at=NOON + timedelta(hours=12),
        )
    )
    url = impostor[1]
    settings = Settings(
        wsaa_url=url,
        wsfe_url=url,
        certificate_pem=credentials.certificate_pem,
        key_pem=credentials.key_pem,
    )
    return Client(settings, http, tickets=store, now=Clock())


def answer(operation: str, content: str, namespace: str = FEV1) -> bytes:
    response = f"{operation}Response"
    inner = f"<{operation}Result>{content}</{operation}Result>"
    return envelope(f'<{response} xmlns="{namespace}">{inner}</{response}>').encode()


def approved(**changes: object) -> bytes:
    """An approval; changes replace fields of its two parts."""
    head = {"Cuit": CUIT, "PtoVta": 1, "CbteTipo": 6, "Resultado": "A"}
    one = {
        "DocTipo": 99,
        "DocNro": 0,
        "CbteDesde": 1,
        "CbteHasta": 1,
        "CAE": "76123456789012",
        "CAEFchVto": "20261127",
    }
    head |= {name: value for name, value in changes.items() if name in head}
    one |= {"Resultado": "A"} | {name: value for name, value in changes.items() if name not in head}
    if "Detail" in one:
        one["Resultado"] = one.pop("Detail")
    detail = f"<FeDetResp><FECAEDetResponse>{fields(**one)}</FECAEDetResponse></FeDetResp>"
    return answer(REQUEST, f"<FeCabResp>{fields(**head)}</FeCabResp>{detail}")


async def test_the_approval_that_others_are_made_of_is_believed(
    fooled: Client, impostor: tuple[Impostor, str], voucher: Voucher
) -> None:
    impostor[0].content = approved()
    assert (await fooled.request_cae(CUIT, voucher)).cae == "76123456789012"


@pytest.mark.parametrize(
    "content",
    [
        approved(CbteDesde=2),
        approved(CbteHasta=2),
        approved(DocNro=5),
        approved(Cuit="30500010912"),
        approved(PtoVta=2),
        approved(CbteTipo=1),
        approved(CAE="7612345678901"),
        approved(CAE="761234567890123"),
        approved(CAE="76123456789O12"),
        approved(CAE="٧٦١٢٣٤٥٦٧٨٩٠١٢"),
        approved(CAE=None),
        approved(CAEFchVto="20261131"),
        approved(CAEFchVto="tomorrow"),
        approved(Detail="P"),
        approved(Detail=None),
        approved(CbteDesde="one"),
        approved(CbteDesde="9" * 5000),
        approved().replace(FEV1.encode(), FEV1.lower().encode()),
        approved().replace(SOAP.encode(), b"urn:soap"),
        approved().replace(b"FECAESolicitarResp", b"FECompConsultarResp"),
        answer(REQUEST, ""),
        envelope("").encode(),
        b"<html>maintenance</html>",
        b"",
        b"\x00\xff\xfe",
        b"<a>" * 100_000,
        b'<!DOCTYPE a [<!ENTITY x "s3cr3t-text">]>' + approved(),
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        b'<?xml version="1.0" encoding="no-such-code"?><a/>',
        approved().replace(b"76123456789012", b"&#0;"),
        b"<a>" + b"x" * 5_000_000 + b"</a>",
    ],
)
async def test_an_approval_that_is_not_quite_one_leaves_the_outcome_unknown(
    fooled: Client, impostor: tuple[Impostor, str], voucher: Voucher, content: bytes
) -> None:
    impostor[0].content = content
    with pytest.raises(UnknownOutcome):
        await fooled.request_cae(CUIT, voucher)
    with pytest.raises(Retryable):
        await fooled.last_authorized(CUIT, 1, 6)


@pytest.mark.parametrize("status", [301, 302, 204, 500, 599])
async def test_other_statuses_leave_the_outcome_unknown(
    fooled: Client, impostor: tuple[Impostor, str], voucher: Voucher, status: int
) -> None:
    impostor[0].status, impostor[0].location = status, impostor[1]
    impostor[0].content = b"" if status == 204 else approved()
    with pytest.raises(UnknownOutcome):
        await fooled.request_cae(CUIT, voucher)
    assert impostor[0].bodies == 1  # no redirect was followed


async def test_what_expands_to_much_more_is_not_read_to_its_end(
    fooled: Client, impostor: tuple[Impostor, str], voucher: Voucher
) -> None:
    impostor[0].content, impostor[0].encoding = gzip.compress(b" " * 200_000_000, 9), "gzip"
    with pytest.raises(UnknownOutcome, match="TooLarge"):
        await fooled.request_cae(CUIT, voucher)


async def test_an_encoding_that_is_a_lie_leaves_the_outcome_unknown(
    fooled: Client, impostor: tuple[Impostor, str], voucher: Voucher
) -> None:
    impostor[0].content, impostor[0].encoding = b"not compressed", "gzip"
    with pytest.raises(UnknownOutcome, match="DecodingError"):
        await fooled.request_cae(CUIT, voucher)


def fault(code: str) -> bytes:
    inner = f"<faultcode>{code}</faultcode><faultstring>s3cr3t-text</faultstring>"
    return envelope(f"<s:Fault>{inner}</s:Fault>").encode()


async def test_a_fault_of_ours_is_permanent_and_one_of_theirs_is_not(
    fooled: Client, impostor: tuple[Impostor, str], voucher: Voucher
) -> None:
    impostor[0].status, impostor[0].content = 500, fault("soap:Client")
    with pytest.raises(Permanent):
        await fooled.request_cae(CUIT, voucher)
    impostor[0].content = fault("soap:Server")
    with pytest.raises(UnknownOutcome):
        await fooled.request_cae(CUIT, voucher)
    with pytest.raises(Retryable):
        await fooled.last_authorized(CUIT, 1, 6)
    impostor[0].status = 200
    with pytest.raises(UnknownOutcome):
        await fooled.request_cae(CUIT, voucher)


@pytest.mark.parametrize(
    "ticket",
    [
        "",
        "no ticket",
        "<loginTicketResponse/>",
        "<t><header><generationTime>now</generationTime></header></t>",
        '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
    ],
)
async def test_a_login_that_gives_no_ticket_may_be_tried_again(
    impostor: tuple[Impostor, str], http: httpx.AsyncClient, settings: Settings, ticket: str
) -> None:
    escaped = ticket.replace("&", "&amp;").replace("<", "&lt;")
    impostor[0].content = envelope(
        f'<loginCmsResponse xmlns="{LOGIN}"><loginCmsReturn>{escaped}</loginCmsReturn>'
        "</loginCmsResponse>"
    ).encode()
    client = Client(replace(settings, wsaa_url=impostor[1]), http, now=Clock())
    with pytest.raises(Retryable, match="no readable ticket"):
        await client.last_authorized(CUIT, 1, 6)


@pytest.mark.parametrize("code", ["cms.s3cr3t-text here", "cms." + "x" * 1000, "ns1:", ""])
async def test_odd_codes_of_the_login_are_not_repeated(
    impostor: tuple[Impostor, str], http: httpx.AsyncClient, settings: Settings, code: str
) -> None:
    impostor[0].status, impostor[0].content = 500, fault(code)
    client = Client(replace(settings, wsaa_url=impostor[1]), http, now=Clock())
    with pytest.raises(AfipError, match=r"\(unknown\)"):
        await client.last_authorized(CUIT, 1, 6)


async def test_a_login_that_asks_to_wait_is_told(
    impostor: tuple[Impostor, str], http: httpx.AsyncClient, settings: Settings
) -> None:
    impostor[0].status = 429
    client = Client(replace(settings, wsaa_url=impostor[1]), http, now=Clock())
    with pytest.raises(RateLimited) as caught:
        await client.last_authorized(CUIT, 1, 6)
    assert caught.value.retry_after is None
    impostor[0].status, impostor[0].content = 200, fault("ns1:cms.bad")
    with pytest.raises(Retryable, match="no readable ticket"):
        await client.last_authorized(CUIT, 1, 6)


def on_record(**changes: object) -> bytes:
    """A voucher as FECompConsultar gives it."""
    known: dict[str, object] = {
        "Concepto": 1,
        "DocTipo": 99,
        "DocNro": 0,
        "CbteDesde": 1,
        "CbteHasta": 1,
        "CbteFch": "20261117",
        "ImpTotal": 121,
        "ImpTotConc": 0,
        "ImpNeto": "1E+2",
        "ImpOpEx": 0,
        "ImpTrib": 0,
        "ImpIVA": 21,
        "MonId": "PES",
        "Resultado": "A",
        "CodAutorizacion": "76123456789012",
        "EmisionTipo": "CAE",
        "FchVto": "20261127",
        "PtoVta": 1,
        "CbteTipo": 6,
    }
    return answer("FECompConsultar", f"<ResultGet>{fields(**{**known, **changes})}</ResultGet>")


async def test_the_record_that_others_are_made_of_is_believed(
    fooled: Client, impostor: tuple[Impostor, str], voucher: Voucher
) -> None:
    impostor[0].content = on_record()
    assert isinstance(await fooled.recover(CUIT, voucher), Authorized)
    impostor[0].content = on_record(EmisionTipo="CAEA", CbteHasta=2)
    recovered = await fooled.recover(CUIT, voucher)
    assert isinstance(recovered, Different)
    assert recovered.differences == ("number", "emission")


@pytest.mark.parametrize(
    "changes",
    [
        {"PtoVta": 2},
        {"CbteTipo": 1},
        {"CbteDesde": 2, "CbteHasta": 3},
        {"Resultado": "R"},
        {"ImpTotal": 122},
        {"ImpTotal": "121.001"},
        {"ImpTotal": "NaN"},
        {"ImpTotal": "Infinity"},
        {"ImpTotal": "1E+999999999"},
        {"ImpTotal": "much"},
        {"ImpTotal": -121},
        {"CodAutorizacion": "761234567890"},
        {"FchVto": ""},
        {"MonId": None},
    ],
)
async def test_a_record_that_cannot_be_one_is_not_believed(
    fooled: Client, impostor: tuple[Impostor, str], voucher: Voucher, changes: dict[str, object]
) -> None:
    impostor[0].content = on_record(**changes)
    with pytest.raises(Retryable, match="FECompConsultar failed"):
        await fooled.recover(CUIT, voucher)


async def test_a_last_number_of_another_series_is_not_believed(
    fooled: Client, impostor: tuple[Impostor, str]
) -> None:
    operation = "FECompUltimoAutorizado"
    impostor[0].content = answer(operation, fields(PtoVta=1, CbteTipo=6, CbteNro=7))
    assert await fooled.last_authorized(CUIT, 1, 6) == 7
    with pytest.raises(Retryable, match="another series"):
        await fooled.last_authorized(CUIT, 2, 6)


def refusal() -> bytes:
    errors = "<Errors><Err><Code>10099</Code><Msg>s3cr3t-text</Msg></Err></Errors>"
    return answer(REQUEST, errors)


@pytest.mark.parametrize(
    ("content", "status"),
    [(refusal, 200), (lambda: fault("soap:Client"), 500), (lambda: b"s3cr3t-text", 503)],
)
async def test_no_secret_and_no_text_from_outside_gets_into_an_error(
    fooled: Client,
    impostor: tuple[Impostor, str],
    voucher: Voucher,
    content: Callable[[], bytes],
    status: int,
) -> None:
    impostor[0].content, impostor[0].status = content(), status
    with pytest.raises(AfipError) as caught:
        await fooled.request_cae(CUIT, voucher)
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert not [secret for secret in SECRETS if secret in told]
    assert str(caught.value)[0].islower() or str(caught.value).startswith(("AFIP", REQUEST))


async def test_errors_do_not_carry_the_request_with_them(
    fooled: Client, settings: Settings, http: httpx.AsyncClient, voucher: Voucher
) -> None:
    nowhere = Client(replace(settings, wsaa_url="http://127.0.0.1:1/"), http, now=Clock())
    with pytest.raises(Retryable) as caught:
        await nowhere.request_cae(CUIT, voucher)
    seen: BaseException | None = caught.value
    while seen is not None:
        assert not hasattr(seen, "request")
        seen = seen.__cause__ or seen.__context__


async def test_texts_of_remarks_are_kept_beside_the_message(
    fooled: Client, impostor: tuple[Impostor, str], voucher: Voucher
) -> None:
    impostor[0].content = refusal()
    with pytest.raises(Rejected) as caught:
        await fooled.request_cae(CUIT, voucher)
    assert caught.value.remarks[0].message == "s3cr3t-text"
    assert str(caught.value) == "AFIP refused the voucher (10099)"
