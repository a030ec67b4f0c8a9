"""What devices did offline is applied once, in its own organisation, and merged."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from apps.campotech.sync.apply import Applied
from apps.campotech.system import System
from pydantic import ValidationError

from apps.campotech.messages import SyncOffline
from faena.testing import Harness

ORG, OTHER_ORG, USER = uuid4(), uuid4(), uuid4()
NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
async def _published(system: System) -> None:
    """As a worker does when it starts: what is applied may be followed by jobs."""
    await system.pg.outbox.publish()


def operation(kind: str = "create", entity: str = "job", **given: Any) -> dict[str, Any]:
    made = {"type": kind, "entityType": entity, "localId": "local-1", "data": {}}
    at = given.pop("at", 0)
    return {**made, "clientTimestamp": (NOON + timedelta(minutes=at)).isoformat(), **given}


def message(*operations: dict[str, Any], device: str = "phone", org: UUID = ORG) -> SyncOffline:
    return SyncOffline.model_validate(
        {
            "orgId": str(org),
            "idempotencyKey": f"sync-message-{next(_numbers):08}",
            "createdAt": NOON.isoformat(),
            "userId": str(USER),
            "deviceId": device,
            "operations": operations,
        }
    )


async def sync(system: System, harnessed: Harness, sent: SyncOffline) -> list[Applied]:
    receipt = await system.sync.apply.enqueue(sent, tenant=str(sent.org_id), key=sent.entity_key)
    (await harnessed.drain(schedules=False)).check()
    return await receipt.handle.result(timeout="10s")


async def rows(system: System, query: str, *given: Any) -> list[tuple[Any, ...]]:
    async with system.pg.transaction() as connection:
        return await (await connection.execute(query.encode(), given)).fetchall()


JOBS = "SELECT id, status, description FROM campotech.jobs WHERE organization_id = %s"


async def test_a_job_that_a_device_made_is_there_once(system: System, harnessed: Harness) -> None:
    made = operation(data={"description": "caldera", "status": "pending"})
    (first,) = await sync(system, harnessed, message(made))
    again, _ = await sync(system, harnessed, message(made, operation("update", data={})))
    assert first.result == again.result == "applied"
    assert first.server_id == again.server_id
    assert await rows(system, JOBS, ORG) == [(UUID(first.server_id), "pending", "caldera")]


async def test_changes_of_two_devices_are_merged_and_noted(
    system: System, harnessed: Harness
) -> None:
    (made,) = await sync(
        system,
        harnessed,
        message(operation(data={"status": "scheduled"}, vectorClock={"phone": 1})),
    )
    done = operation(
        "status_change",
        serverId=made.server_id,
        data={"status": "completed"},
        at=5,
        vectorClock={"phone": 2},
    )
    moved = operation(
        "update",
        serverId=made.server_id,
        data={"status": "en_camino", "description": "otra"},
        at=9,
        vectorClock={"phone": 1, "desk": 1},
    )
    assert (await sync(system, harnessed, message(done)))[0].result == "applied"
    assert (await sync(system, harnessed, message(moved, device="desk")))[0].result == "merged"
    assert await rows(system, JOBS, ORG) == [(UUID(made.server_id), "completed", "otra")]
    (told,) = await rows(system, "SELECT subject, detail FROM campotech.audit_logs")
    assert told == (made.server_id, {"device": "desk", "fields": ["description", "status"]})
    old = operation("update", serverId=made.server_id, data={"description": "vieja"}, at=99)
    old["vectorClock"] = {"phone": 1}
    assert (await sync(system, harnessed, message(old, device="desk")))[0].result == "superseded"


async def test_nothing_of_another_organisation_is_changed(
    system: System, harnessed: Harness
) -> None:
    (made,) = await sync(system, harnessed, message(operation(data={"description": "mine"})))
    theirs = operation("update", serverId=made.server_id, data={"description": "stolen"})
    (refused,) = await sync(system, harnessed, message(theirs, org=OTHER_ORG))
    assert refused.result == "refused"
    assert refused.problem == f"no job {made.server_id} in this organisation"
    assert [row[2] for row in await rows(system, JOBS, ORG)] == ["mine"]
    assert await rows(system, JOBS, OTHER_ORG) == []


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (operation(data={"status": "odd"}), "status: input should be"),
        (operation(data={"salary": 3}), "salary: extra inputs are not permitted"),
        (operation(data={"total_cents": -1}), "total_cents: "),
        (operation(data={"status": None}), "status: input should be"),
        (operation(data={"description": None}), "description: input should be"),
        (operation(data={"description": "a\0b"}), "description: must not have a nul"),
        (operation(data={"total_cents": 10**19}), "total_cents: input should be less"),
        (operation(entity="customer", data={"name": None}), "name: input should be"),
        (operation(data={"customer_id": str(uuid4())}), "customer_id: must be one of this"),
        (operation(data={"assigned_to": str(uuid4())}), "assigned_to: must be one of this"),
        (operation("status_change", data={"description": "x"}), "a change of status must name"),
        (operation("update", data={}), "no job"),
        (operation(serverId=str(uuid4()), data={}), "serverId: must not be given"),
        (operation(entity="customer", data={"phone": "1"}), "name: field required"),
        (
            operation("photo_upload", "photo", data={"job_id": str(uuid4()), "file_key": "../x"}),
            "file_key: must be in the folder",
        ),
        (
            operation(
                "photo_upload", "photo", data={"job_id": str(uuid4()), "file_key": f"{ORG}0/x.jpg"}
            ),
            "file_key: must be in the folder",
        ),
        (
            operation(
                "photo_upload", "photo", data={"job_id": str(uuid4()), "file_key": f"{ORG}/x.jpg"}
            ),
            "no job",
        ),
    ],
)
async def test_an_operation_that_makes_no_sense_is_refused_alone(
    system: System, harnessed: Harness, wrong: dict[str, Any], problem: str
) -> None:
    (refused,) = await sync(system, harnessed, message(wrong))
    assert refused.result == "refused"
    assert (refused.problem or "").startswith(problem)
    assert await rows(system, JOBS, ORG) == []
    ((kept,),) = await rows(system, "SELECT problem FROM campotech.offline_operations")
    assert kept == refused.problem


async def test_the_same_words_of_two_devices_are_two_jobs(
    system: System, harnessed: Harness
) -> None:
    made = operation(data={"description": "caldera"})
    first, second = [
        (await sync(system, harnessed, message(made, device=device)))[0] for device in ("a", "b")
    ]
    assert first.server_id != second.server_id
    assert len(await rows(system, JOBS, ORG)) == 2


@pytest.mark.parametrize("wrong", [{"localId": "a\0"}, {"vectorClock": {"a\0": 1}}])
def test_what_no_table_can_hold_is_refused_before_it_is_a_job(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="NUL"):
        message(operation(**wrong))


async def test_a_photo_belongs_to_its_job(system: System, harnessed: Harness) -> None:
    (made,) = await sync(system, harnessed, message(operation(data={"description": "x"})))
    photo = {"job_id": made.server_id, "file_key": f"{ORG}/photos/1.jpg"}
    shown = operation("photo_upload", "photo", localId="photo-1", data=photo)
    assert (await sync(system, harnessed, message(shown)))[0].result == "applied"
    assert await rows(system, "SELECT job_id::text, file_key FROM campotech.photos") == [
        (made.server_id, f"{ORG}/photos/1.jpg")
    ]


async def test_jobs_of_one_entity_run_in_their_order(system: System, harnessed: Harness) -> None:
    steps = [message(operation(data={"description": "0"}))]
    steps += [message(operation("update", at=n, data={"description": str(n)})) for n in (1, 2, 3)]
    receipts = [
        await system.sync.apply.enqueue(one, tenant=str(ORG), key=one.entity_key) for one in steps
    ]
    for _ in receipts:  # one drain has been seen to leave jobs that wait for their turn
        (await harnessed.drain("sync.offline", schedules=False, at_once=4)).check()
    results = [(await one.handle.result(timeout="10s"))[0] for one in receipts]
    assert [one.problem for one in results] == [None] * 4
    assert [row[2] for row in await rows(system, JOBS, ORG)] == ["3"]


PLANNED = "SELECT payload, tenant FROM faena.outbox WHERE task = 'arrange_reminders'"


@pytest.mark.parametrize(
    ("data", "is_planned"),
    [
        ({"scheduled_date": NOON.isoformat()}, True),
        ({"status": "scheduled"}, True),
        ({"customer_id": None}, True),
        ({"description": "caldera"}, False),
        ({"scheduled_date": "tomorrow"}, False),
    ],
)
async def test_what_moves_a_visit_plans_its_reminders_in_the_same_transaction(
    system: System, harnessed: Harness, data: dict[str, Any], is_planned: bool
) -> None:
    (done,) = await sync(system, harnessed, message(operation(data=data)))
    planned = [({"organizationId": str(ORG), "jobId": done.server_id}, str(ORG))]
    assert await rows(system, PLANNED) == (planned if is_planned else [])


async def test_a_visit_that_is_moved_by_a_part_of_a_change_has_its_reminders_planned(
    system: System, harnessed: Harness
) -> None:
    made = operation(data={"status": "completed"}, vectorClock={"phone": 1})
    (first,) = await sync(system, harnessed, message(made))
    data = {"status": "pending", "scheduled_date": NOON.isoformat()}
    moved = operation("update", serverId=first.server_id, data=data, vectorClock={"desk": 1})
    assert (await sync(system, harnessed, message(moved, device="desk")))[0].result == "merged"
    assert len(await rows(system, PLANNED)) == 2


async def test_a_change_that_is_superseded_plans_nothing(
    system: System, harnessed: Harness
) -> None:
    made = operation(data={"status": "scheduled"}, vectorClock={"phone": 2})
    (first,) = await sync(system, harnessed, message(made))
    known = operation(
        "update", serverId=first.server_id, data={"status": "pending"}, vectorClock={"phone": 1}
    )
    assert (await sync(system, harnessed, message(known)))[0].result == "superseded"
    assert len(await rows(system, PLANNED)) == 1
