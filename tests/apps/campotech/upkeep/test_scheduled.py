"""Work at fixed times is done once for each organisation, and told to whom it concerns."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from apps.campotech.system import System
from apps.campotech.upkeep.comparison import ALL, ZONE
from apps.campotech.upkeep.scheduled import message_of

from apps.campotech.upkeep import overdue, report, scheduled
from faena.testing import harness
from tests.apps.campotech.business import Business
from tests.apps.campotech.messaging.office import Office
from tests.apps.campotech.upkeep.test_reconciliation import issue

DAY = timedelta(days=1)


async def do(office: Office, kind: str, target: UUID | None = None, **later: Any) -> Any:
    """Have one kind of work done at another instant, with all that follows."""
    office.harness.clock.advance(timedelta(**(later or {"seconds": 1})))
    message = message_of(kind, office.harness.clock.now, target=target)
    receipt = await office.system.scheduled.enqueue(message)
    await office.settle()
    return await receipt.handle.result(timeout="10s")


# -- overdue invoices -----------------------------------------------------------------------------


async def owed(office: Office, **given: Any) -> UUID:
    """An issued invoice that was due yesterday."""
    (invoice,) = await issue(office, 1)
    await office.settle(through="5m")
    for name, value in {"due_at": datetime.now(UTC) - DAY, **given}.items():
        await office.run(f"UPDATE campotech.invoices SET {name} = %s WHERE id = %s", value, invoice)
    office.world.whatsapp.conversation.sent.clear()
    return invoice


async def test_a_customer_is_told_of_an_overdue_invoice_once_a_week(office: Office) -> None:
    await owed(office, paid_cents=21_000)
    done = await do(office, "invoice_overdue_check", office.id)
    assert done == {"invoices": 1, "reached": 1, "owedCents": 100_000}
    assert office.told() == ["invoice_overdue"]
    (sent,) = office.world.whatsapp.conversation.sent.values()
    said = [one["text"] for one in sent.body["template"]["components"][0]["parameters"]]
    assert said == ["Ana Muñoz", "B 00001-00000001", "$ 1.000,00"]
    assert office.pushed() == ["Facturas vencidas"]
    assert (await do(office, "invoice_overdue_check", office.id, days=6))["invoices"] == 0
    assert (await do(office, "invoice_overdue_check", office.id, days=2))["invoices"] == 1
    assert len(office.pushed()) == 2


@pytest.mark.parametrize(
    "given",
    [
        {"paid_cents": 121_000},
        {"due_at": datetime.now(UTC) + timedelta(hours=2)},
        {"due_at": None},
    ],
)
async def test_nobody_is_told_of_what_is_paid_or_not_due(
    office: Office, given: dict[str, Any]
) -> None:
    await owed(office, **given)
    assert (await do(office, "invoice_overdue_check"))["organizations"] == 0
    assert (await do(office, "invoice_overdue_check", office.id))["invoices"] == 0
    assert office.told() == office.pushed() == []


async def test_a_customer_without_a_phone_is_mailed(office: Office) -> None:
    await owed(office)
    await office.run("UPDATE campotech.customers SET phone = NULL, email = 'ana@example.org'")
    await do(office, "invoice_overdue_check", office.id)
    assert office.mailed() == ["Tu factura está vencida"]
    query = "SELECT channel, kind, status FROM campotech.notification_logs WHERE kind <> 'user'"
    assert await office.rows(query) == [("email", "invoice_overdue", "sent")]


async def test_the_oldest_debts_come_first_and_the_others_next_time(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overdue, "MOST", 1)
    old, new = await owed(office, due_at=datetime.now(UTC) - 9 * DAY), await owed(office)
    for expected in (old, new):
        await do(office, "invoice_overdue_check", office.id)
        query = "SELECT id FROM campotech.invoices WHERE reminded_at IS NOT NULL ORDER BY reminded_at DESC LIMIT 1"  # noqa: E501
        assert await office.rows(query) == [(expected,)]
    assert (await do(office, "invoice_overdue_check", office.id))["invoices"] == 0


# -- fan-out --------------------------------------------------------------------------------------


async def test_all_organisations_get_a_job_each_in_pages(
    office: Office, other: Business, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduled, "PAGE", 1)
    done = await do(office, "weekly_report")
    assert done == {"organizations": 1, "isLast": False}
    jobs = await office.harness.jobs("scheduler")
    tenants = sorted(str(one.tenant) for one in jobs)
    assert tenants == sorted(["None", "None", "None", str(office.id), str(other.id)])
    query = "SELECT organization_id FROM campotech.reports ORDER BY 1"
    assert await office.rows(query) == sorted([(office.id,), (other.id,)])


async def test_a_message_of_an_organisation_is_about_itself_only(
    office: Office, other: Business
) -> None:
    now = office.harness.clock.now
    theirs = message_of("weekly_report", now, target=other.id)
    forged = theirs.model_copy(update={"org_id": office.id})
    receipt = await office.system.scheduled.enqueue(forged)
    own = theirs.model_copy(update={"org_id": office.id, "target_id": None})
    await office.system.scheduled.tasks["weekly_report"].enqueue(own)
    odd = await office.system.scheduled.tasks["cert_expiry_check"].enqueue(theirs)
    await office.settle()
    for one in (receipt, odd):
        assert (await one.handle.view()).state == "dead"
    query = "SELECT organization_id FROM campotech.reports"
    assert await office.rows(query) == [(office.id,)]


# -- reports --------------------------------------------------------------------------------------


async def test_a_report_has_the_figures_of_the_week_before_and_is_mailed_once(
    office: Office,
) -> None:
    within = office.harness.clock.now
    today = within.astimezone(ZONE).date()
    monday = today - timedelta(days=today.weekday())
    await issue(office, 2)
    office.harness.clock.advance(timedelta(days=7))
    await office.run("UPDATE campotech.invoices SET issued_at = %s", within)
    for status, at in (("completed", within), ("pending", within), ("pending", within + 7 * DAY)):
        await office.run(
            "INSERT INTO campotech.jobs (id, organization_id, status, created_at) "
            "VALUES (%s, %s, %s, %s)",
            uuid4(),
            office.id,
            status,
            at,
        )
    figures = await do(office, "weekly_report", office.id)
    expected = {"completed": 1, "pending": 1}
    assert figures == {
        "jobs": expected,
        "invoices": 2,
        "invoicedCents": 242_000,
        "paidCents": 0,
    }
    assert await do(office, "weekly_report", office.id, hours=1) == figures
    query = "SELECT week, figures FROM campotech.reports"
    assert await office.rows(query) == [(monday, figures)]
    assert office.mailed() == [
        f"Tu semana del {monday:%d/%m} al {monday + timedelta(days=6):%d/%m}"
    ]


@pytest.mark.parametrize(
    ("at", "monday"),
    [
        (datetime(2025, 11, 10, 9, tzinfo=UTC), date(2025, 11, 3)),
        (datetime(2025, 11, 10, 3, tzinfo=UTC), date(2025, 11, 3)),
        (datetime(2025, 11, 10, 2, 59, tzinfo=UTC), date(2025, 10, 27)),
        (datetime(2025, 11, 16, 9, tzinfo=UTC), date(2025, 11, 3)),
    ],
)
async def test_a_week_begins_on_monday_in_argentina(
    office: Office, at: datetime, monday: date
) -> None:
    message = message_of("weekly_report", at, target=office.id)
    assert report.Reports(office.system).week_of(message) == monday


# -- certificates ---------------------------------------------------------------------------------


async def certificate(office: Office, expires: datetime) -> None:
    await office.run("DELETE FROM campotech.certificates")
    await office.run(
        "INSERT INTO campotech.certificates VALUES (%s, 'pem', '', %s)", office.id, expires
    )


async def test_owners_are_warned_30_7_and_1_days_before_and_at_the_end_once_each(
    office: Office,
) -> None:
    await certificate(office, office.harness.clock.now + timedelta(days=40))
    for _ in range(45):
        await do(office, "cert_expiry_check", days=1)
    soon, over = "Certificado de AFIP por vencer", "Certificado de AFIP vencido"
    assert office.pushed() == [soon, soon, soon, over]


async def test_a_late_check_says_only_what_is_true_now(office: Office) -> None:
    await certificate(office, office.harness.clock.now + timedelta(days=5))
    assert await do(office, "cert_expiry_check", office.id) == {"warned": 7}
    assert await do(office, "cert_expiry_check", office.id) == {"warned": None}
    end = office.harness.clock.now + timedelta(days=29)
    await office.run("UPDATE campotech.certificates SET expires_at = %s", end)
    assert await do(office, "cert_expiry_check", office.id) == {"warned": 30}


# -- reconciliation -------------------------------------------------------------------------------


async def test_the_day_before_is_compared_with_all_three_providers(office: Office) -> None:
    at = datetime(2025, 11, 10, 2, 30, tzinfo=ZONE)
    for _ in range(2):
        await office.system.scheduled.enqueue(message_of("daily_reconciliation", at))
        await office.settle(through="5m")
    query = "SELECT kind, first_day, last_day, organization_id FROM campotech.reconciliations ORDER BY kind"  # noqa: E501
    assert await office.rows(query) == [
        ("invoices", date(2025, 11, 9), date(2025, 11, 9), ALL),
        ("messages", date(2025, 11, 8), date(2025, 11, 9), ALL),
        ("payments", date(2025, 11, 9), date(2025, 11, 9), ALL),
    ]
    await do(office, "daily_reconciliation", office.id)
    await office.settle(through="5m")
    query = "SELECT count(*) FROM campotech.reconciliations WHERE organization_id = %s"
    assert await office.rows(query, office.id) == [(3,)]


# -- the timetable --------------------------------------------------------------------------------

A_DAY = {
    "job-reminder": 24,
    "invoice-overdue-check": 1,
    "daily-reconciliation": 1,
    "cert-expiry-check": 1,
    "clean-expired-otps": 24,
    "clean-orphaned-files": 1,
    "clean-expired-idempotency": 1,
    "clean-completed-jobs": 1,
}
A_WEEK = {"weekly-report": 1, "clean-old-audit-logs": 1}


async def test_schedules_fire_at_their_times_in_argentina(office: Office) -> None:
    views = {one.name: one for one in await office.system.app.schedules.list()}
    assert {*A_DAY, *A_WEEK, "ensure-partitions", "run-rollups", "archive-old-rows"} <= {*views}
    elsewhere = {one.name: one.queue for one in views.values() if one.queue != "scheduler"}
    assert elsewhere == {"remove-retrieved": "cleanup"}
    instants = {
        name: (await office.system.app.schedules.next(name, 2))[0].astimezone(ZONE)
        for name in (*A_DAY, *A_WEEK)
    }
    shown = {name: (one.hour, one.minute) for name, one in instants.items()}
    assert shown["invoice-overdue-check"] == (8, 0)
    assert shown["daily-reconciliation"] == (2, 30)
    assert shown["weekly-report"] == (6, 0)
    assert instants["weekly-report"].weekday() == 0


async def test_a_day_of_schedules_starts_the_work_of_a_day(office: Office) -> None:
    await office.system.app.schedules.declare()
    report = await office.harness.drain("scheduler", "cleanup", through="24h")
    fired = [one.task for one in report.runs if one.task.startswith("start_")]
    counted = {name: fired.count(f"start_{name.replace('-', '_')}") for name in A_DAY}
    assert counted == A_DAY
    ran = [one.task for one in report.runs if one.ending == "completed"]
    assert ran.count("job_reminder") == 24
    assert ran.count("invoice_overdue_check") == 1
    assert ran.count("clean") >= 27


@pytest.mark.parametrize(
    ("speed", "daily", "hourly"), [(300, "4m 48s", "12s"), (10_000, "8s 640ms", "1s")]
)
async def test_where_time_goes_faster_work_comes_as_much_more_often(
    office: Office, speed: int, daily: str, hourly: str
) -> None:
    fast = System(replace(office.system.settings, speed=speed))
    async with fast, harness(fast.app):
        views = {one.name: one.when for one in await fast.app.schedules.list()}
    assert views["invoice-overdue-check"] == f"every {daily}"
    assert views["job-reminder"] == f"every {hourly}"
