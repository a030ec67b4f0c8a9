"""Events are stored once, many at a time; what is old goes, what is young or protected stays."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from apps.campotech.system import System
from apps.providers.storage import NotFound

from apps.campotech.messages import Analytics, Cleanup
from apps.campotech.upkeep import cleanup
from faena.testing import Harness
from tests.apps.campotech.business import Business

NOW = datetime.now(UTC)
_numbers = itertools.count(1)


def common(business: Business) -> dict[str, Any]:
    return {
        "org_id": business.id,
        "idempotency_key": f"upkeep-message-{next(_numbers):06}",
        "created_at": NOW,
    }


async def test_events_are_stored_once(
    system: System, harnessed: Harness, business: Business
) -> None:
    events = [
        Analytics(**common(business), event_type="seen", event_data={"n": n}, timestamp=NOW)
        for n in range(20)
    ]
    receipts = await system.statistics.record.enqueue_many(events, tenant=str(business.id))
    (await harnessed.drain("analytics", schedules=False)).check()
    await receipts[0].handle.rerun()
    (await harnessed.drain("analytics", schedules=False, through="5m")).check()
    query = "SELECT kind, data FROM campotech.analytics_events ORDER BY id"
    rows = await business.rows(query)
    assert sorted(row[1]["n"] for row in rows) == list(range(20))


async def test_an_event_with_characters_that_cannot_be_stored_takes_no_other_with_it(
    system: System, harnessed: Harness, business: Business
) -> None:
    said = [{"a": "x\0y"}, {"a": "\\u0000"}, {"a\0": "\\\0"}, {"a": "ñ"}]
    events = [
        Analytics(**common(business), event_type="seen", event_data=one, timestamp=NOW)
        for one in said
    ]
    await system.statistics.record.enqueue_many(events, tenant=str(business.id))
    (await harnessed.drain("analytics", schedules=False)).check()
    rows = await business.rows("SELECT data FROM campotech.analytics_events")
    kept = [{"a": "xy"}, {"a": "\\u0000"}, {"a": "\\"}, {"a": "ñ"}]
    assert sorted(map(str, (row[0] for row in rows))) == sorted(map(str, kept))


async def clean(
    system: System, harnessed: Harness, business: Business, kind: str, **given: Any
) -> Any:
    message = Cleanup(**common(business), cleanup_type=kind, **given)  # pyright: ignore[reportArgumentType]
    receipt = await system.cleaning.clean.enqueue(message)
    await harnessed.drain("cleanup", schedules=False)
    return await receipt.handle.result(timeout="10s")


async def test_expired_codes_go_and_valid_ones_stay(
    system: System, harnessed: Harness, business: Business
) -> None:
    insert = "INSERT INTO campotech.otps VALUES (%s, '', %s) RETURNING 1"
    await business.rows(insert, "1", NOW - timedelta(hours=1))
    await business.rows(insert, "2", NOW + timedelta(hours=1))
    seen = await clean(system, harnessed, business, "expired_otps", dry_run=True)
    assert seen == ("expired_otps", 1, 0)
    done = await clean(system, harnessed, business, "expired_otps")
    assert done == ("expired_otps", 1, 1)
    assert await business.rows("SELECT phone FROM campotech.otps") == [("2",)]


async def test_more_than_a_slice_goes(
    system: System, harnessed: Harness, business: Business, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup, "SLICE", 2)
    for n in range(5):
        insert = "INSERT INTO campotech.otps VALUES (%s, '', %s) RETURNING 1"
        await business.rows(insert, f"{n}", NOW - timedelta(hours=1))
    done = await clean(system, harnessed, business, "expired_otps")
    assert done == ("expired_otps", 5, 5)


async def test_what_was_seen_long_ago_is_forgotten(
    system: System, harnessed: Harness, business: Business
) -> None:
    for name, age in (("old", 31), ("young", 29)):
        at = NOW - timedelta(days=age)
        await business.rows(
            "INSERT INTO campotech.payment_events VALUES (%s, %s, 'payment', '1', %s) RETURNING 1",
            name,
            business.id,
            at,
        )
        seen = "INSERT INTO campotech.whatsapp_seen VALUES (%s, %s, %s, %s) RETURNING 1"
        await business.rows(seen, name, uuid4(), business.id, at)
    later = datetime.now(UTC) + timedelta(days=99)
    done = await clean(system, harnessed, business, "expired_idempotency", older_than=later)
    assert done == ("expired_idempotency", 2, 2)
    for key, table in (("id", "payment_events"), ("wa_message_id", "whatsapp_seen")):
        assert await business.rows(f"SELECT {key} FROM campotech.{table}") == [("young",)]


async def test_only_files_that_nothing_names_go_and_their_objects_with_them(
    system: System, harnessed: Harness, business: Business
) -> None:
    names = ("photo", "bill", "orphan", "young")
    photo, bill, orphan, young = (f"{business.id}/{name}" for name in names)
    insert = "INSERT INTO campotech.files VALUES (%s, %s, 1, %s) RETURNING 1"
    for key, age in ((photo, 9), (bill, 9), (orphan, 9), (young, 0)):
        await system.storage.put(key, b"x")
        await business.rows(insert, key, business.id, NOW - timedelta(days=age))
    await business.rows(
        "INSERT INTO campotech.photos VALUES (%s, %s, %s, %s) RETURNING 1",
        uuid4(),
        business.id,
        uuid4(),
        photo,
    )
    invoice = await business.invoice()
    named = "UPDATE campotech.invoices SET pdf_key = %s WHERE id = %s RETURNING 1"
    await business.rows(named, bill, invoice)
    later = datetime.now(UTC) + timedelta(days=99)
    done = await clean(system, harnessed, business, "orphaned_files", older_than=later)
    assert done == ("orphaned_files", 1, 1)
    for kept in (photo, bill, young):
        assert await system.storage.get(kept) == b"x"
    with pytest.raises(NotFound):
        await system.storage.get(orphan)


async def test_no_message_shortens_what_the_law_demands(
    system: System, harnessed: Harness, business: Business
) -> None:
    message = Cleanup(**common(business), cleanup_type="old_audit_logs", older_than=NOW)
    receipt = await system.cleaning.clean.enqueue(message)
    await harnessed.drain("cleanup", schedules=False)
    view = await receipt.handle.view()
    assert view.state == "dead"
    assert "three years by law" in view.errors[-1].message


async def test_old_audit_logs_are_counted_before_they_are_archived(
    system: System, harnessed: Harness, business: Business
) -> None:
    at = NOW - timedelta(days=4 * 366)
    await system.pg.ensure_partitions(at=at)
    await business.rows(
        "INSERT INTO campotech.audit_logs (organization_id, subject, action, created_at) "
        "VALUES (%s, 'x', 'y', %s) RETURNING 1",
        business.id,
        at,
    )
    count = "SELECT count(*) FROM campotech.audit_logs WHERE subject = 'x'"
    seen = await clean(system, harnessed, business, "old_audit_logs", dry_run=True)
    assert (seen.found > 0, seen.removed) == (True, 0)
    assert await business.rows(count) == [(1,)]
    done = await clean(system, harnessed, business, "old_audit_logs")
    assert (done.found, done.removed) == (seen.found, 1)
    assert await business.rows(count) == [(0,)]


async def test_finished_jobs_are_counted_as_they_would_go_and_keep_their_ids_for_a_day(
    system: System, harnessed: Harness, business: Business
) -> None:
    await clean(system, harnessed, business, "expired_otps")
    harnessed.clock.advance("3h")
    for kind in (True, False):
        done = await clean(system, harnessed, business, "completed_jobs", dry_run=kind)
        assert (done.found, done.removed) == (0, 0), "the work may be asked for again"
    older = {"older_than": harnessed.clock.now - timedelta(hours=2)}
    seen = await clean(system, harnessed, business, "completed_jobs", dry_run=True, **older)
    assert (seen.found, seen.removed) == (1, 0)
    done = await clean(system, harnessed, business, "completed_jobs", **older)
    assert (done.found, done.removed) == (1, 1)
    counts = await system.queues["cleanup"].counts()
    assert counts["completed"] == 4, "those of now"
