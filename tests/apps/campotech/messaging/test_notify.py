"""Customers are told about visits once, by the best way there is, while the news are true."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from apps.campotech.messages.dispatched import RatingRequest
from apps.campotech.messaging.rating import THANKS
from apps.sandbox.fault import Fault

from apps.campotech.messages import JobNotification
from faena import Receipt
from tests.apps.campotech.business import Business
from tests.apps.campotech.messaging.office import Office

TOMORROW = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
LOGS = "SELECT channel, kind, status, recipient FROM campotech.notification_logs"
_numbers = itertools.count(1)


async def visit(office: Office, status: str = "scheduled", **given: Any) -> UUID:
    """A job of the customer's."""
    job = given.get("id", uuid4())
    await office.run(
        "INSERT INTO campotech.jobs (id, organization_id, customer_id, status, scheduled_date) "
        "VALUES (%s, %s, %s, %s, %s)",
        job,
        office.id,
        given.get("customer", office.business.customer),
        status,
        given.get("date", TOMORROW),
    )
    return job


def news(office: Office, job: UUID, kind: str = "scheduled", **given: Any) -> JobNotification:
    made: dict[str, Any] = {
        "org_id": office.id,
        "idempotency_key": f"notification-{next(_numbers):06}",
        "created_at": datetime.now(UTC),
        "job_id": job,
        "notification_type": kind,
        "customer_id": office.business.customer,
        "scheduled_time": TOMORROW,
    }
    return JobNotification(**{**made, **given})


async def notify(office: Office, message: JobNotification) -> str:
    task = office.system.notifying.notify
    receipt = await task.enqueue(message, tenant=str(message.org_id))
    await office.settle()
    return await receipt.handle.result(timeout="10s")


async def reachable_by(office: Office, **addresses: str | None) -> None:
    for name, value in addresses.items():
        query = f"UPDATE campotech.customers SET {name} = %s WHERE id = %s"
        await office.run(query, value, office.business.customer)


@pytest.mark.parametrize(
    ("kind", "status", "template", "parameters"),
    [
        ("scheduled", "scheduled", "job_scheduled", ["Ana Muñoz", "when"]),
        ("reminder_24h", "scheduled", "job_reminder", ["Ana Muñoz", "when"]),
        ("reminder_1h", "pending", "job_reminder", ["Ana Muñoz", "when"]),
        ("en_camino", "en_camino", "job_en_camino", ["technician"]),
        ("completed", "completed", "job_completed", ["Ana Muñoz"]),
        ("cancelled", "cancelled", "job_cancelled", ["Ana Muñoz"]),
    ],
)
async def test_each_kind_of_news_has_its_template(
    office: Office, kind: str, status: str, template: str, parameters: list[str]
) -> None:
    technician = await office.hire("technician")
    job = await visit(office, status)
    assert await notify(office, news(office, job, kind, technician_id=technician)) == "whatsapp"
    (sent,) = office.world.whatsapp.conversation.sent.values()
    assert sent.to == office.customer_digits
    body = sent.body["template"]
    said = [one["text"] for one in body["components"][0]["parameters"]]
    local = TOMORROW - timedelta(hours=3)
    facts = {"when": f"{local:%d/%m} a las {local:%H:%M}", "technician": "Eva"}
    assert (body["name"], said) == (template, [facts.get(one, one) for one in parameters])
    customer = str(office.business.customer)
    assert await office.rows(LOGS) == [("whatsapp", kind, "sent", customer)]


async def test_the_same_news_are_told_once(office: Office) -> None:
    message = news(office, await visit(office))
    assert await notify(office, message) == "whatsapp"
    later = message.model_copy(update={"created_at": datetime.now(UTC)})
    assert await notify(office, later) == "known"
    assert office.told() == ["job_scheduled"]
    assert len(await office.rows(LOGS)) == 1


async def test_a_job_that_is_delivered_again_tells_nobody_again(office: Office) -> None:
    message = news(office, await visit(office))
    await office.system.notifying.notify.enqueue(message, tenant=office.tenant, id="first")
    await office.settle()
    await office.system.notifying.notify.handle("first", tenant=office.tenant).rerun()
    (ran,) = await office.settle()
    assert (ran.ending, ran.result) == ("completed", "known")
    assert office.told() == ["job_scheduled"]


@pytest.mark.parametrize("line", ["the note", "the enqueue"])
async def test_a_process_that_dies_in_between_has_told_the_customer_once(
    office: Office, line: str
) -> None:
    message = news(office, await visit(office))
    await office.system.notifying.notify.enqueue(message, tenant=office.tenant, id="first")
    await office.settle()
    if line == "the note":  # nothing was enqueued
        office.world.whatsapp.conversation.sent.clear()
        await office.run("DELETE FROM campotech.whatsapp_messages")
    for job in await office.harness.jobs("whatsapp.outbound"):  # the broker has forgotten it
        await office.system.sender.send.handle(job.id, tenant=office.tenant).remove()
    await office.run("UPDATE campotech.notification_logs SET status = 'queued'")
    await office.system.notifying.notify.handle("first", tenant=office.tenant).rerun()
    ran, *_ = await office.settle()
    assert (ran.ending, ran.result) == ("completed", "whatsapp")
    assert office.told() == ["job_scheduled"]


async def test_a_customer_without_a_telephone_gets_a_mail(office: Office) -> None:
    await reachable_by(office, phone=None, email="ana@example.com")
    assert await notify(office, news(office, await visit(office))) == "email"
    (mail,) = office.world.mail.mailbox
    assert mail.recipients == ("ana@example.com",)
    assert "agendó tu visita para el" in mail.message.get_content()
    customer = str(office.business.customer)
    assert await office.rows(LOGS) == [("email", "scheduled", "sent", customer)]


async def test_a_customer_whom_whatsapp_cannot_reach_gets_an_sms(office: Office) -> None:
    await reachable_by(office, phone="+59899123456")
    assert await notify(office, news(office, await visit(office))) == "sms"
    (text,) = office.texted()
    assert text.startswith("Hola Ana Muñoz, Plomería")
    customer = str(office.business.customer)
    assert await office.rows(LOGS) == [("sms", "scheduled", "sent", customer)]


async def test_an_organisation_without_whatsapp_sends_mail_or_an_sms(office: Office) -> None:
    await office.run("UPDATE campotech.organizations SET phone_number_id = NULL")
    assert await notify(office, news(office, await visit(office))) == "sms"
    await reachable_by(office, email="ana@example.com")
    assert await notify(office, news(office, await visit(office))) == "email"
    assert (len(office.texted()), len(office.mailed())) == (1, 1)


async def test_a_customer_without_any_address_is_not_told(office: Office) -> None:
    await reachable_by(office, phone=None)
    assert await notify(office, news(office, await visit(office))) == "unreachable"
    assert await office.rows(LOGS) == []


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("scheduled", "cancelled"),
        ("reminder_24h", "cancelled"),
        ("reminder_1h", "completed"),
        ("reminder_1h", "en_camino"),
        ("en_camino", "completed"),
        ("completed", "in_progress"),
        ("cancelled", "scheduled"),
    ],
)
async def test_news_that_are_not_true_any_more_are_dropped(
    office: Office, kind: str, status: str
) -> None:
    job = await visit(office, status)
    assert await notify(office, news(office, job, kind)) == "outdated"
    assert office.told() == []
    assert await office.rows(LOGS) == []


@pytest.mark.parametrize("kind", ["scheduled", "reminder_24h", "reminder_1h"])
async def test_a_visit_that_was_moved_has_other_news(office: Office, kind: str) -> None:
    job = await visit(office, date=TOMORROW + timedelta(hours=2))
    assert await notify(office, news(office, job, kind)) == "outdated"


async def test_names_with_line_breaks_do_not_break_a_template(office: Office) -> None:
    await office.run("UPDATE campotech.customers SET name = %s", " Ana\n\tMaría      Muñoz ")
    assert await notify(office, news(office, await visit(office))) == "whatsapp"
    (sent,) = office.world.whatsapp.conversation.sent.values()
    (name, _) = sent.body["template"]["components"][0]["parameters"]
    assert name["text"] == "Ana María Muñoz"


async def test_nobody_is_told_of_another_organisations_visit(
    office: Office, other: Business
) -> None:
    job = await visit(office)
    for wrong in (
        news(office, job, org_id=other.id, customer_id=other.customer),
        news(office, job, org_id=other.id),
        news(office, job, customer_id=other.customer),
        news(office, uuid4()),
    ):
        task = office.system.notifying.notify
        receipt = await task.enqueue(wrong, tenant=str(wrong.org_id))
        await office.settle()
        assert await receipt.handle.state() == "dead"
    assert office.told() == []
    assert await office.rows(LOGS) == []


async def test_a_technician_of_another_organisation_is_not_named(
    office: Office, other: Business
) -> None:
    spy = await office.hire("technician", organization=other.id)
    job = await visit(office, "en_camino")
    await notify(office, news(office, job, "en_camino", technician_id=spy))
    (sent,) = office.world.whatsapp.conversation.sent.values()
    (name,) = sent.body["template"]["components"][0]["parameters"]
    assert name["text"].startswith("Plomería")


async def test_an_sms_whose_answer_was_lost_is_sent_once(office: Office) -> None:
    await reachable_by(office, phone="+59899123456")
    office.world.twilio.faults.add(Fault(kind="lost", operation="send", times=1))
    await notify(office, news(office, await visit(office)))
    await office.settle(through="1m")
    assert len(office.texted()) == 1
    assert len(office.world.twilio.ledger.of("list", "ok")) == 1
    ((_, _, status, _),) = await office.rows(LOGS)
    assert status == "sent"


# -- ratings --------------------------------------------------------------------------------------


async def ask_rating(
    office: Office, job: UUID, *, organization: UUID | None = None, tenant: str | None = None
) -> Receipt[str]:
    asked = RatingRequest(organization_id=str(organization or office.id), job_id=str(job))
    task = office.system.notifying.ask_rating
    receipt = await task.enqueue(asked, tenant=tenant or asked.organization_id)
    await office.settle()
    return receipt


async def test_a_customer_is_asked_once_how_it_was(office: Office) -> None:
    job = await visit(office, "completed")
    first, second = await ask_rating(office, job), await ask_rating(office, job)
    assert await first.handle.result(timeout="10s") == "whatsapp"
    assert await second.handle.result(timeout="10s") == "known"
    assert office.told() == ["rating_request"]
    query = "SELECT job_id, stars FROM campotech.ratings WHERE organization_id = %s"
    assert await office.rows(query, office.id) == [(job, None)]


async def test_only_a_job_that_is_done_in_this_organisation_is_rated(
    office: Office, other: Business
) -> None:
    done, open_ = await visit(office, "completed"), await visit(office, "in_progress")
    for receipt in (
        await ask_rating(office, open_),
        await ask_rating(office, done, organization=other.id),
        await ask_rating(office, done, tenant=str(other.id)),
    ):
        assert await receipt.handle.state() == "dead"
    assert await office.rows("SELECT id FROM campotech.ratings") == []


STARS = "SELECT stars FROM campotech.ratings WHERE job_id = %s"


async def test_the_figure_that_a_customer_answers_rates_the_job(office: Office) -> None:
    job = await visit(office, "completed")
    await ask_rating(office, job)
    message = await office.receive(office.written(" 4 "))
    assert await office.rows(STARS, job) == [(4,)]
    assert await office.status_of(message) == "answered"
    await office.receive(office.written("5"))
    assert office.told() == ["rating_request", THANKS, "Entendido: 5"], "the first one counts"
    assert await office.rows(STARS, job) == [(4,)]


@pytest.mark.parametrize(
    ("said", "asked_at"),
    [("0", "now()"), ("6", "now()"), ("4 puntos", "now()"), ("4", "now() - interval '8 days'")],
)
async def test_what_is_no_answer_to_the_question_is_a_message(
    office: Office, said: str, asked_at: str
) -> None:
    job = await visit(office, "completed")
    await ask_rating(office, job)
    await office.run(f"UPDATE campotech.ratings SET asked_at = {asked_at}")
    await office.receive(office.written(said))
    assert office.told()[1:] == [f"Entendido: {said}"]
    assert await office.rows(STARS, job) == [(None,)]


async def test_the_customer_of_another_job_rates_nothing(office: Office) -> None:
    job = await visit(office, "completed")
    await ask_rating(office, job)
    await office.run("UPDATE campotech.jobs SET customer_id = %s", uuid4())
    await office.receive(office.written("4"))
    assert await office.rows(STARS, job) == [(None,)]
