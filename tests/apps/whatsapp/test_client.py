"""The client sends every kind of message in a form that the service takes, and marks them read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from apps.providers.whatsapp import (
    Button,
    Buttons,
    Client,
    Invalid,
    Media,
    Message,
    Permanent,
    Sent,
    Template,
    TemplateButton,
    Text,
)
from apps.sandbox.whatsapp import WhatsApp

from tests.apps.whatsapp.conftest import ANA

LONG = "ñ"


def body_of(wa: WhatsApp, sent: Sent) -> Any:
    return wa.conversation.sent[sent.message_id].body


async def test_a_text_is_sent(client: Client, wa: WhatsApp) -> None:
    sent = await client.send(f"+{ANA}", Text(body="¡Hola! " + LONG * 4089), callback_data="msg-1")
    assert (sent.wa_id, sent.status) == (ANA, "accepted")
    assert body_of(wa, sent) == {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": ANA,
        "type": "text",
        "text": {"body": "¡Hola! " + LONG * 4089, "preview_url": False},
        "biz_opaque_callback_data": "msg-1",
    }
    (entry,) = wa.ledger.of("POST /{id}/messages", "ok")
    assert (entry.subject, entry.detail["id"]) == (ANA, sent.message_id)


async def test_a_reply_names_what_it_answers(client: Client, wa: WhatsApp) -> None:
    question = wa.text(ANA, "¿A qué hora vienen?")
    sent = await client.send(ANA, Text(body="A las 10."), reply_to=question.id)
    assert body_of(wa, sent)["context"] == {"message_id": question.id}


async def test_a_template_is_filled_in_from_a_list(client: Client, wa: WhatsApp) -> None:
    sent = await client.send(ANA, Template(name="turno_confirmado", parameters=["Ana", "10:00"]))
    assert body_of(wa, sent)["template"] == {
        "name": "turno_confirmado",
        "language": {"code": "es_AR", "policy": "deterministic"},
        "components": [
            {
                "type": "body",
                "parameters": [{"type": "text", "text": "Ana"}, {"type": "text", "text": "10:00"}],
            }
        ],
    }


async def test_a_template_has_headers_and_buttons(client: Client, wa: WhatsApp) -> None:
    invoice = Template(
        name="factura",
        parameters=["Ana"],
        header=Media(kind="document", link="https://campo.example/f.pdf", filename="factura.pdf"),
        buttons=[
            TemplateButton(index=0, kind="url", value="f-1"),
            TemplateButton(index=1, kind="quick_reply", value="paid:f-1"),
        ],
    )
    await client.send(ANA, invoice)
    await client.send(ANA, Template(name="aviso", header="Corte de luz"))
    assert len(wa.conversation.sent) == 2


@pytest.mark.parametrize("kind", ["image", "video", "audio", "document", "sticker"])
async def test_media_are_sent_by_link(client: Client, wa: WhatsApp, kind: Any) -> None:
    sent = await client.send(ANA, Media(kind=kind, link="https://campo.example/f"))
    assert body_of(wa, sent)[kind] == {"link": "https://campo.example/f"}


async def test_media_are_sent_by_id(client: Client, wa: WhatsApp) -> None:
    media_id = await client.upload_media(b"%PDF-1.7", "application/pdf", filename="factura.pdf")
    document = Media(kind="document", id=media_id, caption="x" * 1024, filename="factura.pdf")
    sent = await client.send(ANA, document)
    assert body_of(wa, sent)["document"]["id"] == media_id
    assert wa.media.files[media_id].data == b"%PDF-1.7"


async def test_buttons_are_sent(client: Client, wa: WhatsApp) -> None:
    question = Buttons(
        body="¿Confirma el turno?",
        header="Turno",
        footer="CampoTech",
        buttons=[Button(id=f"answer-{one}", title=one) for one in ("Sí", "No", "Otro día")],
    )
    sent = await client.send(ANA, question)
    assert [one["reply"] for one in body_of(wa, sent)["interactive"]["action"]["buttons"]] == [
        {"id": "answer-Sí", "title": "Sí"},
        {"id": "answer-No", "title": "No"},
        {"id": "answer-Otro día", "title": "Otro día"},
    ]


async def test_a_message_is_marked_read(client: Client, wa: WhatsApp) -> None:
    event = wa.text(ANA, "hola")
    await client.mark_read(event.id)
    await client.mark_read(event.id)
    assert wa.conversation.read == {event.id}
    with pytest.raises(Permanent):
        await client.mark_read("wamid.unknown")


REFUSED: list[Callable[[], Message]] = [
    lambda: Text(body=""),
    lambda: Text(body="x" * 4097),
    lambda: Media(kind="image"),
    lambda: Media(kind="image", id="1", link="https://x.example"),
    lambda: Media(kind="image", link="file:///etc/passwd"),
    lambda: Media(kind="image", link="https://x.example", caption="x" * 1025),
    lambda: Media(kind="audio", link="https://x.example", caption="x"),
    lambda: Media(kind="image", link="https://x.example", filename="x"),
    lambda: Template(name="Turno Confirmado"),
    lambda: Template(name="x", language="español"),
    lambda: Template(name="x", parameters=[""]),
    lambda: Template(name="x", parameters="Ana"),
    lambda: Template(name="x", parameters=["dos\nlíneas"]),
    lambda: Template(name="x", parameters=["a     b"]),
    lambda: Template(name="x", header="x" * 61),
    lambda: Buttons(body="x", buttons=[]),
    lambda: Buttons(body="x", buttons=[Button(id=str(i), title="x") for i in range(4)]),
    lambda: Buttons(body="x", buttons=[Button(id="1", title="x"), Button(id="1", title="y")]),
    lambda: Buttons(body="x" * 1025, buttons=[Button(id="1", title="x")]),
    lambda: Buttons(body="x", buttons=[Button(id="1", title="x" * 21)]),
    lambda: Buttons(body="x", buttons=[Button(id="", title="x")]),
    lambda: Buttons(body="x", footer="x" * 61, buttons=[Button(id="1", title="x")]),
]


@pytest.mark.parametrize("message", REFUSED)
def test_a_message_against_the_rules_is_not_made(message: Callable[[], Message]) -> None:
    with pytest.raises(Invalid, match="must"):
        message()


@pytest.mark.parametrize(
    "to", ["", "+", "11 5555 1234", "54-911", "1234567", "1" * 16, "\u0665" * 10]
)
async def test_what_is_no_number_is_not_written_to(client: Client, wa: WhatsApp, to: str) -> None:
    with pytest.raises(Invalid, match="8 to 15 digits"):
        await client.send(to, Text(body="hola"))
    assert wa.ledger.entries == []


async def test_long_callback_data_are_refused(client: Client) -> None:
    with pytest.raises(Invalid, match="at most 512"):
        await client.send(ANA, Text(body="hola"), callback_data="x" * 513)


def test_words_of_customers_do_not_show() -> None:
    for one in (
        Text(body="secreto"),
        Media(kind="image", link="https://x.example/secreto", caption="secreto"),
        Template(name="x", parameters=["secreto"], header="secreto"),
        Buttons(body="secreto", buttons=[Button(id="1", title="x")], header="secreto"),
    ):
        assert "secreto" not in repr(one)
