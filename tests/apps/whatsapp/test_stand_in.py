"""The stand-in is as strict as WhatsApp, and tells what happens by signed webhooks."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from apps.providers.whatsapp import Client, MediaMessage, ReplyMessage, Template, Text, TextMessage
from apps.sandbox.whatsapp import ApprovedTemplate, Delivery, Event, Forgery, WhatsApp

from tests.apps.whatsapp.conftest import ANA, Clock, Inbox

HELLO = {"messaging_product": "whatsapp", "to": ANA, "type": "text", "text": {"body": "hola"}}


async def post(wa: WhatsApp, http: httpx.AsyncClient, body: Any, **more: Any) -> httpx.Response:
    number = more.pop("number", wa.phone_number_id)
    headers = {"authorization": f"Bearer {more.pop('token', wa.access_token)}"}
    url = f"{wa.url}/v23.0/{number}/messages"
    return await http.post(url, json=body, headers=headers)


def template(name: str = "turno_confirmado", code: str = "es_AR", **more: Any) -> dict[str, Any]:
    return {
        "messaging_product": "whatsapp",
        "to": ANA,
        "type": "template",
        "template": {"name": name, "language": {"code": code}, **more},
    }


def buttons(*given: Any, **more: Any) -> dict[str, Any]:
    interactive = {"type": "button", "body": {"text": "?"}, "action": {"buttons": list(given)}}
    return {
        "messaging_product": "whatsapp",
        "to": ANA,
        "type": "interactive",
        "interactive": interactive | more,
    }


def reply(id_: Any = "1", title: Any = "Sí") -> dict[str, Any]:
    return {"type": "reply", "reply": {"id": id_, "title": title}}


def media(kind: str, **content: Any) -> dict[str, Any]:
    return {"messaging_product": "whatsapp", "to": ANA, "type": kind, kind: content}


TEXT = {"type": "text", "text": "x"}
URL = "https://x.example/f"
WRONG: list[tuple[Any, int]] = [
    ([], 100),
    ({}, 100),
    (HELLO | {"messaging_product": "telegram"}, 100),
    (HELLO | {"to": None}, 131008),
    (HELLO | {"to": 5491155551234}, 100),
    (HELLO | {"to": f"+{ANA}"}, 131009),
    (HELLO | {"to": "1234567"}, 131009),
    (HELLO | {"to": "1" * 16}, 131009),
    (HELLO | {"recipient_type": "group"}, 131009),
    (HELLO | {"type": "carrier_pigeon"}, 131009),
    (HELLO | {"type": "image"}, 100),
    (HELLO | {"text": None}, 131008),
    (HELLO | {"text": "hola"}, 100),
    (HELLO | {"text": {"body": ""}}, 131008),
    (HELLO | {"text": {"body": "x" * 4097}}, 100),
    (HELLO | {"text": {"body": "x", "preview_url": "yes"}}, 100),
    (HELLO | {"text": {"body": "x", "bold": True}}, 100),
    (HELLO | {"bizOpaque": "x"}, 100),
    (HELLO | {"biz_opaque_callback_data": "x" * 513}, 100),
    (HELLO | {"context": {}}, 131008),
    (media("image"), 100),
    (media("image", id="1", link=URL), 100),
    (media("image", id="1"), 131009),
    (media("image", link="ftp://x.example"), 131009),
    (media("image", link=URL, caption="x" * 1025), 100),
    (media("image", link=URL, filename="x"), 100),
    (media("audio", link=URL, caption="x"), 100),
    (template("nadie"), 132001),
    (template(code="en_US"), 132001),
    (template(), 132000),
    (template(components={}), 132012),
    (template(components=[1]), 132012),
    (template(components=[{"type": "feet"}]), 132012),
    (template(components=[{"type": "body"}]), 132012),
    (template(components=[{"type": "body", "parameters": [TEXT]}]), 132000),
    (template(components=[{"type": "body", "parameters": [TEXT] * 3}]), 132000),
    (template(components=[{"type": "body", "parameters": [TEXT, {"type": "text"}]}]), 131008),
    (template(components=[{"type": "body", "parameters": [TEXT, {"type": "date"}]}]), 132012),
    (
        template(components=[{"type": "body", "parameters": [TEXT, TEXT | {"text": "a\nb"}]}]),
        132012,
    ),
    (template("aviso", components=[]), 132000),
    (template("aviso", components=[{"type": "header", "parameters": [TEXT, TEXT]}]), 132000),
    (template("pausado"), 132015),
    (template("prohibido"), 132016),
    (buttons(), 131009),
    (buttons(*[reply(str(one)) for one in range(4)]), 131009),
    (buttons(reply(), reply()), 131009),
    (buttons(reply("x" * 257)), 100),
    (buttons(reply(title="x" * 21)), 100),
    (buttons(reply(title="")), 131008),
    (buttons({"type": "link"}), 131009),
    (buttons(reply(), type="list"), 131009),
    (buttons(reply(), body={"text": "x" * 1025}), 100),
    (buttons(reply(), header={"type": "text", "text": "x" * 61}), 100),
    (buttons(reply(), header={"type": "image"}), 131009),
    (buttons(reply(), footer={"text": "x" * 61}), 100),
    ({"messaging_product": "whatsapp", "status": "read"}, 100),
    ({"messaging_product": "whatsapp", "status": "typing", "message_id": "1"}, 100),
    ({"messaging_product": "whatsapp", "status": "read", "message_id": "1"}, 131009),
]


async def test_a_message_against_the_rules_is_refused(
    wa: WhatsApp, http: httpx.AsyncClient
) -> None:
    for body, code in WRONG:
        response = await post(wa, http, body)
        error = response.json()["error"]
        assert (error["code"], error["type"]) == (code, "OAuthException"), body
        assert response.status_code == (404 if code == 132001 else 400)
    assert wa.conversation.sent == {}
    assert {one.outcome for one in wa.ledger.entries} == {"refused"}


async def test_buttons_of_templates_are_checked(wa: WhatsApp, http: httpx.AsyncClient) -> None:
    wa.templates["f", "es_AR"] = ApprovedTemplate(name="f", buttons=("url",))

    def button(**more: Any) -> dict[str, Any]:
        return {"type": "button", "sub_type": "url", "index": "0", "parameters": [TEXT], **more}

    for wrong in (
        [],
        [button(index="1")],
        [button(index=0)],
        [button(sub_type="quick_reply")],
        [button(parameters=[])],
        [button(), button()],
    ):
        response = await post(wa, http, template("f", components=wrong))
        assert response.json()["error"]["code"] == 132000, wrong
    assert (await post(wa, http, template("f", components=[button()]))).status_code == 200


async def test_a_wrong_token_is_refused(wa: WhatsApp, http: httpx.AsyncClient) -> None:
    response = await post(wa, http, HELLO, token="other")
    assert (response.status_code, response.json()["error"]["code"]) == (401, 190)


async def test_another_number_is_not_there(wa: WhatsApp, http: httpx.AsyncClient) -> None:
    response = await post(wa, http, HELLO, number="999")
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["error_subcode"]) == (400, 100, 33)


@pytest.mark.parametrize(
    ("content", "kind"), [("{", "application/json"), ("{}", "text/plain"), ("", "application/json")]
)
async def test_what_is_not_json_is_refused(
    wa: WhatsApp, http: httpx.AsyncClient, content: str, kind: str
) -> None:
    headers = {"authorization": f"Bearer {wa.access_token}", "content-type": kind}
    url = f"{wa.url}/v23.0/{wa.phone_number_id}/messages"
    response = await http.post(url, content=content, headers=headers)
    assert response.json()["error"]["code"] == 100


async def test_an_upload_against_the_rules_is_refused(
    wa: WhatsApp, http: httpx.AsyncClient
) -> None:
    product = {"messaging_product": "whatsapp"}
    text = ("a.txt", b"x", "text/plain")
    for data, files, code in (
        ({}, {"file": text}, 100),
        (product, {"attachment": text}, 100),
        (product | {"file": "x"}, None, 100),
        (product | {"type": "image/png"}, {"file": text}, 100),
        (product, {"file": ("a.txt", b"", "text/plain")}, 131053),
        (product, {"file": ("a.webp", b"x" * (512 * 1024 + 1), "image/webp")}, 131053),
    ):
        response = await http.post(
            f"{wa.url}/v23.0/{wa.phone_number_id}/media",
            data=data,
            files=files,
            headers={"authorization": f"Bearer {wa.access_token}"},
        )
        assert response.json()["error"]["code"] == code
    assert wa.media.files == {}


async def test_a_receiver_is_challenged_first(wa: WhatsApp, inbox: Inbox) -> None:
    assert await wa.challenge(inbox.url, "our-own-word")
    assert not await wa.challenge(inbox.url, "another word")
    assert [one.outcome for one in wa.ledger.of("challenge")] == ["ok", "refused"]


async def test_what_customers_say_is_told(wa: WhatsApp, inbox: Inbox, client: Client) -> None:
    picture = wa.media.keep(b"jpeg", "image/jpeg")
    events = [
        wa.text(ANA, "¿Vienen hoy? 🚰", name="Ana María"),
        wa.voice(ANA, b"OggS"),
        wa.file(ANA, "image", picture, caption="la bomba"),
        wa.choice(ANA, "yes", "Sí", reply_to="wamid.0", at=1_794_000_000),
    ]
    assert (await wa.notify(inbox.url, *events)).status == 200
    (batch,) = inbox.taken
    text, voice, image, choice = batch.messages
    assert isinstance(text, TextMessage)
    assert (text.text, text.sender_name) == ("¿Vienen hoy? 🚰", "Ana María")
    assert isinstance(voice, MediaMessage)
    assert voice.kind == "voice"
    assert await client.download_media(await client.get_media(voice.media_id)) == b"OggS"
    assert isinstance(image, MediaMessage)
    assert (image.media_id, image.caption) == (picture.id, "la bomba")
    assert isinstance(choice, ReplyMessage)
    assert (choice.reply_id, choice.reply_to) == ("yes", "wamid.0")
    assert choice.at.timestamp() == 1_794_000_000
    assert (wa.ledger.of("notify", "ok")[0].subject.split(), batch.skipped) == (
        [one.id for one in events],
        0,
    )


async def test_a_message_is_delivered_on_demand(wa: WhatsApp, inbox: Inbox, client: Client) -> None:
    sent = await client.send(ANA, Text(body="hola"), callback_data="msg-1")
    await wa.deliver(sent.message_id, inbox.url)
    await wa.deliver(sent.message_id, inbox.url, ["read"])
    statuses = [one for batch in inbox.taken for one in batch.statuses]
    assert [one.status for one in statuses] == ["sent", "delivered", "read"]
    assert {(one.message_id, one.callback_data) for one in statuses} == {(sent.message_id, "msg-1")}


async def test_a_message_can_fail_later(wa: WhatsApp, inbox: Inbox, client: Client) -> None:
    sent = await client.send(ANA, Text(body="hola"))
    await wa.deliver(sent.message_id, inbox.url, error=131026)
    ((status,),) = [batch.statuses for batch in inbox.taken]
    assert (status.status, [one.code for one in status.errors]) == ("failed", [131026])


async def test_after_a_day_only_templates_arrive(
    wa: WhatsApp, inbox: Inbox, client: Client, clock: Clock
) -> None:
    wa.is_window_kept = True
    wa.text(ANA, "hola")
    clock.at += 24 * 3600 - 1
    for seconds in (0, 1):
        clock.at += seconds
        for message in (Text(body="x"), Template(name="aviso", header="x")):
            sent = await client.send(ANA, message)
            await wa.deliver(sent.message_id, inbox.url, ["sent"])
    found = [batch.statuses[0] for batch in inbox.taken]
    assert [one.status for one in found] == ["sent", "sent", "failed", "sent"]
    assert found[2].errors[0].kind == "outside_window"


@pytest.mark.parametrize("forgery", ["signature", "secret", "unsigned", "body"])
async def test_a_forged_webhook_is_refused(wa: WhatsApp, inbox: Inbox, forgery: Forgery) -> None:
    assert (await wa.notify(inbox.url, wa.text(ANA, "hola"), forgery=forgery)).status == 403
    assert inbox.taken == []
    (entry,) = wa.ledger.of("notify", "refused")
    assert entry.detail == {"status": 403, "forgery": forgery, "is_replay": False}


async def test_a_replay_is_the_same_again(wa: WhatsApp, inbox: Inbox) -> None:
    sent = await wa.notify(inbox.url, wa.text(ANA, "hola"))
    assert (await wa.replay(sent)).status == 200
    first, second = inbox.taken
    assert first == second
    assert [one.detail["is_replay"] for one in wa.ledger.of("notify")] == [False, True]


async def test_webhooks_go_to_this_machine_only(wa: WhatsApp) -> None:
    sent = Delivery(url="https://example.com/", headers={}, body=b"", ids=())
    with pytest.raises(ValueError, match="must be on loopback"):
        await wa.replay(sent)
    with pytest.raises(ValueError, match="must be on loopback"):
        await wa.challenge("https://example.com/", "x")


async def test_a_receiver_that_is_not_there_is_noted(wa: WhatsApp) -> None:
    event: Event = wa.text(ANA, "hola")
    assert (await wa.notify("http://127.0.0.1:1/wa", event)).status is None
    assert not await wa.challenge("http://127.0.0.1:1/wa", "x")
    assert len(wa.ledger.of("notify", "unanswered")) == 1


async def test_only_what_failed_has_an_error(wa: WhatsApp, client: Client) -> None:
    sent = await client.send(ANA, Text(body="hola"))
    for status, error in (("failed", None), ("sent", 131026)):
        with pytest.raises(ValueError, match="with failed"):
            wa.status(sent.message_id, status, error)
