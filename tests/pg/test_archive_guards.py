"""What keeps rows from leaving: a protection that was declared once, an archiver at work."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from psycopg import errors

from faena.errors import StoreRejected
from faena.pg import FOREVER, Archive, Postgres
from faena.pg.archive import deletion
from faena.pg.archive.archiver import Archiver
from faena.pg.archive.directory import DirectoryStore
from faena.pg.archive.fence import Fence
from faena.pg.archive.protection import protect
from faena.pg.archive.store import open_store
from faena.pg.partition.catalog import find_table
from faena.pg.partition.name import read_name
from tests._support.eventually import eventually
from tests.pg.test_archive import NOW, PLAIN, changed_meanwhile, partitioned, run


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(to=tmp_path / "archives")


async def test_a_lower_minimum_beside_a_long_term_lowers_no_protection(
    pg: Postgres, database: str
) -> None:
    await run(pg, PLAIN)
    pg.retain("visits", by="at", keep="10y", legal="10y", then="delete")
    assert (await pg.archive(at=NOW))[0].problem is None
    async with Postgres(pg.app, database) as later:
        later.retain("visits", by="at", keep="10y", legal="1d", then="delete")
        assert (await later.archive(at=NOW))[0].problem is None
    async with Postgres(pg.app, database) as later:
        later.retain("visits", by="at", keep="5d", legal="1d", then="delete")
        (done,) = await later.archive(at=NOW)
        assert "rows of public.visits are protected for 10y" in (done.problem or "")
    assert await run(pg, "SELECT count(*) FROM visits") == [(240,)]


async def test_a_table_is_left_to_the_archiver_that_is_at_work(pg: Postgres) -> None:
    first, second = (Fence(pg, "public.visits", lease_s=60.0) for _ in range(2))
    await first.take()
    assert not await second._try()  # pyright: ignore[reportPrivateUsage]
    await first.end(None)
    await second.take()


async def test_a_partition_that_ends_at_the_very_cutoff_leaves_also_after_an_interruption(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    await partitioned(pg)
    pg.retain("pings", keep="9d", then=archive)
    midnight = NOW.replace(hour=0, minute=0, second=0, microsecond=0)

    async def interrupted(*_: Any) -> int:
        raise StoreRejected("it was interrupted", op="archive")

    with monkeypatch.context() as patched:
        patched.setattr(Archiver, "drop", interrupted)
        (done,) = await pg.archive(at=midnight)
    assert done.problem == "it was interrupted"
    (done,) = await pg.archive(at=midnight)
    assert done.problem is None
    assert await run(pg, "SELECT to_regclass('pings_20250219')::text") == [(None,)]
    assert await run(pg, "SELECT count(*) FROM pings_20250220") == [(24,)]


async def test_nobody_writes_between_the_comparison_and_the_end_of_a_partition(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    await partitioned(pg)
    pg.retain("pings", keep="9d", then=archive)
    original, tried = deletion._compare_partition, []  # pyright: ignore[reportPrivateUsage]

    async def compare(connection: Any, source: Any, unit: Any) -> None:
        await original(connection, source, unit)
        with pytest.raises(errors.LockNotAvailable) as caught:
            await run(
                pg,
                "SET LOCAL lock_timeout TO '50ms'",
                "INSERT INTO pings_20250219 VALUES (9000, 'o1', '2025-02-19 03:30+00')",
            )
        tried.append(caught.value)

    monkeypatch.setattr(deletion, "_compare_partition", compare)
    (done,) = await pg.archive(at=NOW)
    assert done.problem is None
    assert tried


async def test_nobody_changes_columns_between_their_check_and_the_deletion(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run(pg, PLAIN)
    pg.retain("visits", by="at", keep="9d", then=archive)
    original, tried = deletion.check_columns, []

    async def check(*given: Any) -> None:
        await original(*given)
        with pytest.raises(errors.LockNotAvailable) as caught:
            await run(
                pg,
                "SET LOCAL lock_timeout TO '50ms'",
                "ALTER TABLE visits ADD COLUMN more text DEFAULT 'precious'",
            )
        tried.append(caught.value)

    monkeypatch.setattr(deletion, "check_columns", check)
    (done,) = await pg.archive(at=NOW)
    assert done.problem is None
    assert tried


async def test_a_partition_and_its_table_are_not_recorded_at_the_same_time(
    pg: Postgres, database: str
) -> None:
    """Whoever records the partition waits for the table's protection, and is refused by it."""
    await partitioned(pg)
    pg.retain("pings", keep=FOREVER)
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    async with Postgres(pg.app, database) as other:
        other.retain("pings_20250219", by="at", keep="2d", then="delete")
        async with pg.transaction() as connection:
            table = await find_table(connection, read_name("pings"))
            await protect(connection, table, pg.retentions["pings"])
            second = asyncio.create_task(other.archive(at=NOW))

            async def is_waiting() -> bool:
                return second.done() or await run(pg, waiting) != [(0,)]

            await eventually(is_waiting)
        (done,) = await second
    assert "protected for ever as public.pings" in (done.problem or "")
    assert await run(pg, "SELECT count(*) FROM pings_20250219") == [(24,)]


async def test_an_object_that_a_frozen_archiver_writes_later_is_removed_by_the_next_runs(
    pg: Postgres, archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run(pg, PLAIN)
    pg.retain("visits", by="at", keep="9d", then=archive)
    await changed_meanwhile(pg, monkeypatch, "UPDATE visits SET note = '!' WHERE id = 240")
    assert (await pg.archive(at=NOW))[0].problem is None
    ((key,),) = await run(pg, "SELECT key FROM faena.archives WHERE state = 'discarded'")
    path = tmp_path / "archives" / key
    for _ in range(2):
        assert not path.exists()
        path.write_bytes(b"late")
        assert (await pg.archive(at=NOW))[0].problem is None
    assert not path.exists()
    await run(pg, "UPDATE faena.archives SET changed_at = now() - interval '8 days'")
    await pg.archive(at=NOW)
    assert await run(pg, "SELECT count(*) FROM faena.archives WHERE state = 'discarded'") == [(0,)]
    assert (await pg.verify_archives("visits")).problems == ()


async def test_an_archiver_that_was_overtaken_takes_back_what_it_has_stored(
    pg: Postgres, archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run(pg, PLAIN)
    pg.retain("visits", by="at", keep="9d", then=archive)
    taken = "UPDATE faena.archive_runs SET token = gen_random_uuid()"
    await changed_meanwhile(pg, monkeypatch, taken)
    (done,) = await pg.archive(at=NOW)
    assert "has taken over" in (done.problem or "")
    store = open_store(tmp_path / "archives")
    assert [one.key async for one in store.list("")] == []
    assert await run(pg, "SELECT count(*) FROM visits") == [(240,)]


async def test_an_archiver_that_was_overtaken_drops_no_partition(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    await partitioned(pg)
    pg.retain("pings", keep="9d", then=archive)
    original = Archiver.drop

    async def drop(self: Archiver, unit: Any) -> int:
        await run(pg, "UPDATE faena.archive_runs SET token = gen_random_uuid()")
        return await original(self, unit)

    monkeypatch.setattr(Archiver, "drop", drop)
    (done,) = await pg.archive(at=NOW)
    assert "has taken over the archives of public.pings" in (done.problem or "")
    assert await run(pg, "SELECT count(*) FROM pings_20250219") == [(24,)]


@pytest.mark.parametrize("then", ["archive", "detach"])
async def test_a_detached_partition_stays_if_its_policy_keeps_it_longer_now(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    await partitioned(pg)
    pg.retain("pings", keep="9d", then=archive)

    async def fail(self: Archiver, unit: Any) -> int:
        raise StoreRejected("no", op="archive")

    with monkeypatch.context() as patched:
        patched.setattr(Archiver, "drop", fail)
        assert (await pg.archive(at=NOW))[0].problem == "no"
    pg.retentions.clear()
    keep, how = ("30d", archive) if then == "archive" else ("9d", "detach")
    pg.retain("pings", keep=keep, then=how)
    (done,) = await pg.archive(at=NOW)
    assert "attach it again" in (done.problem or "")
    assert await run(pg, "SELECT count(*) FROM pings_20250219") == [(24,)]


async def test_a_store_that_loses_a_manifest_deletes_nothing(
    pg: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run(pg, PLAIN)
    pg.retain("visits", by="at", keep="5d", then=Archive(to=tmp_path))
    original = DirectoryStore.put

    async def put(self: Any, key: str, blob: bytes) -> None:
        await original(self, key, blob[:-3] if key.endswith(".json") else blob)

    monkeypatch.setattr(DirectoryStore, "put", put)
    (done,) = await pg.archive(at=NOW)
    assert done.problem
    assert await run(pg, "SELECT count(*) FROM visits") == [(240,)]
    assert await pg.archives("visits") == []
