"""The model answers each message once, within the budget; else a person is asked, once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from apps.campotech.messages.dispatched import WhatsAppRespond
from apps.campotech.messaging.escalation import HOLDING, take_care
from apps.providers.openai import Client
from apps.sandbox.fault import Fault

from faena import Receipt
from tests.apps.campotech.business import Business
from tests.apps.campotech.messaging.office import SEND, Office


async def ask(office: Office, message: UUID, **given: str) -> Receipt[str]:
    """Have a message answered that is stored."""
    query = "SELECT conversation_id FROM campotech.whatsapp_messages WHERE id = %s"
    ((conversation,),) = await office.rows(query, message)
    asked = {
        "organization_id": office.tenant,
        "conversation_id": str(conversation),
        "message_id": str(message),
        **given,
    }
    tenant = given.get("organization_id", office.tenant)
    return await office.system.answering.respond.enqueue(WhatsAppRespond(**asked), tenant=tenant)


async def spent(office: Office) -> int:
    """Millionths of a dollar that OpenAI has cost today."""
    (day, *_) = (await office.system.upstreams.openai.view()).budgets
    return day.spent.micro


async def assert_one_person_is_asked(office: Office) -> None:
    assert office.told() == [HOLDING]
    assert office.pushed() == ["WhatsApp necesita atención"]
    assert await office.needs_person() == [True]


async def test_a_call_costs_what_it_has_used(office: Office) -> None:
    await office.receive(office.written())
    (chat,) = office.world.openai.ledger.of("chat", "ok")
    assert chat.subject == "gpt-4-turbo"
    used = 10 * chat.detail["input"] + 30 * chat.detail["output"]
    assert await spent(office) == used


async def test_the_model_sees_what_was_said_before(office: Office) -> None:
    await office.receive(office.written("La caldera pierde agua"))
    (first,) = office.world.openai.ledger.of("chat", "ok")
    await office.receive(office.written("La caldera pierde agua"))
    second = office.world.openai.ledger.of("chat", "ok")[-1]
    turn, answer = 6 + 4, 9 + 4  # tokens of both earlier turns
    assert second.detail["input"] == first.detail["input"] + turn + answer


async def test_the_model_does_not_see_what_was_said_more_than_a_week_before(
    office: Office,
) -> None:
    eight_days = timedelta(days=8)
    await office.system.pg.ensure_partitions(at=datetime.now(UTC) - eight_days)
    await office.receive(office.written("La caldera pierde agua"))
    (first,) = office.world.openai.ledger.of("chat", "ok")
    await office.run(
        "UPDATE campotech.whatsapp_messages SET created_at = created_at - %s", eight_days
    )
    await office.receive(office.written("La caldera pierde agua"))
    second = office.world.openai.ledger.of("chat", "ok")[-1]
    assert second.detail["input"] == first.detail["input"]


async def test_a_message_that_is_answered_is_not_answered_again(office: Office) -> None:
    message = await office.receive(office.written())
    before = await spent(office)
    receipt = await ask(office, message)
    await office.settle()
    assert await receipt.handle.result(timeout="10s") == ""
    assert len(office.world.openai.ledger.of("chat")) == 1
    assert len(office.told()) == 1
    assert await spent(office) == before


async def test_an_answer_that_was_lost_is_asked_for_again_and_said_once(office: Office) -> None:
    office.world.openai.faults.add(Fault(kind="lost", operation="chat", times=1))
    await office.receive_through(office.written())
    assert len(office.world.openai.ledger.of("chat", "ok")) == 2
    assert office.told() == ["Entendido: ¿Atienden hoy?"]
    assert await office.needs_person() == [False]


async def test_a_model_that_fails_for_the_last_time_is_replaced_by_a_person(
    office: Office,
) -> None:
    office.world.openai.faults.add(Fault(kind="status", status=503, operation="chat"))
    message = await office.receive_through(office.written())
    assert len(office.world.openai.ledger.of("chat")) == 3
    assert await office.status_of(message) == "for_person"
    await assert_one_person_is_asked(office)


async def test_a_request_that_is_refused_for_good_goes_to_a_person_at_once(office: Office) -> None:
    office.world.openai.is_quota_used_up = True
    await office.receive(office.written())
    assert len(office.world.openai.ledger.of("chat")) == 1
    await assert_one_person_is_asked(office)


async def test_an_answer_that_is_blank_is_paid_and_not_said(office: Office) -> None:
    office.world.openai.say("hoy", "   ")
    await office.receive_through(office.written())
    chats = office.world.openai.ledger.of("chat", "ok")
    assert len(chats) == 3
    assert await spent(office) == sum(
        10 * one.detail["input"] + 30 * one.detail["output"] for one in chats
    )
    await assert_one_person_is_asked(office)


async def test_nobody_waits_for_a_model_that_is_out(office: Office) -> None:
    await office.harness.open_breaker(office.system.upstreams.openai)
    await office.receive(office.written())
    assert office.world.openai.ledger.entries == []
    await assert_one_person_is_asked(office)


async def test_nobody_waits_for_a_budget_that_is_used_up(office: Office) -> None:
    await office.harness.spend(office.system.upstreams.openai, "50 USD")
    await office.receive(office.written())
    assert office.world.openai.ledger.entries == []
    await assert_one_person_is_asked(office)


async def test_a_smaller_model_answers_when_little_is_left(office: Office) -> None:
    await office.harness.spend(office.system.upstreams.openai, "41 USD")
    await office.receive(office.written())
    (chat,) = office.world.openai.ledger.of("chat")
    assert chat.subject == "gpt-3.5-turbo"
    assert office.told() == ["Entendido: ¿Atienden hoy?"]


async def test_several_messages_without_a_model_are_one_case_for_a_person(office: Office) -> None:
    await office.harness.open_breaker(office.system.upstreams.openai)
    for text in ("Hola", "¿Están?", "¿Alguien?"):
        await office.take(office.written(text))
    await office.settle(at_once=3)
    await assert_one_person_is_asked(office)


async def test_a_person_who_has_answered_lets_the_model_answer_again(office: Office) -> None:
    await office.harness.open_breaker(office.system.upstreams.openai)
    await office.receive(office.written())
    ((conversation,),) = await office.rows("SELECT id FROM campotech.conversations")
    office.harness.clock.advance("5m")
    async with office.system.pg.transaction() as connection:
        assert not await take_care(connection, uuid4(), conversation)
        assert await take_care(connection, office.id, conversation)
        assert not await take_care(connection, office.id, conversation)
    await office.receive(office.written("¿Y mañana?"))
    assert office.told() == [HOLDING, "Entendido: ¿Y mañana?"]


async def test_the_model_is_silent_if_a_person_was_asked_while_it_thought(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = Client.chat

    async def chat_slowly(self: Client, *given: Any, **named: Any) -> Any:
        reply = await chat(self, *given, **named)
        await office.run("UPDATE campotech.conversations SET needs_person = true")
        return reply

    monkeypatch.setattr(Client, "chat", chat_slowly)
    message = await office.receive(office.written())
    assert len(office.world.openai.ledger.of("chat", "ok")) == 1
    assert office.told() == []
    assert await office.status_of(message) == "for_person"


async def test_a_person_is_asked_once_however_often_they_are_told(office: Office) -> None:
    await office.harness.open_breaker(office.system.upstreams.openai)
    message = await office.receive(office.written())
    await ask(office, message)
    await office.settle()
    await assert_one_person_is_asked(office)


async def test_nobody_is_asked_about_a_message_that_is_answered(office: Office) -> None:
    message = await office.receive(office.written())
    await office.harness.open_breaker(office.system.upstreams.openai)
    await ask(office, message)  # its worker had died before it could say that it was done
    await office.settle()
    assert office.told() == ["Entendido: ¿Atienden hoy?"]
    assert office.pushed() == []
    assert await office.needs_person() == [False]


async def test_two_answers_at_once_are_one(office: Office) -> None:
    async with office.system.pg.transaction() as connection:
        stored, _ = await office.system.inbound._store(connection, office.written())
    both = [await ask(office, stored.id) for _ in range(2)]
    office.world.openai.faults.add(Fault(kind="slow", seconds=0.3, operation="chat"))
    await office.settle(at_once=2)
    assert len(office.world.openai.ledger.of("chat")) == 2
    results = [await one.handle.result(timeout="10s") for one in both]
    assert sorted(results) == ["", "Entendido: ¿Atienden hoy?"]
    assert office.told() == ["Entendido: ¿Atienden hoy?"]


async def test_a_conversation_of_another_organisation_is_not_answered(
    office: Office, other: Business
) -> None:
    message = await office.receive(office.written("foto", message_type="image", media_id="1"))
    await office.run("UPDATE campotech.conversations SET needs_person = false")
    await office.run("UPDATE campotech.whatsapp_messages SET status = 'received'")
    before = office.told()
    for wrong in (
        await ask(office, message, organization_id=str(other.id)),
        await ask(office, message, conversation_id=str(uuid4())),
        await ask(office, message, message_id=str(uuid4())),
        await ask(office, message, message_id="no id"),
    ):
        await office.settle()
        assert await wrong.handle.state() == "dead"
    assert office.told() == before
    assert office.world.openai.ledger.entries == []


async def test_a_job_of_one_organisation_answers_for_no_other(
    office: Office, other: Business
) -> None:
    message = await office.receive(office.written())
    query = "SELECT conversation_id FROM campotech.whatsapp_messages WHERE id = %s"
    ((conversation,),) = await office.rows(query, message)
    await office.run("UPDATE campotech.whatsapp_messages SET status = 'received'")
    asked = WhatsAppRespond(
        organization_id=office.tenant, conversation_id=str(conversation), message_id=str(message)
    )
    receipt = await office.system.answering.respond.enqueue(asked, tenant=str(other.id))
    await office.settle()
    assert await receipt.handle.state() == "dead"
    assert len(office.told()) == 1


async def test_an_answer_whose_acknowledgement_is_lost_is_not_said_again_once_a_status_has_come(
    office: Office,
) -> None:
    whatsapp = office.world.whatsapp
    whatsapp.faults.add(Fault(kind="lost", operation=SEND, times=1))
    await office.receive(office.written())
    (sent,) = whatsapp.conversation.sent.values()
    await office.hear(whatsapp.status(sent.id, "delivered"))
    await office.settle(through="1m")
    assert len(office.told()) == 1
    query = "SELECT status, wa_message_id FROM campotech.whatsapp_messages WHERE direction = %s"
    assert await office.rows(query, "outbound") == [("delivered", sent.id)]
