"""What must not leave does not: policies, tables and changes of code that are refused."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from faena import Faena
from faena.errors import ArgumentError, ConfigError, StoreRejected
from faena.pg import FOREVER, Archive, Postgres
from tests.pg.test_archive import NOW, PLAIN, run


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(to=tmp_path / "archives", rows=37)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keep": "5d"}, "then of t must be Archive"),
        ({"keep": "5d", "then": "drop"}, "then of t must be Archive"),
        ({"keep": FOREVER, "then": "delete"}, "must not be given with keep=FOREVER"),
        ({"keep": "9y", "legal": "10y", "then": "delete"}, "shorter than its legal minimum of 10y"),
        ({"keep": "3650d", "legal": "10y", "then": Archive()}, "shorter than its legal minimum"),
        ({"keep": "365d", "legal": "1y", "then": Archive()}, "shorter than its legal minimum"),
        ({"keep": "10y", "legal": FOREVER, "then": "delete"}, "minimum of forever"),
        ({"keep": "5h", "then": "delete"}, "keep must be whole days"),
        ({"keep": 5, "then": "delete"}, "keep must be whole days"),
        ({"keep": timedelta(hours=30), "then": "delete"}, "keep must be whole days"),
        ({"keep": "0d", "then": "delete"}, "keep must be whole days"),
        ({"keep": "5d", "then": "delete", "every": "year"}, "every must be month"),
        ({"keep": "5d", "then": "delete", "by": ""}, "by must be the name of a column"),
        ({"keep": "5d", "then": "detach", "aggregate": "SELECT 1"}, "only where rows are deleted"),
        ({"keep": "5d", "then": "delete", "aggregate": 5}, "aggregate must be SQL or an async"),
        ({"keep": "5d", "then": "delete", "tenat": "x"}, "did you mean 'tenant'"),
        ({"then": "delete"}, "keep must be given"),
    ],
)  # fmt: skip
def test_a_policy_that_makes_no_sense_is_refused(
    app: Faena, options: dict[str, Any], words: str
) -> None:
    pg = Postgres(app, "postgresql://postgres@127.0.0.1:1/none")
    with pytest.raises(ConfigError, match=words):
        pg.retain("t", **options)
    assert pg.retentions == {}


def test_a_table_has_one_policy(app: Faena) -> None:
    pg = Postgres(app, "postgresql://postgres@127.0.0.1:1/none")
    pg.retain("ratings", keep=FOREVER)
    pg.partitioned("pings", by="at", every="day")
    with pytest.raises(ConfigError, match="by of pings must be at, the column of its partitions"):
        pg.retain("pings", by="seen_at", keep="5d", then="delete")
    with pytest.raises(ConfigError, match="declared twice"):
        pg.retain("ratings", keep="2y", then="delete")
    with pytest.raises(ConfigError, match="did you mean 'ratings'"):
        pg.retention("rating")


REFUSED = {
    "table nobody does not exist": ("SELECT 1", "nobody", {}),
    "must be one of its columns, got att; did you mean 'at'": ("SELECT 1", "visits", {"by": "att"}),
    "by of public.visits must be a date or a timestamp, got note, which is text": (
        "SELECT 1", "visits", {"by": "note"},
    ),
    "tenant of public.visits must be one of its columns, got orga": (
        "SELECT 1", "visits", {"tenant": "orga"},
    ),
    "must have a primary key": ("ALTER TABLE visits DROP CONSTRAINT visits_pkey", "visits", {}),
    "must be partitioned for then='detach'": ("SELECT 1", "visits", {"then": "detach"}),
    "foreign key parts_visit_fkey of parts would delete": (
        "CREATE TABLE parts (visit int REFERENCES visits ON DELETE CASCADE)", "visits", {},
    ),
    "must have no tables that inherit from it": (
        "CREATE TABLE more (x int) INHERITS (visits)", "visits", {},
    ),
    "must be a table, and is none": ("CREATE VIEW seen AS TABLE visits", "seen", {}),
    "violates foreign key constraint": (
        "CREATE TABLE parts (visit int REFERENCES visits); INSERT INTO parts VALUES (239)",
        "visits", {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
async def test_a_table_whose_rows_cannot_leave_safely_is_refused(
    pg: Postgres, archive: Archive, words: str
) -> None:
    statement, table, options = REFUSED[words]
    await run(pg, PLAIN, statement)
    pg.retain(table, **{"by": "at", "keep": "9d", "then": archive, **options})
    (done,) = await pg.archive(at=NOW)
    assert words in (done.problem or "")
    assert await run(pg, "SELECT count(*) FROM visits") == [(240,)]


async def test_rows_that_row_level_security_hides_are_not_lost(
    pg: Postgres, database: str, archive: Archive
) -> None:
    await run(
        pg,
        PLAIN,
        "ALTER TABLE visits ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY mine ON visits USING (org = 'o1')",
        "DROP ROLE IF EXISTS archivist_of_tests",
        "CREATE ROLE archivist_of_tests LOGIN",
        "GRANT ALL ON visits TO archivist_of_tests",
        "GRANT USAGE ON SCHEMA faena TO archivist_of_tests",
        "GRANT ALL ON ALL TABLES IN SCHEMA faena TO archivist_of_tests",
    )
    try:
        async with Postgres(pg.app, database.replace("postgres@", "archivist_of_tests@")) as other:
            other.retain("visits", by="at", keep="5d", then=archive)
            (done,) = await other.archive(at=NOW)
        assert "row-level security" in (done.problem or "")
        assert await run(pg, "SELECT count(*) FROM visits") == [(240,)]
    finally:
        await run(pg, "DROP OWNED BY archivist_of_tests", "DROP ROLE archivist_of_tests")


# -- what the law keeps ---------------------------------------------------------------------------


async def test_a_later_change_of_code_cannot_delete_what_is_protected(
    pg: Postgres, database: str, archive: Archive
) -> None:
    await run(pg, PLAIN)
    pg.retain("visits", by="at", keep="10y", legal="10y", then=archive)
    assert (await pg.archive(at=NOW))[0].problem is None
    for change in ({"keep": "5d"}, {"keep": "9y", "legal": "9y"}):
        async with Postgres(pg.app, database) as later:
            later.retain("visits", by="at", then="delete", **change)
            (done,) = await later.archive(at=NOW)
            assert "rows of public.visits are protected for 10y" in (done.problem or "")
            assert await run(pg, "SELECT count(*) FROM visits") == [(240,)]
    async with Postgres(pg.app, database) as later:
        later.retain("visits", by="at", keep="5d", then="delete")
        assert await later.lower_protection("visits", "3d") == "public.visits"
        assert (await later.archive(at=NOW))[0].rows == 120
        with pytest.raises(ArgumentError, match="table x does not exist"):
            await later.lower_protection("x", None)


async def test_a_policy_that_keeps_longer_does_not_lower_the_protection(
    pg: Postgres, database: str
) -> None:
    await run(pg, PLAIN)
    pg.retain("visits", by="at", keep="10y", legal="10y", then="delete")
    assert (await pg.archive(at=NOW))[0].problem is None
    for keep, is_refused in (("20y", False), ("5d", True)):
        async with Postgres(pg.app, database) as later:
            later.retain("visits", by="at", keep=keep, then="delete")
            (done,) = await later.archive(at=NOW)
            assert (done.problem is not None) == is_refused
    assert await run(pg, "SELECT count(*) FROM visits") == [(240,)]


async def test_what_is_kept_for_ever_stays_so_when_the_code_changes(
    pg: Postgres, database: str
) -> None:
    await run(pg, PLAIN)
    pg.retain("visits", keep=FOREVER)
    (done,) = await pg.archive(at=NOW)
    assert (done.rows, done.problem) == (0, None)
    async with Postgres(pg.app, database) as later:
        later.retain("visits", by="at", keep="100y", then="delete")
        (done,) = await later.archive(at=NOW)
        assert "protected for ever" in (done.problem or "")
        await run(pg, "CREATE TABLE other (id int)")
        with pytest.raises(StoreRejected, match=r"no protection of public\.other is recorded"):
            await later.lower_protection("other", None)
