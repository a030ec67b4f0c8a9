"""Each name that the web application uses ends in its work, once for each key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID, uuid4

import pytest
from apps.campotech.keys import key_of
from apps.campotech.tiers import DISPATCH
from apps.sandbox.fault import Fault
from apps.sandbox.openai import spoken
from apps.sandbox.stand_in import serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from apps.campotech.dispatch import Handed, Undispatchable
from tests.apps.campotech.business import Business
from tests.apps.campotech.messaging.office import Office
from tests.apps.campotech.messaging.test_notify import visit

REQUEST = "FECAESolicitar"


class Undo(Exception):
    """Rolls a transaction back."""


NEWS = {"title": "AFIP", "body": "La factura 9 no pudo procesarse"}


async def result_of(office: Office, handed: Handed) -> Any:
    await office.settle(through="1m")
    await office.settle()
    queue = office.system.queues[handed.queue]
    return await queue.handle(handed.id, tenant=office.tenant).result(timeout="10s")


async def dispatched(office: Office, name: str, **data: Any) -> Any:
    """Hand it over and have it done; what came of it."""
    handed = await office.system.dispatch(name, data)
    assert (handed.queue, handed.task) == DISPATCH[name][:2]
    return await result_of(office, handed)


async def completed(office: Office, **given: Any) -> UUID:
    job = await visit(office, "completed", **given)
    await office.run("UPDATE campotech.jobs SET total_cents = 121000 WHERE id = %s", job)
    return job


# -- the eleven -----------------------------------------------------------------------------------


async def test_whatsapp_respond_answers_the_message(office: Office) -> None:
    receipt = await office.take(office.written())
    await office.harness.drain("whatsapp.inbound", schedules=False)
    await office.run("DELETE FROM faena.outbox")
    message = await receipt.handle.result(timeout="10s")
    ((talk,),) = await office.rows("SELECT id FROM campotech.conversations")
    said = await dispatched(
        office,
        "whatsapp:respond",
        organizationId=office.tenant,
        conversationId=str(talk),
        messageId=message,
    )
    assert office.told() == [said]
    assert await office.status_of(UUID(message)) == "answered"


async def test_notification_push_sms_and_email_reach_the_user(office: Office) -> None:
    for channel in ("push", "sms", "email"):
        data = {"userId": str(office.owner), **NEWS}
        assert await dispatched(office, f"notification:{channel}", **data) == "sent"
    assert (office.pushed(), office.mailed()) == (["AFIP"], ["AFIP"])
    assert office.texted() == ["AFIP: La factura 9 no pudo procesarse"]
    jobs = await office.harness.jobs("job.notification")
    assert {one.tenant for one in jobs} == {office.tenant}, "at the organisation's own rate"


async def test_rating_request_asks_the_customer(office: Office) -> None:
    job = await completed(office)
    data = {"organizationId": office.tenant, "jobId": str(job)}
    assert await dispatched(office, "rating:request", **data) == "whatsapp"
    assert office.told() == ["rating_request"]


async def test_invoice_generate_bills_the_job_and_has_it_issued(office: Office) -> None:
    job = await completed(office)
    data = {"organizationId": office.tenant, "jobId": str(job)}
    invoice = await dispatched(office, "invoice:generate", **data)
    assert await dispatched(office, "invoice:generate", **data) == invoice
    query = "SELECT id, job_id, status, total_cents FROM campotech.invoices"
    assert await office.rows(query) == [(UUID(invoice), job, "issued", 121_000)]
    assert len(office.world.afip.ledger.of(REQUEST, "ok")) == 1


async def test_a_job_that_cannot_be_billed_dies_with_the_reason(office: Office) -> None:
    job = await visit(office, "scheduled")
    data = {"organizationId": office.tenant, "jobId": str(job)}
    handed = await office.system.dispatch("invoice:generate", data)
    await office.settle()
    view = await office.system.queues[handed.queue].handle(handed.id).view()
    assert view is not None
    assert (view.state, view.attempts_made) == ("dead", 1)
    assert "must be completed" in view.errors[-1].message


async def test_invoice_afip_submit_is_the_job_that_the_api_makes(office: Office) -> None:
    invoice = await office.business.invoice()
    data = {"organizationId": office.tenant, "invoiceId": str(invoice)}
    first = await office.system.dispatch("invoice:afip-submit", data, idempotency_key="a")
    again = await office.system.dispatch("invoice:afip-submit", data, idempotency_key="b")
    assert first.id == again.id == str(key_of(office.business.message(invoice)))
    assert (first.is_new, again.is_new) == (True, False)
    await result_of(office, first)
    await office.system.dispatch("invoice:afip-submit", data)
    await office.settle()
    assert len(office.world.afip.ledger.of(REQUEST)) == 1
    assert office.told() == ["invoice_ready"]


async def test_report_generate_stores_and_mails_the_report(office: Office) -> None:
    figures = await dispatched(office, "report:generate", organizationId=office.tenant)
    assert figures["invoices"] == 0
    await dispatched(office, "report:generate", organizationId=office.tenant)
    assert await office.rows("SELECT figures FROM campotech.reports") == [(figures,)]
    assert len(office.mailed()) == 1


async def test_analytics_calculate_stores_the_figures_of_the_day(office: Office) -> None:
    await completed(office)
    await visit(office, "pending")
    await office.receive(office.written())
    await office.run(
        "INSERT INTO campotech.ratings (id, organization_id, job_id, stars) VALUES (%s, %s, %s, 4)",
        uuid4(),
        office.id,
        uuid4(),
    )
    office.harness.clock.advance("1m")
    figures = await dispatched(office, "analytics:calculate", organizationId=office.tenant)
    assert figures["jobs"] == {"completed": 1, "pending": 1}
    assert (figures["messagesReceived"], figures["stars"]) == (1, 4.0)
    assert 0 < figures["responseSeconds"] < 86_400
    again = await dispatched(office, "analytics:calculate", organizationId=office.tenant)
    assert again == figures
    query = "SELECT figures FROM campotech.organization_figures"
    assert await office.rows(query) == [(figures,)]


async def test_archive_process_moves_what_is_old_enough(office: Office) -> None:
    data = {"table": "notification_logs", "retentionDays": 180}
    handed = await office.system.dispatch("archive:process", data)
    await office.settle()
    queue = office.system.queues[handed.queue]
    assert await queue.handle(handed.id).result(timeout="10s") == ["notification_logs", 0, None]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"retentionDays": 179}, "must be at least 180, got 179"),
        ({"archiveFormat": "parquet"}, "archiveFormat must be json"),
        ({"deleteAfterArchive": False}, "deleteAfterArchive must be true"),
    ],
)
async def test_an_archive_that_would_break_a_promise_is_refused(
    office: Office, changed: dict[str, Any], reason: str
) -> None:
    data = {"table": "notification_logs", "retentionDays": 180, **changed}
    handed = await office.system.dispatch("archive:process", data)
    await office.settle()
    view = await office.system.queues[handed.queue].handle(handed.id).view()
    assert view is not None
    assert view.state == "dead"
    assert reason in view.errors[-1].message


# -- recordings -----------------------------------------------------------------------------------


@asynccontextmanager
async def recordings(office: Office, sound: bytes) -> AsyncIterator[tuple[str, list[str]]]:
    """A place with recordings; its address, and what was asked for."""
    asked: list[str] = []

    async def give(request: Request) -> Response:
        asked.append(request.url.path)
        if request.path_params["name"] == "away":
            return RedirectResponse("http://127.0.0.1:1/secret")
        status = 404 if request.path_params["name"] == "gone" else 200
        return Response(sound, status, media_type="audio/wav")

    async with serving(Starlette(routes=[Route("/audio/{name}", give)])) as url:
        object.__setattr__(office.system.settings, "recordings_url", url)
        yield url, asked


def recording(office: Office, job: UUID, url: str) -> dict[str, Any]:
    return {"organizationId": office.tenant, "jobId": str(job), "audioUrl": url}


async def test_voice_transcribe_writes_down_a_recording_of_a_job_once(office: Office) -> None:
    job = await visit(office)
    async with recordings(office, spoken("La caldera pierde agua")) as (url, asked):
        data = recording(office, job, f"{url}/audio/1?signature=x")
        for _ in range(2):
            heard = await dispatched(office, "voice:transcribe", **data)
    assert heard["text"] == "La caldera pierde agua"
    query = "SELECT job_id, text FROM campotech.transcripts"
    assert await office.rows(query) == [(job, "La caldera pierde agua")]
    assert asked == ["/audio/1"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("{url}/audio/gone", "the recording is gone"),
        ("http://169.254.169.254/latest", "must be an address of CAMPOTECH_RECORDINGS_URL"),
        ("{user}/audio/1", "must be an address of CAMPOTECH_RECORDINGS_URL"),
        ("{url}/audio/away", "the recording did not come (status 307)"),
    ],
)
async def test_a_recording_comes_from_one_place_only(
    office: Office, path: str, reason: str
) -> None:
    job = await visit(office)
    async with recordings(office, b"") as (url, _):
        address = path.format(url=url, user=url.replace("//", "//who:what@"))
        data = recording(office, job, address)
        handed = await office.system.dispatch("voice:transcribe", data)
        await office.settle(through="5m")
    view = await office.system.queues[handed.queue].handle(handed.id).view()
    assert view is not None
    assert view.state == "dead"
    assert reason in view.errors[-1].message
    assert await office.rows("SELECT 1 FROM campotech.transcripts") == []


async def test_a_recording_of_another_organisations_job_is_not_heard(
    office: Office, other: Business
) -> None:
    job = await visit(office)
    async with recordings(office, spoken("hola")) as (url, asked):
        data = {**recording(office, job, f"{url}/audio/1"), "organizationId": str(other.id)}
        await office.system.dispatch("voice:transcribe", data)
        await office.settle()
    assert asked == []


# -- keys, tiers, transactions --------------------------------------------------------------------


async def test_the_same_key_is_the_same_job_of_its_organisation(
    office: Office, other: Business
) -> None:
    data = {"organizationId": office.tenant}
    dispatch = office.system.dispatch
    first = await dispatch("analytics:calculate", data, idempotency_key="k 1")
    again = await dispatch("analytics:calculate", data, idempotency_key="k 1")
    assert (again.id, again.is_new) == (first.id, False)
    theirs = await dispatch(
        "analytics:calculate", {"organizationId": str(other.id)}, idempotency_key="k 1"
    )
    unkeyed = await dispatch("analytics:calculate", data)
    assert len({first.id, theirs.id, unkeyed.id}) == 3


async def test_the_same_key_of_two_names_is_two_jobs(office: Office) -> None:
    data = {"userId": str(office.owner), **NEWS}
    for name in ("notification:push", "notification:sms"):
        assert (await office.system.dispatch(name, data, idempotency_key="k 1")).is_new


@pytest.mark.parametrize("name", DISPATCH)
async def test_a_job_is_as_urgent_as_its_tier(office: Office, name: str) -> None:
    invoice, job = await office.business.invoice(), await completed(office)
    ids = {"organizationId": office.tenant, "jobId": str(job), "invoiceId": str(invoice)}
    talk = {"conversationId": "c", "messageId": "m", "audioUrl": "https://a.example/1.ogg"}
    given = {**ids, **talk, "userId": str(office.owner), **NEWS, "table": "jobs"}
    fields = {
        "whatsapp:respond": ("organizationId", "conversationId", "messageId"),
        "voice:transcribe": ("organizationId", "jobId", "audioUrl"),
        "rating:request": ("organizationId", "jobId"),
        "invoice:generate": ("organizationId", "jobId"),
        "invoice:afip-submit": ("organizationId", "invoiceId"),
        "report:generate": ("organizationId",),
        "analytics:calculate": ("organizationId",),
        "archive:process": ("table",),
    }.get(name, ("userId", "title", "body"))
    data: dict[str, Any] = {one: given[one] for one in fields}
    if name == "archive:process":
        data["retentionDays"] = 730
    handed = await office.system.dispatch(name, data, delay="1h")
    tier = DISPATCH[name].tier
    (found,) = await office.harness.jobs(handed.queue)
    assert (found.state, found.priority) == ("delayed", tier.priority)


@pytest.mark.parametrize(
    ("name", "attempts"),
    [("notification:push", 3), ("notification:sms", 5), ("invoice:afip-submit", 10)],
)
async def test_a_job_is_tried_as_often_as_its_tier_says(
    office: Office, name: str, attempts: int
) -> None:
    for service in (office.world.push, office.world.twilio, office.world.afip):
        service.faults.add(Fault(kind="status", status=500))
    invoice = str(await office.business.invoice())
    submit = {"organizationId": office.tenant, "invoiceId": invoice}
    data = submit if "invoice" in name else {"userId": str(office.owner), **NEWS}
    handed = await office.system.dispatch(name, data)
    await office.harness.drain(handed.queue, schedules=False, through="24h")
    jobs = [one for one in await office.harness.jobs(handed.queue) if one.id == handed.id]
    assert [one.attempts_made for one in jobs] == [attempts]


async def test_what_a_caller_says_counts_more_than_the_tier(office: Office) -> None:
    data = {"organizationId": office.tenant}
    await office.system.dispatch("analytics:calculate", data, priority=1, delay="10m")
    (found,) = await office.harness.jobs("analytics")
    assert (found.priority, found.state) == (1, "delayed")


async def test_in_a_transaction_the_job_is_part_of_it(office: Office) -> None:
    dispatch, job = office.system.dispatch, await completed(office)
    data = {"organizationId": office.tenant, "jobId": str(job)}
    with suppress(Undo):
        async with office.system.pg.transaction() as connection:
            await dispatch("invoice:generate", data, connection=connection)
            raise Undo
    assert await office.rows("SELECT 1 FROM faena.outbox") == []
    async with office.system.pg.transaction() as connection:
        first, again = [
            await dispatch("invoice:generate", data, idempotency_key="k", connection=connection)
            for _ in range(2)
        ]
        other = {**data, "jobId": str(uuid4())}
        kept = await dispatch("invoice:generate", other, idempotency_key="k", connection=connection)
    assert first.id == again.id == kept.id
    assert kept.is_new is False
    await result_of(office, first)
    assert await office.rows("SELECT job_id, status FROM campotech.invoices") == [(job, "issued")]


async def test_an_invoice_can_be_stored_and_submitted_in_one_transaction(office: Office) -> None:
    invoice = await office.business.invoice()
    async with office.system.pg.transaction() as connection:
        data = {"organizationId": office.tenant, "invoiceId": str(invoice)}
        await office.system.dispatch("invoice:afip-submit", data, connection=connection)
    await office.settle()
    await office.system.dispatch("invoice:afip-submit", data)
    await office.settle()
    assert len(office.world.afip.ledger.of(REQUEST)) == 1


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("invoice:generated", {}, "got 'invoice:generated': 'invoice:generate' is one"),
        ("", {}, "must be that of some work"),
        ("report:generate", {}, "organizationId of report:generate: field required"),
        ("report:generate", {"organizationId": "org-1"}, "organizationId must be a UUID"),
        ("report:generate", {"organizationId": "x", "more": 1}, "more of report:generate: extra"),
        (
            "invoice:afip-submit",
            {"organizationId": str(uuid4()), "invoiceId": str(uuid4())},
            "invoiceId must be an invoice of the organisation",
        ),
        ("notification:push", {"userId": str(uuid4()), **NEWS}, "userId must be that of a user"),
        ("notification:push", {"userId": "nobody", **NEWS}, "userId must be that of a user"),
    ],
)
async def test_what_can_be_no_work_is_refused_with_a_sentence(
    office: Office, name: str, data: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Undispatchable) as caught:
        await office.system.dispatch(name, data)
    assert reason in str(caught.value)
    for queue in office.system.queues:
        assert await office.harness.jobs(queue) == []


async def test_a_user_of_another_organisation_is_not_told(office: Office, other: Business) -> None:
    data = {"userId": str(office.owner), "organizationId": str(other.id), **NEWS}
    with pytest.raises(Undispatchable, match="of the organisation"):
        await office.system.dispatch("notification:push", data)


@pytest.mark.parametrize("key", ["", "k" * 600])
async def test_an_odd_key_is_refused(office: Office, key: str) -> None:
    with pytest.raises(Undispatchable, match="1 to 512 characters"):
        await office.system.dispatch(
            "report:generate", {"organizationId": office.tenant}, idempotency_key=key
        )
