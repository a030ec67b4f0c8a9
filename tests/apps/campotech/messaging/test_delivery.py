"""Users are told by push, mail and SMS, each once; what cannot be pushed is mailed."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from apps.campotech.messages.dispatched import UserNotification
from apps.campotech.messaging.notification_log import Note
from apps.sandbox.fault import Fault

from apps.campotech.messaging import notification_log
from faena import Receipt
from tests.apps.campotech.business import Business
from tests.apps.campotech.messaging.office import Office

LOGS = "SELECT channel, status FROM campotech.notification_logs ORDER BY created_at"


async def tell(office: Office, channel: str, user: UUID | str, **given: Any) -> Receipt[str]:
    told = UserNotification(
        user_id=str(user),
        title="Trabajo nuevo",
        body="Corrientes 1234",
        data=given.get("data", {}),
        organization_id=given.get("organization"),
    )
    task = getattr(office.system.delivery, channel)
    tenant = given.get("tenant", office.tenant)
    receipt = await task.enqueue(told, **({"tenant": tenant} if tenant else {}))
    await office.settle()
    return receipt


@pytest.mark.parametrize("channel", ["push", "email", "sms"])
async def test_a_user_is_told_once(office: Office, channel: str) -> None:
    receipt = await tell(office, channel, office.owner)
    assert await receipt.handle.result(timeout="10s") == "sent"
    await receipt.handle.rerun()
    (ran,) = await office.settle()
    assert (ran.ending, ran.result) == ("completed", "sent")
    got = {"push": office.pushed(), "email": office.mailed(), "sms": office.texted()}
    assert {name: len(one) for name, one in got.items() if one} == {channel: 1}
    assert await office.rows(LOGS) == [(channel, "sent")]


async def test_data_of_any_type_reach_the_device_as_texts(office: Office) -> None:
    await tell(office, "push", office.owner, data={"jobId": "7", "count": 3})
    (sent,) = office.world.push.messages
    assert sent["data"] == {"jobId": "7", "count": "3"}


async def test_a_push_that_is_sent_again_replaces_the_first(office: Office) -> None:
    office.world.push.faults.add(Fault(kind="lost", operation="send", times=1))
    await tell(office, "push", office.owner)
    await office.settle(through="1m")
    keys = [one["android"]["collapse_key"] for one in office.world.push.messages]
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert await office.rows(LOGS) == [("push", "sent")]
    assert office.mailed() == []


async def assert_mailed_instead(office: Office) -> None:
    assert office.mailed() == ["Trabajo nuevo"]
    assert office.pushed() == []


async def test_a_user_without_a_device_gets_a_mail(office: Office) -> None:
    user = await office.hire("dispatcher")
    receipt = await tell(office, "push", user)
    assert await receipt.handle.result(timeout="10s") == "by email"
    await receipt.handle.rerun()
    await office.settle()
    await assert_mailed_instead(office)
    assert await office.rows(LOGS) == [("push", "by email"), ("email", "sent")]


async def test_a_device_that_has_lost_the_app_is_forgotten(office: Office) -> None:
    office.world.push.unregister(office.device)
    await tell(office, "push", office.owner)
    await assert_mailed_instead(office)
    query = "SELECT push_token FROM campotech.users WHERE id = %s"
    assert await office.rows(query, office.owner) == [(None,)]


async def test_what_cannot_be_pushed_now_is_mailed_now(office: Office) -> None:
    await office.harness.open_breaker(office.system.delivery.channels.push_upstream)
    await tell(office, "push", office.owner)
    await assert_mailed_instead(office)


async def test_what_could_not_be_pushed_for_the_last_time_is_mailed(office: Office) -> None:
    office.world.push.faults.add(Fault(kind="status", status=503, operation="send"))
    await tell(office, "push", office.owner)
    await office.settle(through="1m")
    await assert_mailed_instead(office)


async def test_a_feature_that_is_off_is_not_used(office: Office) -> None:
    await office.system.features.push.set("offline", by="ana")
    await office.system.app.features.follow()
    await tell(office, "push", office.owner)
    await assert_mailed_instead(office)


async def test_an_sms_whose_answer_was_lost_is_found_and_not_sent_again(office: Office) -> None:
    office.world.twilio.faults.add(Fault(kind="lost", operation="send", times=1))
    await tell(office, "sms", office.owner)
    await office.settle(through="1m")
    assert office.texted() == ["Trabajo nuevo: Corrientes 1234"]
    assert await office.rows(LOGS) == [("sms", "sent")]


async def test_an_sms_that_never_arrived_at_twilio_is_sent_again(office: Office) -> None:
    office.world.twilio.faults.add(Fault(kind="cut", operation="send", times=1))
    await tell(office, "sms", office.owner)
    await office.settle(through="1m")
    assert office.texted() == ["Trabajo nuevo: Corrientes 1234"]


async def test_a_mail_that_is_sent_again_has_the_same_id(office: Office) -> None:
    office.world.mail.faults.add(Fault(kind="lost", operation="DATA", times=1))
    await tell(office, "email", office.owner)
    await office.settle(through="1m")
    ids = [one.message["Message-ID"] for one in office.world.mail.mailbox]
    assert len(ids) == 2
    assert len(set(ids)) == 1


async def test_a_number_that_refuses_is_noted_and_not_tried_again(office: Office) -> None:
    office.world.twilio.opted_out.add("+5491144440000")
    receipt = await tell(office, "sms", office.owner)
    assert await receipt.handle.state() == "dead"
    assert await office.rows(LOGS) == [("sms", "failed")]


async def test_a_user_without_an_address_is_noted(office: Office) -> None:
    user = await office.hire("technician", email=None, phone=None)
    for channel in ("email", "sms"):
        receipt = await tell(office, channel, user)
        assert await receipt.handle.result(timeout="10s") == "unreachable"
    assert await office.rows(LOGS) == [("email", "unreachable"), ("sms", "unreachable")]


async def test_an_address_that_is_none_is_given_up(office: Office) -> None:
    user = await office.hire("technician", email="ana@example.com\r\nBcc: x@example.com")
    receipt = await tell(office, "email", user)
    assert await receipt.handle.state() == "dead"
    assert office.world.mail.mailbox == []
    assert await office.rows(LOGS) == [("email", "failed")]


@pytest.mark.parametrize("channel", ["push", "email", "sms"])
async def test_nobody_of_another_organisation_is_told(
    office: Office, other: Business, channel: str
) -> None:
    for wrong in (
        await tell(office, channel, office.owner, tenant=str(other.id)),
        await tell(office, channel, office.owner, organization=str(other.id)),
        await tell(office, channel, uuid4()),
        await tell(office, channel, "nobody"),
    ):
        assert await wrong.handle.state() == "dead"
    assert [*office.pushed(), *office.mailed(), *office.texted()] == []


async def test_what_has_become_of_a_notification_stays_so(office: Office) -> None:
    one = Note(id=uuid4(), organization=office.id, recipient="x", channel="push", kind="user")
    async with office.system.pg.transaction() as connection:
        begun = await notification_log.note(connection, one)
        changed = [
            await notification_log.change(connection, begun, status)
            for status in ("sending", "unknown", "sent", "failed", "sent")
        ]
        known = await notification_log.note(connection, one)
    assert changed == [True, True, True, False, False]
    assert (known.status, known.is_over) == ("sent", True)
