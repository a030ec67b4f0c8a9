"""Reminders follow the date of a visit: set, moved, and taken back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from apps.campotech.upkeep.scheduled import message_of

from apps.campotech.messaging import reminder
from faena import JobView
from tests.apps.campotech.business import Business
from tests.apps.campotech.messaging.office import Office
from tests.apps.campotech.messaging.test_notify import visit

NOW = datetime.now(UTC).replace(microsecond=0)
TOMORROW = NOW + timedelta(hours=26)
"""Its reminder of a day before is due in two hours, the other one is far away."""
HOURS = {"reminder_24h": 24, "reminder_1h": 1}


async def plan(office: Office, job: UUID) -> None:
    """As whoever changes a job does, in the same transaction."""
    async with office.system.pg.transaction() as connection:
        await office.system.reminders.plan(connection, office.id, job)
    await office.settle()


async def waiting(office: Office) -> dict[str, datetime]:
    """When each reminder is due."""
    found: list[JobView] = [
        one
        for one in await office.harness.jobs("job.notification")
        if one.task == "notify" and one.state == "delayed"
    ]
    return {one.id.partition("-")[0]: due(one) for one in found}


def due(one: JobView) -> datetime:
    assert one.due_at is not None
    return datetime.fromtimestamp(one.due_at // 1_000_000, UTC)


def expected(date: datetime, passed: timedelta = timedelta()) -> dict[str, datetime]:
    """Those that are due within six hours."""
    now = NOW + passed
    dues = {kind: date - timedelta(hours=hours) for kind, hours in HOURS.items()}
    return {kind: due for kind, due in dues.items() if now < due <= now + timedelta(hours=6)}


async def sweep(office: Office) -> None:
    """As a schedule does, each hour."""
    at = office.harness.clock.now
    await office.system.scheduled.enqueue(message_of("job_reminder", at))
    await office.settle()


async def move(office: Office, job: UUID, date: datetime | None) -> None:
    await office.run("UPDATE campotech.jobs SET scheduled_date = %s WHERE id = %s", date, job)
    await plan(office, job)


async def test_a_reminder_that_is_due_soon_is_a_job_and_a_later_one_is_not(office: Office) -> None:
    await plan(office, await visit(office, date=TOMORROW))
    assert await waiting(office) == {"reminder_24h": TOMORROW - timedelta(hours=24)}
    await plan(office, await visit(office, date=NOW + timedelta(days=90)))
    assert len(await waiting(office)) == 1


async def test_both_are_sent_once_each_and_in_time(office: Office) -> None:
    job = await visit(office, date=TOMORROW)
    await plan(office, job)
    for hour in range(1, 27):
        await sweep(office)
        await office.settle(through="1h")
        assert len(office.told()) == (hour >= 2) + (hour >= 25), hour
    assert office.told() == ["job_reminder", "job_reminder"]
    query = "SELECT kind FROM campotech.notification_logs ORDER BY created_at"
    assert await office.rows(query) == [("reminder_24h",), ("reminder_1h",)]


async def test_a_sweep_sets_what_is_missing_and_leaves_the_rest(office: Office) -> None:
    await plan(office, await visit(office, date=TOMORROW))
    await visit(office, date=TOMORROW)
    await visit(office, "cancelled", date=TOMORROW)
    for _ in range(2):
        await sweep(office)
        jobs = [
            one.id
            for one in await office.harness.jobs("job.notification")
            if one.state == "delayed"
        ]
        assert len(jobs) == 2


async def test_a_sweep_goes_through_many_visits_in_pages(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reminder, "PAGE", 2)
    for minutes in (0, 0, 0, 5, 10):
        await visit(office, date=TOMORROW + timedelta(minutes=minutes))
    await sweep(office)
    states = [one.state for one in await office.harness.jobs("job.notification")]
    assert states == ["delayed"] * 5
    assert len(await office.harness.jobs("scheduler")) == 3


async def test_one_visit_can_be_arranged_by_its_id(office: Office, other: Business) -> None:
    job, at = await visit(office, date=TOMORROW), office.harness.clock.now
    wrong = message_of("job_reminder", at, target=job).model_copy(update={"org_id": other.id})
    receipt = await office.system.scheduled.enqueue(wrong)
    await office.settle()
    assert (await receipt.handle.view()).state == "dead"
    right = wrong.model_copy(update={"org_id": office.id})
    await office.system.scheduled.enqueue(right)
    await office.settle()
    assert await waiting(office) == expected(TOMORROW)


async def test_planning_again_changes_nothing(office: Office) -> None:
    job = await visit(office, date=TOMORROW)
    for _ in range(3):
        await plan(office, job)
    assert await waiting(office) == expected(TOMORROW)


async def test_a_visit_that_is_moved_has_the_reminders_of_its_last_date(office: Office) -> None:
    job = await visit(office, date=TOMORROW)
    await plan(office, job)
    for hours in (3, 1, 0, -1, 30):
        await move(office, job, TOMORROW + timedelta(hours=hours))
        assert await waiting(office) == expected(TOMORROW + timedelta(hours=hours))


async def test_a_visit_that_is_moved_after_its_reminder_is_reminded_of_again(
    office: Office,
) -> None:
    job = await visit(office, date=TOMORROW)
    await plan(office, job)
    await office.settle(through="3h")
    assert office.told() == ["job_reminder"]
    later = TOMORROW + timedelta(hours=4)
    await move(office, job, later)
    assert await waiting(office) == expected(later, timedelta(hours=3))
    assert await waiting(office)


@pytest.mark.parametrize("status", ["cancelled", "completed", "in_progress", "draft"])
async def test_a_visit_that_does_not_come_has_no_reminders(office: Office, status: str) -> None:
    job = await visit(office, date=TOMORROW)
    await plan(office, job)
    await office.run("UPDATE campotech.jobs SET status = %s WHERE id = %s", status, job)
    await plan(office, job)
    assert await waiting(office) == {}


async def test_a_visit_without_a_date_has_no_reminders(office: Office) -> None:
    job = await visit(office, date=TOMORROW)
    await plan(office, job)
    await move(office, job, None)
    assert await waiting(office) == {}


async def test_a_visit_that_is_soon_has_only_the_reminder_that_still_can_come(
    office: Office,
) -> None:
    soon = NOW + timedelta(hours=3)
    await plan(office, await visit(office, date=soon))
    assert await waiting(office) == {"reminder_1h": soon - timedelta(hours=1)}
    await plan(office, await visit(office, date=NOW + timedelta(minutes=10)))
    assert len(await waiting(office)) == 1


async def test_a_reminder_of_a_date_that_was_changed_behind_its_back_is_not_sent(
    office: Office,
) -> None:
    job = await visit(office, date=TOMORROW)
    await plan(office, job)
    await office.run("UPDATE campotech.jobs SET status = 'cancelled' WHERE id = %s", job)
    await office.settle(through="48h")
    assert office.told() == []


async def test_a_plan_for_another_organisation_takes_nothing_away(
    office: Office, other: object
) -> None:
    job = await visit(office, date=TOMORROW)
    await plan(office, job)
    async with office.system.pg.transaction() as connection:
        await office.system.reminders.plan(connection, UUID(int=7), job)
    await office.settle()
    assert await waiting(office) == expected(TOMORROW)


async def test_a_reminder_that_nobody_sent_in_time_is_not_sent_after_the_visit(
    office: Office,
) -> None:
    job = await visit(office, date=TOMORROW)
    await plan(office, job)
    assert await waiting(office) == expected(TOMORROW)
    office.harness.clock.advance("27h")  # no worker ran
    await office.settle()
    assert await waiting(office) == {}
    assert office.told() == []
