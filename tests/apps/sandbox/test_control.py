"""A driver in another process does and sees all that a test in this one can."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import httpx
import pytest
from apps.providers import afip, mail, maps, mercadopago, openai, push, sms, whatsapp
from apps.providers.afip.wsaa import ARGENTINA
from apps.sandbox.openai.spoken import spoken
from apps.sandbox.sandbox import PLATFORM, Sandbox

from tests._support.eventually import eventually
from tests.apps.sandbox.conftest import Driver, Inbox

CUIT, ANA = "30712345671", "5491144440000"


async def received(inbox: Inbox, count: int = 1) -> None:
    await eventually(lambda: len(inbox.got) >= count)


def voucher(number: int) -> afip.Voucher:
    return afip.Voucher(
        kind=afip.VoucherKind.INVOICE_B,
        point_of_sale=2,
        number=number,
        date=datetime.now(ARGENTINA).date(),
        receiver=afip.Receiver(
            document_kind=afip.DocumentKind.UNIDENTIFIED,
            document_number=0,
            vat_condition=afip.VatCondition.FINAL_CONSUMER,
        ),
        net_cents=10_000,
        vat=(afip.VatLine.of(afip.VatRate.TWENTY_ONE, 10_000),),
    )


# -- the tax office -------------------------------------------------------------------------------


async def test_a_business_that_was_registered_gets_caes_through_the_platform(
    driver: Driver, http: httpx.AsyncClient
) -> None:
    told = await driver.act("afip/register", cuit=CUIT, points_of_sale=[1, 2])
    assert told == {"cuit": CUIT, "delegates_to": PLATFORM}
    client = afip.Client(afip.Settings.from_env(await driver.environment()), http)
    first = await client.request_cae(CUIT, voucher(1))
    (shown,) = await driver.get("afip/vouchers")
    assert (shown["subject"], shown["cae"]) == (f"{CUIT}/2/6/1", first.cae)
    assert await driver.get("afip/vouchers?after=1") == []
    assert (await driver.get("afip/counts"))["FECAESolicitar"] == {"ok": 1}


async def test_a_certificate_is_issued_for_a_business_of_its_own(
    driver: Driver, http: httpx.AsyncClient
) -> None:
    made = await driver.act("afip/issue_certificate", cuit=CUIT, points_of_sale=[2])
    settings = replace(
        afip.Settings.from_env(await driver.environment()),
        certificate_pem=made["certificate_pem"].encode(),
        key_pem=made["key_pem"].encode(),
    )
    await driver.act("afip/break_down", operation="FECAESolicitar", code=502, is_done=True)
    client = afip.Client(settings, http)
    with pytest.raises(afip.UnknownOutcome):
        await client.request_cae(CUIT, voucher(1))
    assert await client.last_authorized(CUIT, 2, 6) == 1


# -- whatsapp -------------------------------------------------------------------------------------


async def test_what_a_customer_writes_is_told_signed_and_again_until_it_is_taken(
    driver: Driver, inbox: Inbox
) -> None:
    settings = whatsapp.Settings.from_env(await driver.environment())
    await driver.tell(whatsapp=inbox.url)
    await driver.act("whatsapp/add_number", id="777")
    inbox.statuses = [503, 500]
    said = await driver.act("whatsapp/text", sender=ANA, body="¿Atienden hoy?", number="777")
    await received(inbox, 3)
    bodies = {body for _, body in inbox.got}
    assert len(bodies) == 1
    request, body = inbox.got[0]
    (message,) = whatsapp.read_webhook(settings, headers=request.headers, body=body).messages
    assert (message.id, message.phone_number_id) == (said["id"], "777")
    await eventually(lambda: _webhooks(driver, taken=1, waiting=0))
    assert (await driver.get("whatsapp/counts"))["notify"] == {"refused": 2, "ok": 1}


async def _webhooks(driver: Driver, **expected: int) -> bool:
    shown = await driver.get("webhooks")
    return {name: shown[name] for name in expected} == expected


async def test_a_recording_can_be_downloaded_behind_the_prefix_of_the_service(
    driver: Driver, inbox: Inbox, http: httpx.AsyncClient
) -> None:
    settings = whatsapp.Settings.from_env(await driver.environment())
    await driver.tell(whatsapp=inbox.url)
    made = await driver.act("whatsapp/voice", sender=ANA, text="pierde agua", seconds=2)
    client = whatsapp.Client(settings, http)
    stored = await client.get_media(made["media_id"])
    assert stored.url.startswith(f"{driver.url}/whatsapp/media/files/")
    assert await client.download_media(stored) == spoken("pierde agua", 2)


async def test_a_message_goes_its_way_and_is_read(
    driver: Driver, inbox: Inbox, http: httpx.AsyncClient
) -> None:
    settings = whatsapp.Settings.from_env(await driver.environment())
    await driver.act("whatsapp/add_number", id="106540352249999")
    settings = replace(settings, phone_number_id="106540352249999")
    await driver.act("whatsapp/add_template", name="promo", parameters=1)
    await driver.tell(whatsapp=inbox.url)
    client = whatsapp.Client(settings, http)
    sent = await client.send(ANA, whatsapp.Template(name="promo", parameters=["hoy"]))
    await driver.act("whatsapp/deliver", message_id=sent.message_id)
    await driver.act("whatsapp/deliver", message_id=sent.message_id, statuses=["read"])
    await received(inbox, 2)
    (shown,) = await driver.get("whatsapp/messages")
    assert (shown["id"], shown["statuses"]) == (sent.message_id, ["sent", "delivered", "read"])
    assert shown["body"]["template"]["name"] == "promo"
    read = [
        (one.status, one.phone_number_id)
        for request, body in inbox.got
        for one in whatsapp.read_webhook(settings, headers=request.headers, body=body).statuses
    ]
    assert sorted(read) == [(one, "106540352249999") for one in ("delivered", "read", "sent")]


# -- mercadopago ----------------------------------------------------------------------------------


async def test_payments_refunds_and_chargebacks_are_told_and_can_be_read_back(
    driver: Driver, inbox: Inbox, http: httpx.AsyncClient
) -> None:
    settings = mercadopago.Settings.from_env(await driver.environment())
    client = mercadopago.Client(settings, http)
    for number in (1, 2):
        await client.create_preference(
            mercadopago.Preference(
                items=[mercadopago.Item(title="Visita", unit_price_centavos=150_000)],
                external_reference=f"invoice-{number}",
                notification_url=f"{inbox.url}/org-{number}",
            )
        )
    paid = await driver.act("mercadopago/pay", external_reference="invoice-1")
    other = await driver.act("mercadopago/pay", external_reference="invoice-2", status="pending")
    await driver.act("mercadopago/settle", payment_id=other["payment_id"], status="approved")
    await driver.act("mercadopago/refund", payment_id=paid["payment_id"], amount_centavos=50_000)
    taken = await driver.act("mercadopago/charge_back", payment_id=other["payment_id"])
    await received(inbox, 5)
    notes = [_note(settings, request, body) for request, body in inbox.got]
    about = {(path, one.data_id) for path, one in notes}
    assert about == {
        ("/hooks/org-1", str(paid["payment_id"])),
        ("/hooks/org-2", str(other["payment_id"])),
        ("/hooks/org-2", taken["chargeback_id"]),
    }
    assert len({one.id for _, one in notes}) == 5
    payment = await client.get_payment(str(paid["payment_id"]))
    assert (payment.status_detail, payment.refunded_centavos) == ("partially_refunded", 50_000)
    shown = await driver.get("mercadopago/payments")
    assert [one["status"] for one in shown] == ["approved", "charged_back"]
    assert len(await driver.get("mercadopago/preferences?after=1")) == 1


def _note(settings: mercadopago.Settings, request: Any, body: bytes) -> tuple[str, Any]:
    read = mercadopago.read_notification(
        settings, query=request.query_params, headers=request.headers, body=body
    )
    return request.url.path, read


async def test_a_notification_that_is_refused_comes_again_with_the_same_id(
    driver: Driver, inbox: Inbox, http: httpx.AsyncClient
) -> None:
    settings = mercadopago.Settings.from_env(await driver.environment())
    await driver.tell(mercadopago=inbox.url)
    made = await mercadopago.Client(settings, http).create_preference(
        mercadopago.Preference(
            items=[mercadopago.Item(title="Visita", unit_price_centavos=100)],
            external_reference="x",
        )
    )
    inbox.statuses = [500] * 10
    await driver.act("mercadopago/pay", preference_id=made.id)
    await eventually(lambda: _webhooks(driver, given_up=1, waiting=0, taken=0))
    notes = [_note(settings, request, body)[1] for request, body in inbox.got]
    assert len(notes) == 4  # the first attempt and three more
    assert len({one.id for one in notes}) == 1


# -- the others -----------------------------------------------------------------------------------


async def test_devices_are_registered_and_removed(driver: Driver, http: httpx.AsyncClient) -> None:
    client = push.Client(push.Settings.from_env(await driver.environment()), http)
    token = (await driver.act("push/register"))["token"]
    await client.send(push.Notice(token=token, title="Trabajo nuevo", body="…"))
    (shown,) = await driver.get("push/messages")
    assert shown["notification"]["title"] == "Trabajo nuevo"
    await driver.act("push/expire_tokens")
    await driver.act("push/unregister", token=token)
    with pytest.raises(push.Unregistered):
        await client.send(push.Notice(token=token, title="Otro", body="…"))


async def test_texts_are_shown_and_their_ends_are_told(
    driver: Driver, inbox: Inbox, http: httpx.AsyncClient
) -> None:
    given = {**await driver.environment(), "TWILIO_STATUS_CALLBACK": inbox.url}
    settings = sms.Settings.from_env(given)
    client = sms.Client(settings, http)
    sent = await client.send(f"+{ANA}", "hola")
    (shown,) = await driver.get("twilio/messages")
    assert (shown["sid"], shown["body"]) == (sent.sid, "hola")
    await driver.act("twilio/tell", sid=sent.sid, status="delivered")
    await received(inbox)
    request, body = inbox.got[0]
    signature = request.headers["x-twilio-signature"]
    update = sms.read_status(settings, url=inbox.url, body=body, signature=signature)
    assert (update.sid, update.status) == (sent.sid, "delivered")
    await driver.act("twilio/opt_out", number=f"+{ANA}")
    with pytest.raises(sms.Permanent):
        await client.send(f"+{ANA}", "otra vez")


async def test_places_are_put_on_the_map_and_taken_off(
    driver: Driver, http: httpx.AsyncClient
) -> None:
    client = maps.Client(maps.Settings.from_env(await driver.environment()), http)
    await driver.act("maps/place", address="Taller", lat=-34.6, lng=-58.4)
    way = await client.directions(maps.Point(-34.6, -58.4), "Taller")
    assert way.distance.meters == 0
    await driver.act("maps/forget", address="Taller")
    with pytest.raises(maps.NoRoute):
        await client.directions(maps.Point(-34.6, -58.4), "Taller")


async def test_mail_comes_to_the_mailbox(driver: Driver) -> None:
    client = mail.Client(mail.Settings.from_env(await driver.environment()))
    await client.send(mail.Mail(to=["ana@example.com"], subject="Factura", text="Adjunta."))
    (shown,) = await driver.get("mail/mailbox")
    assert (shown["recipients"], shown["subject"]) == (["ana@example.com"], "Factura")
    assert shown["text"].strip() == "Adjunta."
    await driver.act("mail/forget", address="eva@example.com")
    with pytest.raises(mail.Permanent):
        await client.send(mail.Mail(to=["eva@example.com"], subject="x", text="x"))


async def test_a_model_is_told_what_to_say(driver: Driver, http: httpx.AsyncClient) -> None:
    client = openai.Client(openai.Settings.from_env(await driver.environment()), http)
    await driver.act("openai/say", phrase="horario", answer="De 8 a 18.")
    reply = await client.chat([openai.Message("user", "¿Qué horario tienen?")])
    assert reply.value == "De 8 a 18."
    await driver.act("openai/set_quota", is_used_up=True)
    with pytest.raises(openai.Permanent):
        await client.chat([openai.Message("user", "hola")])


# -- ledgers --------------------------------------------------------------------------------------


async def test_ledgers_are_read_on_from_where_one_was(
    driver: Driver, http: httpx.AsyncClient
) -> None:
    client = afip.Client(afip.Settings.from_env(await driver.environment()), http)
    for _ in range(3):
        await client.dummy()
    first = await driver.get("afip/ledger?limit=2")
    assert [one["number"] for one in first] == [1, 2]
    assert [one["number"] for one in await driver.get("afip/ledger?after=2")] == [3]
    assert await driver.get("afip/ledger?after=3") == []
    counts = await driver.get("counts")
    assert counts["afip"] == {"FEDummy": {"ok": 3}}
    assert set(counts) == {
        *("afip", "mercadopago", "whatsapp", "openai", "twilio", "push", "maps", "mail")
    }


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "given", "status", "words"),
    [
        ("afip/fly", {}, 404, "verb must be one of"),
        ("nobody/text", {}, 404, "service must be one of"),
        ("afip/register", {"cuit": "30712345672"}, 422, "check digits"),
        ("afip/register", {"cuit": CUIT, "odd": 1}, 422, "unknown field `odd`"),
        ("afip/register", {}, 422, "missing required field `cuit`"),
        ("whatsapp/text", {"sender": ANA, "body": "x", "number": "1"}, 404, "number must be"),
        ("whatsapp/deliver", {"message_id": "x"}, 404, "message_id must be one"),
        ("mercadopago/pay", {"preference_id": "x"}, 404, "preference_id must be one"),
        ("mercadopago/pay", {}, 404, "external_reference must be"),
        ("mercadopago/settle", {"payment_id": 1, "status": "x"}, 404, "payment_id must be"),
        ("push/unregister", {"token": "x"}, 404, "token must be"),
        ("twilio/tell", {"sid": "x", "status": "sent"}, 404, "sid must be"),
        ("afip/faults", {"kind": "odd"}, 422, "kind must be one of"),
        ("afip/faults", {"kind": "cut", "lasts": -2}, 422, "lasts must be more than 0, got -2"),
    ],
)
async def test_what_makes_no_sense_is_refused_with_a_sentence(
    driver: Driver, inbox: Inbox, path: str, given: dict[str, Any], status: int, words: str
) -> None:
    await driver.tell(whatsapp=inbox.url, mercadopago=inbox.url)
    code, error = await driver.refused(path, **given)
    assert (code, words in error) == (status, True), error


async def test_nothing_happens_where_nobody_could_be_told(driver: Driver, sandbox: Sandbox) -> None:
    code, error = await driver.refused("whatsapp/text", sender=ANA, body="hola")
    assert (code, error) == (422, "the webhook of whatsapp must be set first")
    assert sandbox.whatsapp.conversation.received == {}


@pytest.mark.parametrize("urls", [{"whatsapp": "https://example.com/"}, {"afip": "http://[::1]/"}])
async def test_webhooks_go_to_this_machine_only(driver: Driver, urls: dict[str, str]) -> None:
    response = await driver.http.put(f"{driver.url}/sandbox/webhooks", json=urls)
    assert response.status_code == 422
    assert (await driver.get("webhooks"))["urls"] == {}


@pytest.mark.parametrize("path", ["afip/ledger?after=x", "afip/ledger?limit=-1"])
async def test_numbers_in_questions_must_be_whole(driver: Driver, path: str) -> None:
    response = await driver.http.get(f"{driver.url}/sandbox/{path}")
    assert (response.status_code, "must be a whole number" in response.text) == (422, True)


async def test_what_is_no_json_is_refused(driver: Driver) -> None:
    response = await driver.http.post(f"{driver.url}/sandbox/afip/register", content=b"{")
    assert response.status_code == 422
    assert (await driver.http.get(f"{driver.url}/sandbox/afip/odd")).status_code == 404


async def test_two_sandboxes_have_other_secrets(driver: Driver) -> None:
    async with Sandbox().serving() as url:
        theirs = (await driver.http.get(f"{url}/sandbox/environment")).json()
    ours = await driver.environment()
    secret = ["MP_ACCESS_TOKEN", "WHATSAPP_APP_SECRET", "TWILIO_AUTH_TOKEN", "OPENAI_API_KEY"]
    assert not {theirs[one] for one in secret} & {ours[one] for one in secret}
