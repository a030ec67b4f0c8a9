"""What keeps rows from leaving: a protection that was declared once, an archiver at work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faena.errors import StoreRejected, StoreUnavailable
from faena.pg import Archive, Postgres
from faena.pg.archive import deletion
from faena.pg.archive.archiver import Archiver
from faena.pg.archive.directory import DirectoryStore
from faena.pg.archive.fence import Fence
from faena.pg.archive.store import open_store
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


async def test_nobody_writes_between_the_comparison_and_the_end_of_a_partition(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    await partitioned(pg)
    pg.retain("pings", keep="9d", then=archive)
    original, tried = deletion._compare_partition, []  # pyright: ignore[reportPrivateUsage]

    async def compare(connection: Any, source: Any, unit: Any) -> None:
        await original(connection, source, unit)
        with pytest.raises(StoreUnavailable) as caught:
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
