"""What a law protects survives an erasure, whatever a later program calls it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from faena import Faena
from faena.job import Job, Spec
from faena.pg import FOREVER, Archive, Postgres
from faena.pg.archive.store import open_store
from faena.pg.erasure.erasures import Order
from faena.pg.erasure.record import Tally
from faena.pg.erasure.view import ErasureView

OLD, YOUNG = 8, 12
"""Rows of the tenant: older than ten years by `at`, and not; all are very old by `born`."""
PLAIN = f"""
    CREATE TABLE v (id int PRIMARY KEY, org text, at timestamptz, born date NOT NULL);
    INSERT INTO v SELECT n, 'a', now() - CASE WHEN n <= {YOUNG} THEN n ELSE n + 11 * 366 END
        * interval '1 day', '1980-01-01' FROM generate_series(1, {OLD + YOUNG}) n;
    INSERT INTO v SELECT n, 'b', now(), '1980-01-01' FROM generate_series(101, 105) n
"""
SPLIT = f"""
    CREATE TABLE v (id int, org text, at timestamptz, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
    CREATE TABLE v_1 PARTITION OF v FOR VALUES FROM ('2010-01-01 00:00Z') TO ('2400-01-01 00:00Z');
    CREATE TABLE v_0 PARTITION OF v FOR VALUES FROM (MINVALUE) TO ('2010-01-01 00:00Z');
    INSERT INTO v SELECT n, 'a', CASE WHEN n <= {YOUNG} THEN now() - n * interval '1 day'
        ELSE '2010-06-01 00:00+00' END FROM generate_series(1, {OLD + YOUNG}) n
"""
TEN: dict[str, Any] = {"by": "at", "keep": "10y", "legal": "10y", "tenant": "org", "then": "delete"}
YEAR: dict[str, Any] = {"by": "at", "keep": "1y", "tenant": "org", "then": "delete"}


@pytest.fixture
async def pg(app: Faena, database: str) -> AsyncIterator[Postgres]:
    async with Postgres(app, database, relay=False) as pg:
        pg.erasure(rows=5, wait="50ms", lease="1s")
        yield pg


async def run(pg: Postgres, *statements: str) -> list[Any]:
    found = None
    async with pg.transaction() as connection:
        for one in statements:
            found = await connection.execute(one.encode())
        return await found.fetchall() if found is not None and found.description else []


def declare(pg: Postgres, policies: dict[str, dict[str, Any]]) -> None:
    """As a program with these policies alone."""
    pg.retentions.clear()
    for table, given in policies.items():
        pg.retain(table, **given)


async def carried_out(pg: Postgres, **policies: dict[str, Any]) -> None:
    declare(pg, policies)
    for one in await pg.archive():
        assert one.problem is None, one


async def erased(pg: Postgres, **policies: dict[str, Any]) -> ErasureView:
    declare(pg, policies)
    asked = await pg.erase(tenant="a", by="ana", reason="asked by letter")
    await pg.erasures._work(Order(asked.id), Job("erasures", asked.id, Spec(task="x")))
    done = await pg.erasures.look(asked.id)
    assert done.state == "done"
    plan = await pg.erasures.plan("a")
    assert (plan.total, plan.kept) == (0, done.kept)
    return done


async def number(pg: Postgres, table: str = "v") -> int:
    return (await run(pg, f"SELECT count(*) FROM {table} WHERE org = 'a'"))[0][0]


# -- rows -----------------------------------------------------------------------------------------

CASES: dict[str, tuple[str, str, str, str, dict[str, Any], str]] = {
    "a renamed table": (PLAIN, "v", "ALTER TABLE v RENAME TO w", "w", YEAR, "for 10y as public.v"),
    "a table in another schema": (
        PLAIN,
        "v",
        "CREATE SCHEMA other; ALTER TABLE v SET SCHEMA other",
        "other.v",
        YEAR,
        "for 10y as public.v",
    ),
    "another column": (PLAIN, "v", "", "v", {**YEAR, "by": "born"}, "for 10y by the column at"),
    "a partition": (SPLIT, "v", "", "v_1", YEAR, "for 10y as public.v"),
    "a table of a partition": (SPLIT, "v_1", "", "v", YEAR, "for 10y as public.v_1"),
    "a partition of a renamed table": (
        SPLIT,
        "v",
        "ALTER TABLE v RENAME TO w",
        "v_1",
        YEAR,
        "for 10y as public.v",
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_protected_rows_stay_under_any_name_and_by_their_own_column(
    pg: Postgres, case: str
) -> None:
    made, first, change, then, policy, words = CASES[case]
    await run(pg, made)
    declare(pg, {first: {**TEN, "keep": "20y"}})
    assert [one.problem for one in await pg.archive()] == [None]
    await run(pg, change or "SELECT")
    done = await erased(pg, **{then: policy})
    name = then if "." in then else f"public.{then}"
    assert done.erased == {f"table {name}": OLD}
    (kept,) = done.kept
    assert (kept.place, kept.number) == (f"table {name}", YOUNG)
    assert kept.reason == f"it must be kept {words}"
    assert kept.until is not None
    assert 9.9 < (kept.until - datetime.now(UTC)) / timedelta(days=365.25) < 10.1
    assert await number(pg, then) == YOUNG


async def test_rows_whose_protected_column_is_gone_are_kept_and_told(pg: Postgres) -> None:
    await run(pg, PLAIN)
    await carried_out(pg, v={**TEN, "keep": "20y"})
    await run(pg, "ALTER TABLE v RENAME COLUMN at TO since")
    done = await erased(pg, v={**YEAR, "by": "born"})
    (kept,) = done.kept
    words = "it must be kept for 10y by the column at, which is gone or no time"
    assert (kept.number, kept.reason, kept.until) == (OLD + YOUNG, words, None)
    await run(pg, "ALTER TABLE v RENAME COLUMN since TO at")
    await run(pg, "ALTER TABLE v ALTER COLUMN at TYPE text")
    assert (await erased(pg, v={**YEAR, "by": "born"})).kept == done.kept
    assert await number(pg) == OLD + YOUNG
    await pg.lower_protection("v", "10y")
    assert (await erased(pg, v={**YEAR, "by": "born"})).kept == ()


async def test_times_that_are_missing_or_far_away_are_kept_and_told(pg: Postgres) -> None:
    await run(pg, PLAIN, "UPDATE v SET at = NULL")
    await carried_out(pg, v=TEN)
    (kept,) = (await erased(pg, v=YEAR)).kept
    assert (kept.number, kept.until) == (OLD + YOUNG, None)
    await run(pg, "UPDATE v SET at = '20000-01-01'")
    (kept,) = (await erased(pg, v=YEAR)).kept
    assert kept.until is not None
    assert (kept.number, kept.until.year) == (OLD + YOUNG, 9999)


async def test_every_protection_of_the_family_counts(pg: Postgres) -> None:
    await run(pg, SPLIT)
    await carried_out(pg, v={**TEN, "keep": "20y"})
    await carried_out(pg, v_1={"keep": FOREVER, "tenant": "org"})
    done = await erased(pg, v=YEAR)
    (kept,) = done.kept
    assert (kept.number, kept.until) == (OLD + YOUNG, None)
    assert kept.reason == "it must be kept for 10y, and for ever as public.v_1"
    await pg.lower_protection("v_1", None)
    assert (await erased(pg, v=YEAR)).kept[0].number == YOUNG


async def test_what_the_same_program_declares_for_the_family_counts_at_once(pg: Postgres) -> None:
    """Before a run has recorded it."""
    await run(pg, SPLIT)
    done = await erased(pg, v={**TEN, "tenant": None}, v_1=YEAR)
    assert await number(pg) == YOUNG
    (kept,) = done.kept
    assert (kept.place, kept.reason) == ("table public.v_1", "it must be kept for 10y as public.v")


async def test_a_detached_partition_keeps_its_own_protection(pg: Postgres) -> None:
    await run(pg, SPLIT)
    table = pg.partitioned("v", by="at", every="month", tenant="org")
    await carried_out(pg, v_1={**TEN, "keep": "20y"})
    await run(pg, "ALTER TABLE v DETACH PARTITION v_1", "ALTER TABLE v_1 RENAME TO v_y2010m01")
    assert [one.name for one in (await table.view()).partitions if not one.is_attached]
    (kept,) = (await erased(pg, v=YEAR)).kept
    assert (kept.number, kept.reason) == (YOUNG, "it must be kept for 10y as public.v_1")
    assert await number(pg, "v_y2010m01") == YOUNG


async def test_a_protection_recorded_during_an_erasure_stops_it(
    pg: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run(pg, PLAIN)
    await carried_out(pg, v={**YEAR, "keep": "20y"})
    original = Tally.add

    async def add(self: Tally, connection: Any, place: str, count: int) -> None:
        await original(self, connection, place, count)
        words = "UPDATE faena.retentions SET legal = 'forever' WHERE table_name = 'public.v'"
        if count:
            await connection.execute(words)

    monkeypatch.setattr(Tally, "add", add)
    done = await erased(pg, v=YEAR)
    assert done.erased == {"table public.v": 5}
    assert [one.number for one in done.kept] == [OLD + YOUNG - 5] == [await number(pg)]


# -- archives -------------------------------------------------------------------------------------


@pytest.fixture
async def archived(pg: Postgres, tmp_path: Path) -> dict[str, Any]:
    """Rows of the last days were archived before anybody knew of a law; others are in the table."""
    archive = {**YEAR, "keep": "3d", "then": Archive(to=tmp_path / "archives")}
    await run(pg, PLAIN)
    await carried_out(pg, v=archive)
    return archive


async def objects(pg: Postgres) -> list[bool]:
    """Of each archive, whether its rows are younger than ten years; all their files exist."""
    entries = await pg.archives("v", tenant="a")
    for one in entries:
        assert [chunk async for chunk in open_store(one.store).get(one.key)]
    return sorted(one.last_at > datetime.now(UTC) - timedelta(days=3653) for one in entries)


@pytest.mark.parametrize("change", ["SELECT", "ALTER TABLE v RENAME TO w", "DROP TABLE v"])
async def test_archives_with_protected_rows_stay(
    pg: Postgres, archived: dict[str, Any], change: str
) -> None:
    young = (await objects(pg)).count(True)
    await carried_out(pg, v=TEN)
    await run(pg, change)
    done = await erased(pg, **({} if "v" in change else {"v": archived}))
    assert await objects(pg) == [True] * young
    kept = {one.place: (one.number, one.reason) for one in done.kept}
    assert kept["archives public.v"] == (young, "it must be kept for 10y")


async def test_archives_of_a_renamed_table_are_protected_as_it_is_now(
    pg: Postgres, archived: dict[str, Any]
) -> None:
    young = (await objects(pg)).count(True)
    await run(pg, "ALTER TABLE v RENAME TO w")
    await carried_out(pg, w=TEN)
    done = await erased(pg, w=archived)
    assert await objects(pg) == [True] * young
    kept = {one.place: (one.number, one.reason) for one in done.kept}
    assert kept["archives public.v"] == (young, "it must be kept for 10y as public.w")


async def test_archives_are_not_kept_by_another_table_that_has_the_oid_of_theirs_in_a_copy(
    pg: Postgres, archived: dict[str, Any]
) -> None:
    await run(pg, "CREATE TABLE deeds (id int PRIMARY KEY, org text)")
    await carried_out(pg, deeds={"keep": FOREVER, "tenant": "org"})
    await run(
        pg,
        "UPDATE faena.retentions SET relations = ARRAY['deeds'::regclass::oid], home = 1"
        " WHERE table_name = 'public.v'",
    )
    assert (await erased(pg, v=archived)).kept == ()
    assert await objects(pg) == []


async def test_archives_of_a_partition_are_protected_as_its_table_in_a_copy_too(
    pg: Postgres, tmp_path: Path
) -> None:
    """Identifiers of the first database tell nothing there; names do."""
    archive = {**YEAR, "keep": "3d", "then": Archive(to=tmp_path / "archives")}
    await run(pg, SPLIT)
    await carried_out(pg, v_1=archive)
    young = [one for one in await pg.archives("v_1", tenant="a") if one.last_at.year > 2010]
    await carried_out(pg, v={**TEN, "keep": "20y"})
    await run(pg, "UPDATE faena.retentions SET home = 1")
    done = await erased(pg, v_1=archive)
    kept = {one.place: (one.number, one.reason) for one in done.kept}
    assert kept["archives public.v_1"] == (len(young), "it must be kept for 10y as public.v")
    assert await pg.archives("v_1", tenant="a") == young != []


async def test_archives_by_another_column_than_the_protected_one_stay(
    pg: Postgres, archived: dict[str, Any]
) -> None:
    all_of_them = await objects(pg)
    await carried_out(pg, v={**TEN, "by": "born", "keep": "100y"})
    done = await erased(pg, v=archived)
    assert await objects(pg) == all_of_them
    kept = {one.place: one for one in done.kept}["archives public.v"]
    words = "it must be kept for 10y by the column born, which archives do not tell"
    assert (kept.number, kept.reason, kept.until) == (len(all_of_them), words, None)


async def test_a_protection_recorded_right_before_archives_are_removed_keeps_them(
    pg: Postgres, archived: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the rows are gone, and before the first object is."""
    from faena.pg.erasure.archived import Archived

    original, before = Archived._erase_rows, await objects(pg)

    async def erase_rows(self: Archived, *given: Any) -> None:
        await original(self, *given)
        await run(pg, "UPDATE faena.retentions SET legal = 'forever'")

    monkeypatch.setattr(Archived, "_erase_rows", erase_rows)
    await erased(pg, v=archived)
    assert await objects(pg) == before
    assert await number(pg) == 0
