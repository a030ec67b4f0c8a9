"""The client authorises vouchers and looks them up, against the strict stand-in."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import httpx
import pytest
from apps.providers.afip import (
    Associated,
    Authorized,
    Client,
    Concept,
    Credentials,
    DocumentKind,
    Invalid,
    LoginRefused,
    NumberTaken,
    Period,
    Permanent,
    Receiver,
    Rejected,
    ServerStatus,
    Service,
    Settings,
    Tribute,
    VatCondition,
    VatLine,
    VatRate,
    Voucher,
    VoucherKind,
)
from apps.sandbox.afip import Afip

from apps.sandbox import Fault
from tests.apps.afip.speech import CUIT, NOON, OTHER, Clock

DAY = NOON.date()
BUSINESS = Receiver(
    document_kind=DocumentKind.CUIT,
    document_number=int(OTHER),
    vat_condition=VatCondition.REGISTERED,
)


async def test_the_service_says_how_it_is(client: Client, afip: Afip) -> None:
    assert (await client.dummy()).is_ok
    afip.faults.add(Fault(kind="wrong", operation="FEDummy"))
    status = await client.dummy()
    assert status == ServerStatus(application="NO", database="NO", authentication="NO")
    assert not status.is_ok


async def test_a_voucher_gets_a_cae(client: Client, afip: Afip, voucher: Voucher) -> None:
    assert await client.last_authorized(CUIT, 1, voucher.kind) == 0
    answer = await client.request_cae(CUIT, voucher)
    (record,) = afip.register.records
    assert answer == Authorized(cae=record.cae, expires_on=date(2026, 11, 27), number=1)
    assert await client.last_authorized(CUIT, 1, voucher.kind) == 1
    (entry,) = afip.ledger.of("FECAESolicitar", "ok")
    assert entry.subject == f"{CUIT}/1/6/1"


async def test_a_cuit_may_have_hyphens(client: Client, voucher: Voucher) -> None:
    assert (await client.request_cae("20-11111111-2", voucher)).number == 1


async def test_a_voucher_with_everything_is_sent_and_found(
    client: Client, voucher: Voucher
) -> None:
    tribute = Tribute(
        id=7, description="IIBB <1>", base_cents=10_000, percent=Decimal("2.5"), amount_cents=250
    )
    full = replace(
        voucher,
        kind=VoucherKind.INVOICE_A,
        receiver=BUSINESS,
        concept=Concept.GOODS_AND_SERVICES,
        service=Service(since=date(2026, 10, 1), until=date(2026, 10, 31), pay_by=DAY),
        net_cents=15_000,
        untaxed_cents=33,
        exempt_cents=2_000,
        vat=(VatLine.of(VatRate.TWENTY_ONE, 10_000), VatLine.of(VatRate.TEN_AND_A_HALF, 5_000)),
        tributes=(tribute,),
        currency="DOL",
        exchange_rate=Decimal("1450.50"),
        is_paid_in_currency=True,
    )
    answer = await client.request_cae(CUIT, full)
    issued = await client.consult(CUIT, 1, VoucherKind.INVOICE_A, 1)
    assert issued is not None
    assert (issued.code, issued.emission, issued.expires_on) == (
        answer.cae,
        "CAE",
        date(2026, 11, 27),
    )
    assert (issued.total_cents, issued.net_cents, issued.vat_cents) == (19_908, 15_000, 2_625)
    assert (issued.untaxed_cents, issued.exempt_cents, issued.tributes_cents) == (33, 2_000, 250)
    assert (issued.document_kind, issued.document_number) == (80, int(OTHER))
    assert (issued.currency, issued.date, issued.concept) == ("DOL", DAY, 3)


async def test_an_invoice_of_class_c_has_no_vat(client: Client, voucher: Voucher) -> None:
    plain = replace(voucher, kind=VoucherKind.INVOICE_C, vat=())
    assert (await client.request_cae(CUIT, plain)).observations == ()


async def test_a_credit_note_names_its_invoice(
    client: Client, afip: Afip, voucher: Voucher
) -> None:
    await client.request_cae(CUIT, voucher)
    known = Associated(kind=voucher.kind, point_of_sale=1, number=1, cuit=CUIT, date=DAY)
    note = replace(voucher, kind=VoucherKind.CREDIT_NOTE_B, associated=(known,))
    assert (await client.request_cae(CUIT, note)).observations == ()
    detail = afip.register.records[-1].detail
    assert detail.associated is not None
    assert (detail.associated[0].cuit, detail.associated[0].date) == (CUIT, "20261117")


async def test_a_debit_note_may_name_a_period_instead(client: Client, voucher: Voucher) -> None:
    note = replace(
        voucher,
        kind=VoucherKind.DEBIT_NOTE_B,
        period=Period(since=date(2026, 11, 1), until=DAY),
    )
    assert (await client.request_cae(CUIT, note)).number == 1


async def test_observations_come_with_the_cae(client: Client, afip: Afip, voucher: Voucher) -> None:
    afip.registry.remarks[int(OTHER)] = (10217,)
    one = replace(voucher, kind=VoucherKind.INVOICE_A, receiver=BUSINESS)
    answer = await client.request_cae(CUIT, one)
    (remark,) = answer.observations
    assert remark.code == 10217
    assert remark.message.startswith("El credito fiscal")
    recovered = await client.recover(CUIT, one)
    assert isinstance(recovered, Authorized)
    assert recovered.observations == answer.observations


async def test_mangled_texts_are_mended(client: Client, voucher: Voucher) -> None:
    await client.request_cae(CUIT, voucher)
    known = Associated(kind=voucher.kind, point_of_sale=1, number=1)
    more = replace(
        voucher,
        kind=VoucherKind.CREDIT_NOTE_B,
        associated=(known,),
        net_cents=20_000,
        vat=(VatLine.of(VatRate.TWENTY_ONE, 20_000),),
    )
    (remark,) = (await client.request_cae(CUIT, more)).observations
    assert (remark.code, "nota de crédito" in remark.message) == (10237, True)


async def test_a_refused_voucher_says_why(client: Client, afip: Afip, voucher: Voucher) -> None:
    wrong = replace(
        voucher, vat=(VatLine(rate=VatRate.FIVE, base_cents=9_000, amount_cents=2_100),)
    )
    with pytest.raises(Rejected) as caught:
        await client.request_cae(CUIT, wrong)
    assert not isinstance(caught.value, NumberTaken)
    assert caught.value.codes == (10051, 10061)
    assert "10051: the amount of a vat line does not follow from its rate" in str(caught.value)
    assert afip.register.records == []


async def test_a_date_outside_of_the_window_is_no_taken_number(
    client: Client, voucher: Voucher
) -> None:
    with pytest.raises(Rejected) as caught:
        await client.request_cae(CUIT, replace(voucher, date=date(2026, 11, 1)))
    assert (caught.value.codes, type(caught.value)) == ((10016,), Rejected)


async def test_a_wrong_head_is_a_refusal_too(client: Client, voucher: Voucher) -> None:
    with pytest.raises(Rejected) as caught:
        await client.request_cae(CUIT, replace(voucher, point_of_sale=9))
    assert caught.value.codes == (10005,)


async def test_what_does_not_exist_is_not_found(client: Client) -> None:
    assert await client.consult(CUIT, 1, VoucherKind.INVOICE_B, 1) is None
    for asking in (
        client.consult(CUIT, 9, VoucherKind.INVOICE_B, 1),
        client.last_authorized(CUIT, 9, VoucherKind.INVOICE_B),
    ):
        with pytest.raises(Permanent) as caught:
            await asking
        assert caught.value.codes in {(10104,), (11002,)}


async def test_wrong_arguments_are_refused_before_anything_is_sent(
    client: Client, afip: Afip, voucher: Voucher
) -> None:
    for asking in (
        client.last_authorized("20111111113", 1, 6),
        client.last_authorized(CUIT, 0, 6),
        client.consult(CUIT, 1, 6, 0),
        client.consult(CUIT, 1, -6, 1),
        client.request_cae("nobody", voucher),
    ):
        with pytest.raises(Invalid):
            await asking
    assert afip.ledger.entries == []


async def test_each_cuit_has_credentials_of_its_own(
    settings: Settings, http: httpx.AsyncClient, afip: Afip, clock: Clock, voucher: Voucher
) -> None:
    made = {cuit: afip.issue_certificate(cuit) for cuit in (CUIT, OTHER)}

    async def find(cuit: str) -> Credentials:
        return Credentials(certificate_pem=made[cuit].certificate_pem, key_pem=made[cuit].key_pem)

    client = Client(settings, http, credentials=find, now=clock)
    for cuit in (CUIT, OTHER):
        await client.request_cae(cuit, voucher)
    assert [one.subject for one in afip.ledger.of("loginCms", "ok")] == [
        *(f"{CUIT}/wsfe", f"{OTHER}/wsfe"),
    ]


async def test_without_credentials_nobody_is_asked(
    settings: Settings, http: httpx.AsyncClient, afip: Afip
) -> None:
    client = Client(replace(settings, certificate_pem=None, key_pem=None), http)
    with pytest.raises(LoginRefused, match="no certificate is configured"):
        await client.last_authorized(CUIT, 1, 6)
    assert afip.ledger.entries == []


@pytest.mark.parametrize("broken", ["certificate_pem", "key_pem"])
async def test_unreadable_credentials_are_told_without_showing_them(
    settings: Settings, http: httpx.AsyncClient, broken: str
) -> None:
    client = Client(replace(settings, **{broken: b"-----BEGIN SECRET-----"}), http)
    with pytest.raises(LoginRefused, match="must be readable PEM") as caught:
        await client.last_authorized(CUIT, 1, 6)
    assert "SECRET" not in f"{caught.value!r}"
