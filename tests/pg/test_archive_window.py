"""Objects that are lost after they were read back, and before their rows end, take no row along."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from faena.errors import StoreRejected
from faena.pg import FOREVER, Archive, Postgres
from faena.pg.archive import archiver, deletion, proof
from faena.pg.archive.archiver import Archiver
from faena.pg.archive.run import Run
from tests.pg.test_archive import NOW, PLAIN, archived, partitioned, run

KEPT, LEFT = 96, 144


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(to=tmp_path / "archives", rows=37)


def _removed(path: Path) -> None:
    path.unlink()


def _damaged(path: Path) -> None:
    """Of the same size."""
    path.write_bytes(path.read_bytes()[:-1] + b"x")


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


WAYS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "object removed": ("*.zst", _removed),
    "object damaged": ("*.zst", _damaged),
    "object truncated": ("*.zst", _truncated),
    "manifest removed": ("*.json", _removed),
    "manifest damaged": ("*.json", _damaged),
}


class Thief:
    """Loses one object that was read back, once, after the step that it watches."""

    def __init__(self, pg: Postgres, archive: Archive, way: str) -> None:
        self._pg = pg
        self._folder = Path(str(archive.to))
        self._pattern, self._lose = WAYS[way]
        self.lost: Path | None = None

    def after(self, original: Any) -> Any:
        async def step(*given: Any, **more: Any) -> Any:
            done = await original(*given, **more)
            await self._act()
            return done

        return step

    async def _act(self) -> None:
        """Only objects whose rows are in no other place."""
        found = await run(self._pg, "SELECT key FROM faena.archives WHERE state <> 'discarded'")
        keys = {row[0].removesuffix(".jsonl.zst") for row in found}
        for path in sorted(self._folder.rglob(self._pattern)):
            name = path.relative_to(self._folder).as_posix()
            if self.lost is None and name.split(".json")[0] in keys:
                self.lost = path
                self._lose(path)


async def nothing_is_lost(pg: Postgres, table: str) -> None:
    """Each row is in the table or in an archive that can be read."""
    checked = await pg.verify_archives(table)
    assert (checked.rows, checked.problems, checked.unknown) == (LEFT, (), ())
    old = [int(one["id"]) for one in await archived(pg, table)]
    there = [row[0] for row in await run(pg, f"SELECT id FROM {table}")]
    assert sorted(old + there) == list(range(1, KEPT + LEFT + 1))


@pytest.mark.parametrize("way", WAYS)
async def test_an_object_lost_while_a_detachment_waits_is_exported_again(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    await partitioned(pg)
    pg.retain("pings", keep="4d", then=archive)
    thief = Thief(pg, archive, way)
    monkeypatch.setattr(Run, "_detach", thief.after(Run._detach))
    (done,) = await pg.archive(at=NOW)
    assert thief.lost is not None
    assert done.problem is None
    await nothing_is_lost(pg, "pings")


@pytest.mark.parametrize("step", ["_compare_partition", "aggregate"])
async def test_an_object_lost_under_the_lock_is_found_as_the_last_step(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    await partitioned(pg)
    await run(pg, "CREATE TABLE stats (rows bigint)")
    counted = "INSERT INTO stats SELECT count(*) FROM faena_expired"
    pg.retain("pings", keep="4d", then=archive, aggregate=counted)
    thief = Thief(pg, archive, "object removed")
    monkeypatch.setattr(deletion, step, thief.after(getattr(deletion, step)))
    (done,) = await pg.archive(at=NOW)
    assert thief.lost is not None
    assert done.problem is None
    await nothing_is_lost(pg, "pings")
    assert await run(pg, "SELECT sum(rows)::int FROM stats") == [(LEFT,)]


async def test_a_store_that_loses_objects_again_and_again_keeps_its_rows(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    await partitioned(pg)
    pg.retain("pings", keep="4d", then=archive)
    original = Archiver.drop

    async def drop(self: Archiver, unit: Any) -> int:
        await Thief(pg, archive, "object removed")._act()
        return await original(self, unit)

    with monkeypatch.context() as patched:
        patched.setattr(Archiver, "drop", drop)
        (done,) = await pg.archive(at=NOW)
    assert "were not deleted" in (done.problem or "")
    assert await run(pg, "SELECT count(*) FROM pings_20250219") == [(24,)]
    assert (await pg.archive(at=NOW))[0].problem is None
    await nothing_is_lost(pg, "pings")


async def test_a_store_that_refuses_an_object_once_has_its_rows_exported_again(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []
    original = proof.check_bytes

    async def check(store: Any, key: str, sha256: str) -> None:
        if not refused:
            refused.append(key)
            raise StoreRejected(f"archive {key}: access denied", op="archive")
        await original(store, key, sha256)

    monkeypatch.setattr(proof, "check_bytes", check)
    await partitioned(pg)
    pg.retain("pings", keep="4d", then=archive)
    (done,) = await pg.archive(at=NOW)
    assert (len(refused), done.problem) == (1, None)
    await nothing_is_lost(pg, "pings")


async def test_objects_are_read_again_in_stretches_and_pages(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof, "_STRETCH", 2)
    monkeypatch.setattr(proof, "_PAGE", 3)
    seen: list[str] = []
    original = proof.check_bytes

    async def check(store: Any, key: str, sha256: str) -> None:
        seen.append(key)
        await original(store, key, sha256)

    monkeypatch.setattr(proof, "check_bytes", check)
    await partitioned(pg)
    pg.retain("pings", keep="4d", then=archive)
    (done,) = await pg.archive(at=NOW)
    assert done.problem is None
    assert sorted(seen) == sorted(one.key for one in await pg.archives("pings"))


async def test_a_transaction_is_not_idle_for_as_long_as_all_of_its_objects_take(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server would end it after a lease."""
    monkeypatch.setattr(proof, "_STRETCH", 1)
    asked: list[tuple[int, Any]] = []
    pids: list[int] = []
    prove, check_bytes = proof.prove, proof.check_bytes

    async def watched(connection: Any, *given: Any) -> None:
        pids.append(connection.info.backend_pid)
        await prove(connection, *given)

    async def check(*given: Any) -> None:
        words = f"SELECT pid, state_change FROM pg_stat_activity WHERE pid = {pids[-1]}"
        asked.extend(await run(pg, words))
        await check_bytes(*given)

    monkeypatch.setattr(proof, "prove", watched)
    monkeypatch.setattr(proof, "check_bytes", check)
    await partitioned(pg)
    pg.retain("pings", keep="4d", then=archive)
    (done,) = await pg.archive(at=NOW)
    assert done.problem is None
    assert len(set(asked)) == len(asked) > len(pids)


@pytest.mark.parametrize("way", WAYS)
async def test_an_object_lost_while_a_deletion_waits_for_a_row_is_exported_again(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(archiver, "_FRESH_S", 0.0)
    await run(pg, PLAIN)
    pg.retain("visits", by="at", keep="4d", tenant="org", then=archive)
    thief = Thief(pg, archive, way)
    monkeypatch.setattr(archiver, "delete_slice", thief.after(archiver.delete_slice))
    (done,) = await pg.archive(at=NOW)
    assert thief.lost is not None
    assert done.problem is None
    await nothing_is_lost(pg, "visits")


async def test_objects_that_were_given_up_before_a_deletion_take_no_row_along(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever gave them up removes them."""
    given_up: list[Any] = []
    original = archiver.begin_deletion

    async def begin(*given: Any) -> None:
        if not given_up:
            words = "UPDATE faena.archives SET state = 'discarded' WHERE state = 'writing'"
            given_up.extend(await run(pg, f"{words} RETURNING id"))
        await original(*given)

    monkeypatch.setattr(archiver, "begin_deletion", begin)
    await run(pg, PLAIN)
    pg.retain("visits", by="at", keep="4d", tenant="org", then=archive)
    (done,) = await pg.archive(at=NOW)
    assert given_up
    assert done.problem is None
    await nothing_is_lost(pg, "visits")


async def test_a_detached_partition_that_was_protected_by_itself_is_not_dropped(
    pg: Postgres, archive: Archive, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another program, while an archiver that was interrupted has not come back."""
    await partitioned(pg)
    pg.retain("pings", keep="9d", then=archive)
    original = Run._detach

    async def detach(self: Run, *given: Any) -> None:
        await original(self, *given)
        async with Postgres(pg.app, database) as other:
            other.retain("pings_20250219", keep=FOREVER)
            assert (await other.archive())[0].problem is None

    monkeypatch.setattr(Run, "_detach", detach)
    (done,) = await pg.archive(at=NOW)
    assert "rows of public.pings_20250219 are protected for ever" in (done.problem or "")
    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT count(*) FROM pings_20250219").fetchone()
    assert found == (24,)
