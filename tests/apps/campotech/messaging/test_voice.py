"""A recording becomes a draft, once; what cannot be understood is heard by a person."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apps.sandbox.fault import Fault
from apps.sandbox.openai import spoken

from apps.campotech.messages import VoiceExtraction
from tests.apps.campotech.business import Business
from tests.apps.campotech.messaging.office import Office
from tests.apps.campotech.messaging.test_respond import spent

WORDS = "Hola, soy Ana Muñoz, necesito arreglar la caldera. Vivo en Corrientes 1234, es urgente."
DRAFTS = """
    SELECT customer_id, status, description, address FROM campotech.jobs
    WHERE organization_id = %s
"""
MEDIA = "GET /{id}"


async def drafts(office: Office) -> list[tuple[Any, ...]]:
    return await office.rows(DRAFTS, office.id)


async def test_a_recording_becomes_a_draft(office: Office) -> None:
    message = await office.receive(office.spoken(spoken(WORDS)))
    (draft,) = await drafts(office)
    customer, status, description, address = draft
    assert (customer, status) == (office.business.customer, "draft")
    assert description == "URGENTE: arreglar la caldera"
    assert address == "Corrientes 1234"
    query = "SELECT message_id, text FROM campotech.transcripts"
    assert await office.rows(query) == [(message, WORDS)]
    assert await office.status_of(message) == "answered"
    assert await office.needs_person() == [False]


async def test_a_recording_that_comes_again_changes_nothing(office: Office) -> None:
    message = office.spoken(spoken(WORDS))
    await office.receive(message)
    again = message.model_copy(update={"idempotency_key": "another-delivery-of-it"})
    await office.system.inbound.receive(again)
    assert await office.settle() == []
    assert len(await drafts(office)) == 1
    assert len(office.world.openai.ledger.entries) == 2


async def test_a_flow_that_was_not_started_is_started_by_the_next_delivery(
    office: Office,
) -> None:
    message = office.spoken(spoken(WORDS))
    # As if the process had died between the transaction and the flow.
    async with office.system.pg.transaction() as connection:
        await office.system.inbound._store(connection, message)
    await office.receive(message)
    assert len(await drafts(office)) == 1


async def test_a_transcript_that_is_known_is_not_paid_again(office: Office) -> None:
    message = await office.receive(office.spoken(spoken(WORDS)))
    (job,) = [one for one in await office.harness.jobs() if one.task == "transcribe"]
    await office.system.voice.transcribe.handle(job.id, tenant=office.tenant).rerun()
    await office.settle()
    assert len(office.world.openai.ledger.of("transcribe")) == 1
    query = "SELECT message_id FROM campotech.transcripts"
    assert await office.rows(query) == [(message,)]


async def test_answers_that_are_lost_are_asked_for_again(office: Office) -> None:
    for operation in ("transcribe", "chat"):
        office.world.openai.faults.add(Fault(kind="lost", operation=operation, times=1))
    await office.receive_through(office.spoken(spoken(WORDS)))
    assert len(await drafts(office)) == 1
    assert len(office.world.openai.ledger.of("transcribe", "ok")) == 2


async def test_an_answer_that_fits_nothing_is_paid_and_asked_for_again(office: Office) -> None:
    def paid_for_words(first: int) -> int:
        chats = office.world.openai.ledger.of("chat", "ok")[first:]
        return sum(10 * one.detail["input"] + 30 * one.detail["output"] for one in chats)

    await office.receive_through(office.spoken(spoken(WORDS)))
    before = await spent(office)
    for_sound = before - paid_for_words(0)
    office.world.openai.faults.add(Fault(kind="wrong", operation="chat", times=1))
    await office.receive_through(office.spoken(spoken(WORDS)))
    assert len(office.world.openai.ledger.of("chat", "ok")) == 3
    assert await spent(office) - before == for_sound + paid_for_words(1)


async def test_a_file_that_cannot_be_had_at_first_is_no_fault_of_the_model(
    office: Office,
) -> None:
    office.world.whatsapp.faults.add(Fault(kind="status", operation=MEDIA, times=2))
    await office.receive_through(office.spoken(spoken(WORDS)), "10s")
    assert len(await drafts(office)) == 1
    view = await office.system.upstreams.openai.view()
    assert (view.calls, view.failed) == (2, 0)


async def test_a_file_that_is_gone_is_a_case_for_a_person(office: Office) -> None:
    message = office.spoken(spoken(WORDS))
    office.world.whatsapp.media.files.clear()
    await office.receive_through(message)
    await assert_a_person_hears_it(office)
    assert office.world.openai.ledger.entries == []


async def assert_a_person_hears_it(office: Office) -> None:
    assert await drafts(office) == []
    assert await office.needs_person() == [True]
    assert len(office.told()) == len(office.pushed()) == 1


async def test_a_person_hears_it_if_the_model_is_out(office: Office) -> None:
    await office.harness.open_breaker(office.system.upstreams.openai)
    await office.receive_through(office.spoken(spoken(WORDS)), "10s")
    await assert_a_person_hears_it(office)


async def test_a_person_hears_it_if_the_budget_is_used_up(office: Office) -> None:
    await office.harness.spend(office.system.upstreams.openai, "50 USD")
    await office.receive_through(office.spoken(spoken(WORDS)), "10s")
    await assert_a_person_hears_it(office)
    assert office.world.openai.ledger.entries == []


async def test_a_person_hears_what_is_silent_or_unclear(office: Office) -> None:
    for words in ("", "(inaudible) caldera"):
        await office.run("UPDATE campotech.conversations SET needs_person = false")
        await office.receive(office.spoken(spoken(words)))
        assert await office.needs_person() == [True]
    assert await drafts(office) == []
    assert office.world.openai.ledger.of("chat") == []


async def test_somebody_who_has_never_written_becomes_a_customer(office: Office) -> None:
    await office.receive(office.spoken(spoken(WORDS), sender_phone="5491166667777"))
    ((customer, *_),) = await drafts(office)
    query = "SELECT id, name, phone FROM campotech.customers WHERE phone = %s"
    found = await office.rows(query, "+5491166667777")
    assert found == [(customer, "Ana Muñoz", "+5491166667777")]
    query = "SELECT customer_id FROM campotech.conversations"
    assert await office.rows(query) == [(customer,)]


async def test_a_draft_that_is_made_again_is_the_same_one(office: Office) -> None:
    await office.receive(office.spoken(spoken(WORDS)))
    (job,) = [one for one in await office.harness.jobs() if one.task == "draft_job"]
    await office.run("DELETE FROM faena.effects")  # as if they had been kept too short
    await office.system.voice.draft_job.handle(job.id, tenant=office.tenant).rerun()
    (ran,) = await office.settle()
    assert (ran.task, ran.ending) == ("draft_job", "completed")
    assert len(await drafts(office)) == 1


async def test_nothing_of_another_organisation_is_drafted(office: Office, other: Business) -> None:
    message = await office.receive(office.spoken(spoken(WORDS)))
    stolen = extraction(office, message, WORDS).model_copy(update={"org_id": other.id})
    receipt = await office.system.voice.draft_job.enqueue(stolen, tenant=str(other.id))
    await office.settle()
    assert await receipt.handle.state() == "dead"
    assert await office.rows(DRAFTS, other.id) == []


def extraction(office: Office, message: UUID, words: str) -> VoiceExtraction:
    return VoiceExtraction(
        org_id=office.id,
        idempotency_key=f"voice-{message.hex}",
        created_at=office.written().created_at,
        transcript_id=message,
        transcription=words,
        confidence=0.9,
        message_id=message,
    )
