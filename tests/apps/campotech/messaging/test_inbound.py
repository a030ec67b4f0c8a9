"""What customers write is stored once, and goes to the model or to a person."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apps.campotech.business import Business
from tests.apps.campotech.messaging.office import Office

HOLDING = "Gracias por tu mensaje. Un representante te responderá en breve."
MESSAGES = """
    SELECT direction, kind, content, status FROM campotech.whatsapp_messages
    WHERE organization_id = %s ORDER BY created_at
"""


async def test_a_text_is_stored_and_answered(office: Office) -> None:
    await office.receive(office.written("¿Atienden hoy?"))
    assert office.told() == ["Entendido: ¿Atienden hoy?"]
    assert await office.rows(MESSAGES, office.id) == [
        ("inbound", "text", "¿Atienden hoy?", "answered"),
        ("outbound", "text", "Entendido: ¿Atienden hoy?", "sent"),
    ]
    assert await office.needs_person() == [False]


async def test_a_known_customer_is_found_by_the_number(office: Office) -> None:
    await office.receive(office.written())
    query = "SELECT phone, customer_id FROM campotech.conversations"
    assert await office.rows(query) == [(office.business.phone, office.business.customer)]


async def test_a_message_that_comes_again_changes_nothing(office: Office) -> None:
    message = office.written()
    first = await office.receive(message)
    again = message.model_copy(update={"idempotency_key": "another-delivery-of-it"})
    assert (await office.take(again)).status == "duplicate"
    # The broker has forgotten the job, or its worker died before it could say that it is done.
    assert await office.system.inbound.receive(again) == str(first)
    assert await office.settle() == []
    assert len(await office.rows(MESSAGES, office.id)) == 2
    assert len(office.told()) == 1
    assert (await office.system.pg.outbox.view()).refused == 0


async def test_a_choice_is_answered_like_a_text(office: Office) -> None:
    await office.receive(office.written("Mañana", message_type="interactive"))
    assert office.told() == ["Entendido: Mañana"]


@pytest.mark.parametrize("kind", ["image", "document"])
async def test_a_file_waits_for_a_person(office: Office, kind: str) -> None:
    sent = office.written("la caldera", message_type=kind, media_id="4490709327384033")
    await office.receive(sent)
    query = "SELECT kind, media_id, status FROM campotech.whatsapp_messages WHERE direction = %s"
    assert await office.rows(query, "inbound") == [(kind, "4490709327384033", "for_person")]
    assert await office.needs_person() == [True]
    assert office.told() == [HOLDING]
    assert office.pushed() == ["WhatsApp necesita atención"]


@pytest.mark.parametrize(
    "odd",
    [
        {"content": ""},
        {"content": None},
        {"message_type": "voice", "content": None, "media_id": None},
    ],
)
async def test_what_says_nothing_goes_to_a_person(office: Office, odd: dict[str, Any]) -> None:
    await office.receive(office.written(**odd))
    assert await office.needs_person() == [True]
    assert office.world.openai.ledger.entries == []


async def test_a_number_of_another_country_goes_to_a_person_and_is_not_written_to(
    office: Office,
) -> None:
    await office.receive(office.written(sender_phone="59899123456"))
    assert await office.needs_person() == [True]
    assert office.told() == []
    assert office.pushed() == ["WhatsApp necesita atención"]


async def test_text_that_a_database_cannot_keep_is_kept_without_it(office: Office) -> None:
    await office.receive(office.written("ho\0la"))
    assert office.told() == ["Entendido: hola"]


async def test_the_model_is_silent_while_a_person_is_asked_for(office: Office) -> None:
    await office.receive(office.written("foto", message_type="image", media_id="1"))
    later = await office.receive(office.written("¿Hola?"))
    assert await office.status_of(later) == "for_person"
    assert office.told() == [HOLDING]
    assert len(office.pushed()) == 1
    assert office.world.openai.ledger.entries == []


async def test_a_message_of_one_organisation_is_not_anothers(
    office: Office, other: Business
) -> None:
    message = office.written("mío")
    await office.receive(message)
    theirs = message.model_copy(update={"org_id": other.id})
    receipt = await office.system.inbound.receive.enqueue(theirs, tenant=str(other.id))
    await office.settle()
    assert await receipt.handle.state() == "dead"
    assert await office.rows(MESSAGES, other.id) == []
    query = "SELECT count(*) FROM campotech.conversations WHERE organization_id = %s"
    assert await office.rows(query, other.id) == [(0,)]
