"""A message is sent once as far as WhatsApp can tell, for a customer of the organisation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from apps.sandbox.fault import Fault

from apps.campotech.messages import WhatsAppOutbound
from faena import Receipt
from tests.apps.campotech.business import Business
from tests.apps.campotech.messaging.office import SEND, Office

ROW = "SELECT status, wa_message_id FROM campotech.whatsapp_messages"


async def send(office: Office, **given: Any) -> Receipt[str]:
    made: dict[str, Any] = {
        "org_id": office.id,
        "idempotency_key": "message-of-a-test",
        "created_at": datetime.now(UTC),
        "message_type": "text",
        "recipient_phone": office.business.phone,
        "text": "Mañana a las diez",
    }
    return await office.system.sender.send.enqueue(
        WhatsAppOutbound(**{**made, **given}), tenant=office.tenant
    )


async def test_a_message_in_doubt_is_not_sent_again_once_a_status_names_it(
    office: Office,
) -> None:
    office.world.whatsapp.faults.add(Fault(kind="lost", operation=SEND, times=1))
    receipt = await send(office)
    await office.settle(through="25s")
    assert await office.rows(ROW) == [("unknown", None)]
    (name,) = office.world.whatsapp.conversation.sent
    await office.hear(office.world.whatsapp.status(name, "delivered"))
    await office.settle(through="5m")
    assert await receipt.handle.result(timeout="10s") == name
    assert office.told() == ["Mañana a las diez"]
    assert await office.rows(ROW) == [("delivered", name)]


async def test_a_message_in_doubt_that_nobody_has_heard_of_is_sent_again(office: Office) -> None:
    office.world.whatsapp.faults.add(Fault(kind="cut", operation=SEND, times=1))
    receipt = await send(office)
    await office.settle(through="5m")
    (name,) = office.world.whatsapp.conversation.sent
    assert await receipt.handle.result(timeout="10s") == name
    assert await office.rows(ROW) == [("sent", name)]


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_message_that_was_refused_for_now_waits_for_no_status(
    office: Office, status: int
) -> None:
    fault = Fault(kind="status", operation=SEND, status=status, seconds=1, times=1)
    office.world.whatsapp.faults.add(fault)
    await send(office)
    await office.settle()
    assert await office.rows(ROW) == [("unknown", None)]
    await office.settle(through="15s")
    assert office.told() == ["Mañana a las diez"]


CUT_OFF = "UPDATE campotech.whatsapp_messages SET status = 'sending', wa_message_id = NULL"
"""As a worker leaves it that is killed between WhatsApp's answer and its note."""


async def test_a_message_whose_worker_was_killed_waits_for_a_status(office: Office) -> None:
    receipt = await send(office)
    await office.settle()
    await office.run(CUT_OFF)
    await receipt.handle.rerun()
    await office.settle()
    assert await office.rows(ROW) == [("unknown", None)]
    (name,) = office.world.whatsapp.conversation.sent
    await office.hear(office.world.whatsapp.status(name, "delivered"))
    await office.settle(through="1m")
    assert office.told() == ["Mañana a las diez"]
    assert await office.rows(ROW) == [("delivered", name)]


async def test_a_message_whose_worker_was_killed_is_sent_if_no_status_comes(office: Office) -> None:
    receipt = await send(office)
    await office.settle()
    await office.run(CUT_OFF)
    await receipt.handle.rerun()
    await office.settle(through="25s")
    assert len(office.told()) == 1
    await office.settle(through="10s")
    assert len(office.told()) == 2
    ((status, _),) = await office.rows(ROW)
    assert status == "sent"


async def test_a_worker_that_is_killed_while_it_sends_again_makes_the_next_one_wait(
    office: Office,
) -> None:
    office.world.whatsapp.faults.add(Fault(kind="cut", operation=SEND, times=1))
    receipt = await send(office)
    await office.settle(through="1m")
    assert len(office.told()) == 1
    await office.run(CUT_OFF)
    await receipt.handle.rerun()
    await office.settle(through="25s")
    assert len(office.told()) == 1, "a status may tell that WhatsApp has it"


async def test_a_message_that_runs_again_is_sent_once(office: Office) -> None:
    receipt = await send(office)
    await office.settle()
    await receipt.handle.rerun()
    await office.settle()
    assert office.told() == ["Mañana a las diez"]


@pytest.mark.parametrize(
    ("path", "kind", "more"),
    [
        ("presupuesto.pdf", "document", {"filename": "presupuesto.pdf"}),
        ("fotos/antes.JPG", "image", {}),
        ("antes.png?size=1", "image", {}),
        ("visita.mp4", "video", {}),
        ("", "document", {}),
        (f"{'a' * 300}.pdf", "document", {"filename": f"{'a' * 96}.pdf"}),
    ],
)
async def test_a_file_is_shown_as_what_it_is(
    office: Office, path: str, kind: str, more: dict[str, str]
) -> None:
    link = f"https://files.campotech.example/{path}"
    file = {"message_type": "media", "media_url": link, "media_caption": "Mirá", "text": None}
    await send(office, **file)
    await office.settle()
    (sent,) = office.world.whatsapp.conversation.sent.values()
    assert sent.body["type"] == kind
    assert sent.body[kind] == {"link": link, "caption": "Mirá", **more}


async def test_a_message_of_the_day_before_yesterday_says_nothing_any_more(office: Office) -> None:
    receipt = await send(office, created_at=datetime.now(UTC) - timedelta(hours=25))
    await office.settle()
    assert (await receipt.handle.view()).state == "dead"
    assert office.told() == []


async def test_the_customer_of_a_conversation_is_one_of_the_organisation(
    office: Office, other: Business
) -> None:
    query = "SELECT customer_id FROM campotech.conversations WHERE phone = %s"
    whose: dict[UUID, UUID | None] = {
        other.customer: None,
        office.business.customer: office.business.customer,
        uuid4(): None,
    }
    for number, (customer, known) in enumerate(whose.items()):
        phone = f"+549115500000{number}"
        await send(office, customer_id=customer, recipient_phone=phone)
        await office.settle()
        assert await office.rows(query, phone) == [(known,)]
