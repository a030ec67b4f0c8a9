"""Customers learn what has changed about their visit, once, and while it is worth something."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from apps.campotech.jobs.complete import Completion

from apps.campotech.messages import SyncOffline
from tests.apps.campotech.messaging.office import Office

NOW = datetime.now(UTC)
TOMORROW = NOW + timedelta(days=3)
_numbers = itertools.count(1)


async def change(
    office: Office,
    data: dict[str, Any],
    *,
    job: UUID | None = None,
    at: datetime = NOW,
    device: str = "phone",
) -> UUID:
    """What a device did; the id of the job."""
    operation: dict[str, Any] = {
        "type": "create" if job is None else "update",
        "entityType": "job",
        "localId": f"visit-{next(_numbers)}",
        "clientTimestamp": at,
        "data": data,
    }
    if job is None:
        data["customer_id"] = str(office.business.customer)
    else:
        operation["serverId"] = str(job)
    message = SyncOffline.model_validate(
        {
            "orgId": office.tenant,
            "idempotencyKey": f"sync-message-{next(_numbers):08}",
            "createdAt": NOW,
            "userId": str(office.owner),
            "deviceId": device,
            "operations": [operation],
        }
    )
    apply = office.system.sync.apply
    receipt = await apply.enqueue(message, tenant=office.tenant, key=message.entity_key)
    await office.settle()
    (done,) = await receipt.handle.result(timeout="10s")
    assert done.problem is None
    return UUID(done.server_id)


async def test_a_visit_is_told_as_it_goes_on(office: Office) -> None:
    job = await change(office, {"status": "scheduled", "scheduled_date": TOMORROW.isoformat()})
    assert office.told() == ["job_scheduled"]
    await change(office, {"description": "caldera"}, job=job)
    await change(office, {"status": "en_camino"}, job=job, at=NOW + timedelta(minutes=1))
    assert office.told() == ["job_scheduled", "job_en_camino"]
    await office.system.completing.complete(office.id, job, Completion())
    await office.settle()
    assert office.told() == ["job_scheduled", "job_en_camino", "job_completed"]
    query = "SELECT kind FROM campotech.notification_logs ORDER BY created_at"
    assert await office.rows(query) == [("scheduled",), ("en_camino",), ("completed",)]


async def test_another_date_is_news_and_the_same_one_is_not(office: Office) -> None:
    job = await change(office, {"status": "scheduled", "scheduled_date": TOMORROW.isoformat()})
    later = NOW + timedelta(minutes=1)
    again = {"status": "scheduled", "scheduled_date": TOMORROW.isoformat()}
    await change(office, again, job=job, at=later, device="desk")
    assert office.told() == ["job_scheduled"]
    moved = TOMORROW + timedelta(days=1)
    await change(office, {"scheduled_date": moved.isoformat()}, job=job, at=later)
    assert office.told() == ["job_scheduled", "job_scheduled"]


async def test_two_devices_that_say_the_same_are_told_once(office: Office) -> None:
    job = await change(office, {"status": "pending"})
    assert office.told() == []
    for device in ("phone", "desk"):
        await change(office, {"status": "cancelled"}, job=job, device=device)
    assert office.told() == ["job_cancelled"]


@pytest.mark.parametrize(
    ("data", "late"),
    [
        ({"status": "en_camino"}, timedelta(hours=2)),
        ({"status": "completed"}, timedelta(days=2)),
        ({"status": "cancelled"}, timedelta(days=2)),
        ({"status": "scheduled"}, timedelta()),  # there is no date
        ({"status": "scheduled", "scheduled_date": NOW.isoformat()}, timedelta()),
        ({"status": "in_progress"}, timedelta()),
    ],
)
async def test_what_is_no_news_is_not_told(
    office: Office, data: dict[str, Any], late: timedelta
) -> None:
    await change(office, data, at=NOW - late)
    assert office.told() == []


async def test_the_technician_who_comes_is_named(office: Office) -> None:
    technician = await office.hire("technician")
    await change(office, {"status": "en_camino", "assigned_to": str(technician)})
    (sent,) = office.world.whatsapp.conversation.sent.values()
    (parameter,) = sent.body["template"]["components"][0]["parameters"]
    assert parameter["text"] == "Eva"


async def test_nobody_is_told_who_cannot_be_reached(office: Office) -> None:
    await office.run("UPDATE campotech.customers SET phone = NULL, email = NULL")
    await change(office, {"status": "en_camino"})
    assert office.told() == []
    assert await office.rows("SELECT 1 FROM campotech.notification_logs") == []
