"""The client makes links, reads payments, gives money back once, and pages through searches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
import pytest
from apps.providers.mercadopago import (
    Checkout,
    Client,
    Conflict,
    Invalid,
    Item,
    NotFound,
    PaymentSearch,
    Permanent,
    Preference,
    Refund,
)
from apps.sandbox.mercadopago import STATUSES, MercadoPago, Payment

from tests.apps.mercadopago.conftest import Clock, preference


async def test_a_preference_becomes_a_link(client: Client, mp: MercadoPago) -> None:
    items = [
        Item(
            title="Visita", unit_price_centavos=1_234_567, quantity=2, id="v", description="Urgente"
        ),
        Item(title="Repuesto", unit_price_centavos=10),
    ]
    wanted = Preference(
        items=items,
        external_reference="invoice-1",
        payer_email="ana@example.com",
        notification_url="https://campo.example/webhooks/mp",
        success_url="https://campo.example/ok",
        failure_url="https://campo.example/no",
        expires_at=datetime(2026, 12, 1, tzinfo=UTC),
        metadata={"org": "org-1"},
    )
    made = await client.create_preference(wanted)
    assert made.url.endswith(f"pref_id={made.id}")
    assert made.external_reference == "invoice-1"
    assert mp.pay(made.id).amount_centavos == wanted.amount_centavos == 2_469_144
    kept = mp.account.preferences[made.id]
    assert kept["expiration_date_to"] == "2026-12-01T00:00:00.000+00:00"
    assert kept["auto_return"] == "approved"


async def test_preferences_are_found_by_their_reference(client: Client) -> None:
    first = await client.create_preference(preference("invoice-1"))
    await client.create_preference(preference("invoice-2"))
    second = await client.create_preference(preference("invoice-1"))
    found = await client.find_preferences("invoice-1")
    assert sorted(found) == sorted([first.id, second.id])
    assert await client.get_preference(first.id) == first


async def test_every_status_is_read(client: Client, mp: MercadoPago, checkout: Checkout) -> None:
    for status, details in STATUSES.items():
        for detail in details:
            paid = mp.pay(checkout.id, status, detail)
            found = await client.get_payment(str(paid.id))
            assert (found.id, found.status, found.status_detail) == (str(paid.id), status, detail)
            assert (found.amount_centavos, found.currency) == (10_050, "ARS")
            assert found.external_reference == "invoice-1"
            assert found.is_approved == (status == "approved")
            open_ = {"pending", "in_process", "authorized", "in_mediation"}
            assert found.is_open == (status in open_)


async def test_an_approved_payment_has_its_instants_and_net(
    client: Client, paid: Payment, clock: Clock
) -> None:
    found = await client.get_payment(str(paid.id))
    assert found.created_at == found.approved_at == clock.at
    assert found.net_received_centavos == 9406
    assert found.refundable_centavos == 10_050


async def test_a_full_refund_gives_all_back(client: Client, paid: Payment) -> None:
    made = await client.refund(str(paid.id), key="idem_org_refund_1")
    assert (made.payment_id, made.amount_centavos, made.status) == (
        str(paid.id),
        10_050,
        "approved",
    )
    found = await client.get_payment(str(paid.id))
    assert (found.status, found.refunded_centavos, found.refundable_centavos) == (
        "refunded",
        10_050,
        0,
    )


async def test_partial_refunds_add_up(client: Client, paid: Payment) -> None:
    first = await client.refund(str(paid.id), key="refund-1", amount_centavos=50)
    found = await client.get_payment(str(paid.id))
    assert (found.status, found.status_detail) == ("approved", "partially_refunded")
    assert (found.refunded_centavos, found.refundable_centavos) == (50, 10_000)
    rest = await client.refund(str(paid.id), key="refund-2")
    assert rest.amount_centavos == 10_000
    assert await client.get_refunds(str(paid.id)) == [first, rest]


async def test_the_same_key_is_the_same_refund(
    client: Client, mp: MercadoPago, paid: Payment
) -> None:
    async def refund() -> Refund:
        return await client.refund(str(paid.id), key="refund-1", amount_centavos=50)

    assert await refund() == await refund()
    assert paid.refunded_centavos == 50
    assert [one.detail["is_new"] for one in mp.ledger.of("POST /v1/payments/{id}/refunds")] == [
        True,
        False,
    ]


async def test_the_same_key_with_another_amount_is_a_conflict(
    client: Client, paid: Payment
) -> None:
    await client.refund(str(paid.id), key="refund-1", amount_centavos=50)
    with pytest.raises(Conflict) as caught:
        await client.refund(str(paid.id), key="refund-1", amount_centavos=51)
    assert caught.value.codes == ("idempotency_key_already_used",)
    assert paid.refunded_centavos == 50


async def test_a_long_key_is_as_stable_as_a_short_one(
    client: Client, mp: MercadoPago, paid: Payment
) -> None:
    long = "idem_" + "x" * 120
    for key in (long, long, long + "y", "clave-ñ", "clave-ñ"):
        await client.refund(str(paid.id), key=key, amount_centavos=1)
    assert paid.refunded_centavos == 3
    assert all(len(key) == 64 for key in mp.account.keys)


async def test_more_than_was_paid_is_not_given_back(client: Client, paid: Payment) -> None:
    await client.refund(str(paid.id), key="refund-1", amount_centavos=10_000)
    with pytest.raises(Permanent, match="answered 400 refund_amount_exceeds"):
        await client.refund(str(paid.id), key="refund-2", amount_centavos=51)
    assert paid.refunded_centavos == 10_000


async def test_a_pending_payment_cannot_be_refunded(
    client: Client, mp: MercadoPago, checkout: Checkout
) -> None:
    pending = mp.pay(checkout.id, "pending")
    with pytest.raises(Permanent) as caught:
        await client.refund(str(pending.id), key="refund-1")
    assert caught.value.codes == ("bad_request", "2063")


async def test_a_payment_of_long_ago_cannot_be_refunded(
    client: Client, paid: Payment, clock: Clock
) -> None:
    clock.move(days=181)
    with pytest.raises(NotFound) as caught:
        await client.refund(str(paid.id), key="refund-1")
    assert "2024" in caught.value.codes


async def test_a_chargeback_is_read(client: Client, mp: MercadoPago, paid: Payment) -> None:
    made = mp.charge_back(paid.id)
    found = await client.get_chargeback(made.id)
    assert (found.payment_ids, found.amount_centavos) == ((str(paid.id),), 10_050)
    assert (found.is_coverage_eligible, found.is_coverage_applied) == (True, False)
    assert (found.is_documentation_required, found.documentation_status) == (True, "pending")
    assert (await client.get_payment(str(paid.id))).status == "charged_back"


async def test_searches_are_paged(
    client: Client, mp: MercadoPago, checkout: Checkout, clock: Clock
) -> None:
    made = [mp.pay(checkout.id) for _ in range(5) if clock.move(seconds=1) is None]
    search = PaymentSearch(external_reference="invoice-1")
    first = await client.search_payments(search, limit=2)
    assert (first.total, first.next_offset) == (5, 2)
    last = await client.search_payments(search, limit=2, offset=4)
    assert ([one.id for one in last.payments], last.next_offset) == ([str(made[4].id)], None)
    all_ = [one.id async for one in client.all_payments(search, limit=2)]
    assert all_ == [str(one.id) for one in made]


async def test_a_payment_that_comes_between_two_pages_repeats_none(
    client: Client, mp: MercadoPago, checkout: Checkout, clock: Clock
) -> None:
    made = [mp.pay(checkout.id) for _ in range(2)]
    found: list[str] = []
    async for one in client.all_payments(PaymentSearch(), limit=1):
        if not found:
            clock.move(hours=-1)
            made.append(mp.pay(checkout.id))  # it comes first, and moves the others on
        found.append(one.id)
    assert found == [str(one.id) for one in made[:2]]


async def test_searches_filter(
    client: Client, mp: MercadoPago, checkout: Checkout, clock: Clock
) -> None:
    early = mp.pay(checkout.id)
    clock.move(hours=1)
    late, rejected = mp.pay(checkout.id), mp.pay(checkout.id, "rejected")
    other = await client.create_preference(preference("invoice-2"))
    elsewhere = mp.pay(other.id)

    async def ids(search: PaymentSearch) -> list[str]:
        return [one.id async for one in client.all_payments(search)]

    hour = timedelta(hours=1)
    assert await ids(PaymentSearch(begin=clock.at - hour, end=clock.at - hour)) == [str(early.id)]
    assert await ids(PaymentSearch(status="rejected")) == [str(rejected.id)]
    assert await ids(PaymentSearch(external_reference="invoice-2")) == [str(elsewhere.id)]
    assert str(late.id) in await ids(PaymentSearch(begin=clock.at, end=clock.at))
    assert await ids(PaymentSearch(external_reference="nobody's")) == []


@pytest.mark.parametrize("id_", ["", "1/refunds", "../../users", "1?x=1", "\uff11\uff12", "1" * 21])
async def test_an_id_that_is_none_is_not_asked_for(
    client: Client, mp: MercadoPago, id_: str
) -> None:
    for call in (client.get_payment(id_), client.refund(id_, key="k"), client.get_refunds(id_)):
        with pytest.raises(Invalid, match="payment_id must be an id"):
            await call
    assert mp.ledger.entries == []


async def test_a_refund_without_a_key_is_refused(client: Client, paid: Payment) -> None:
    with pytest.raises(Invalid, match="key must be given"):
        await client.refund(str(paid.id), key="")


async def test_the_clients_own_redirects_and_timeouts_do_not_count(
    settings: object, mp: MercadoPago, paid: Payment
) -> None:
    """The program's connections may follow redirects; a token must not."""
    async with httpx.AsyncClient(follow_redirects=True, timeout=0.000001, trust_env=False) as http:
        client = Client(settings, http)  # pyright: ignore[reportArgumentType]
        assert (await client.get_payment(str(paid.id))).is_approved


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Preference(items=[], external_reference="x"),
        lambda: preference(""),
        lambda: preference("x" * 257),
        lambda: Item(title="", unit_price_centavos=1),
        lambda: Item(title="x", unit_price_centavos=1, quantity=0),
        lambda: Preference(
            items=[Item(title="x", unit_price_centavos=1)],
            external_reference="x",
            expires_at=datetime(2026, 1, 1),  # noqa: DTZ001 - what is refused
        ),
        lambda: PaymentSearch(begin=datetime.now(UTC)),
        lambda: PaymentSearch(
            begin=datetime(2026, 1, 1),  # noqa: DTZ001 - what is refused
            end=datetime(2026, 1, 1),  # noqa: DTZ001
        ),
    ],
)
def test_what_could_not_work_is_refused_before_it_is_sent(wrong: object) -> None:
    with pytest.raises(Invalid, match="must"):
        wrong()  # pyright: ignore[reportCallIssue]


async def test_a_page_has_at_most_a_hundred(client: Client) -> None:
    with pytest.raises(Invalid, match="limit must be from 1 to 100"):
        await client.search_payments(PaymentSearch(), limit=101)
