"""What WhatsApp says of our messages is noted once, and never takes one back."""

from __future__ import annotations

import itertools

import pytest

from tests.apps.campotech.business import Business
from tests.apps.campotech.messaging.office import Office

OUTBOUND = "SELECT status, wa_message_id FROM campotech.whatsapp_messages WHERE direction = %s"


async def said(office: Office) -> str:
    """WhatsApp's id of a message of ours."""
    await office.receive(office.written())
    ((status, name),) = await office.rows(OUTBOUND, "outbound")
    assert status == "sent"
    return name


async def test_a_message_moves_forward_in_whatever_order_its_statuses_come(
    office: Office,
) -> None:
    name = await said(office)
    whatsapp = office.world.whatsapp
    for order in itertools.permutations(["sent", "delivered", "read"]):
        await office.run("UPDATE campotech.whatsapp_messages SET status = 'unknown'")
        for status in order:
            await office.hear(whatsapp.status(name, status))
        assert await office.rows(OUTBOUND, "outbound") == [("read", name)]


@pytest.mark.parametrize(
    ("before", "after"),
    [("sent", "failed"), ("unknown", "failed"), ("delivered", "delivered"), ("read", "read")],
)
async def test_a_message_that_has_arrived_has_not_failed(
    office: Office, before: str, after: str
) -> None:
    name = await said(office)
    await office.run("UPDATE campotech.whatsapp_messages SET status = %s", before)
    await office.hear(office.world.whatsapp.status(name, "failed", 131026))
    ((status, _), *_) = await office.rows(OUTBOUND, "outbound")
    assert status == after


async def test_a_second_telling_changes_nothing(office: Office) -> None:
    name = await said(office)
    event = office.world.whatsapp.status(name, "delivered")
    assert await office.hear(event) == [True]
    assert await office.hear(event) == [False]


async def test_a_recording_that_was_played_was_read(office: Office) -> None:
    name = await said(office)
    assert await office.hear(office.world.whatsapp.status(name, "played")) == [True]
    assert await office.rows(OUTBOUND, "outbound") == [("read", name)]


async def test_a_status_of_another_number_or_of_nothing_of_ours_is_passed_over(
    office: Office, other: Business
) -> None:
    name = await said(office)
    event = office.world.whatsapp.status(name, "delivered")
    query = "UPDATE campotech.organizations SET phone_number_id = %s WHERE id = %s"
    await office.run(query, "1", office.id)
    assert await office.hear(event) == [False]
    await office.run(query, office.world.whatsapp.phone_number_id, office.id)
    for odd in ("", "x", "x.y", f"{other.id}.1", f"{other.id}.{10**30}"):
        assert await office.hear(event, callback_data=odd) == [False]
    assert await office.rows(OUTBOUND, "outbound") == [("sent", name)]


async def test_a_status_that_nobody_knows_is_passed_over(office: Office) -> None:
    name = await said(office)
    event = office.world.whatsapp.status(name, "delivered")
    assert await office.hear(event, status="teleported") == [False]


async def test_messages_of_customers_have_no_such_statuses(office: Office) -> None:
    message = await office.receive(office.written())
    ((at,),) = await office.rows(
        "SELECT created_at FROM campotech.whatsapp_messages WHERE id = %s", message
    )
    name = next(iter(office.world.whatsapp.conversation.sent))
    event = office.world.whatsapp.status(name, "read")
    place = f"{message}.{int(at.timestamp() * 1e6)}"
    assert await office.hear(event, callback_data=place) == [False]
    assert await office.status_of(message) == "answered"
