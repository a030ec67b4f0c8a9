"""Reminders follow the date of a visit: set, moved, and taken back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from faena import JobView
from tests.apps.campotech.messaging.office import Office
from tests.apps.campotech.messaging.test_notify import visit

NOW = datetime.now(UTC).replace(microsecond=0)
IN_TWO_DAYS = NOW + timedelta(days=2)
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


def expected(date: datetime) -> dict[str, datetime]:
    return {kind: date - timedelta(hours=hours) for kind, hours in HOURS.items()}


async def move(office: Office, job: UUID, date: datetime | None) -> None:
    await office.run("UPDATE campotech.jobs SET scheduled_date = %s WHERE id = %s", date, job)
    await plan(office, job)


async def test_a_visit_has_two_reminders(office: Office) -> None:
    job = await visit(office, date=IN_TWO_DAYS)
    await plan(office, job)
    assert await waiting(office) == expected(IN_TWO_DAYS)


async def test_they_are_sent_once_each_and_in_time(office: Office) -> None:
    job = await visit(office, date=IN_TWO_DAYS)
    await plan(office, job)
    await office.settle(through="25h")
    assert office.told() == ["job_reminder"]
    await office.settle(through="23h")
    assert office.told() == ["job_reminder", "job_reminder"]
    query = "SELECT kind FROM campotech.notification_logs ORDER BY created_at"
    assert await office.rows(query) == [("reminder_24h",), ("reminder_1h",)]


async def test_planning_again_changes_nothing(office: Office) -> None:
    job = await visit(office, date=IN_TWO_DAYS)
    for _ in range(3):
        await plan(office, job)
    assert await waiting(office) == expected(IN_TWO_DAYS)


async def test_a_visit_that_is_moved_has_the_reminders_of_its_last_date(office: Office) -> None:
    job = await visit(office, date=IN_TWO_DAYS)
    await plan(office, job)
    for hours in (30, 5, 0, 30):
        await move(office, job, IN_TWO_DAYS + timedelta(hours=hours))
        assert await waiting(office) == expected(IN_TWO_DAYS + timedelta(hours=hours))


async def test_a_visit_that_is_moved_after_its_reminder_is_reminded_of_again(
    office: Office,
) -> None:
    job = await visit(office, date=IN_TWO_DAYS)
    await plan(office, job)
    await office.settle(through="25h")
    later = IN_TWO_DAYS + timedelta(days=3)
    await move(office, job, later)
    assert await waiting(office) == expected(later)


@pytest.mark.parametrize("status", ["cancelled", "completed", "in_progress", "draft"])
async def test_a_visit_that_does_not_come_has_no_reminders(office: Office, status: str) -> None:
    job = await visit(office, date=IN_TWO_DAYS)
    await plan(office, job)
    await office.run("UPDATE campotech.jobs SET status = %s WHERE id = %s", status, job)
    await plan(office, job)
    assert await waiting(office) == {}


async def test_a_visit_without_a_date_has_no_reminders(office: Office) -> None:
    job = await visit(office, date=IN_TWO_DAYS)
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
    job = await visit(office, date=IN_TWO_DAYS)
    await plan(office, job)
    await office.run("UPDATE campotech.jobs SET status = 'cancelled' WHERE id = %s", job)
    await office.settle(through="48h")
    assert office.told() == []


async def test_a_plan_for_another_organisation_takes_nothing_away(
    office: Office, other: object
) -> None:
    job = await visit(office, date=IN_TWO_DAYS)
    await plan(office, job)
    async with office.system.pg.transaction() as connection:
        await office.system.reminders.plan(connection, UUID(int=7), job)
    await office.settle()
    assert await waiting(office) == expected(IN_TWO_DAYS)
