"""What was archived comes back exactly, whatever its types; what is damaged does not come back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from faena import Faena
from faena.errors import ArchiveUnreadable, ArgumentError, StoreRejected
from faena.pg import Archive, Postgres
from faena.pg.archive.content import Packer
from faena.pg.archive.manifest import manifest_key
from faena.pg.archive.store import read_place
from tests._support.object_server import running
from tests._support.search import searching
from tests.pg.test_archive import NOW, PLAIN, partitioned, run

TYPES: dict[str, list[str]] = {
    "boolean": ["true", "false"],
    "smallint": ["-32768"],
    "bigint": ["9223372036854775807"],
    "numeric": ["'NaN'", "'-Infinity'", "1e-130", "12345678901234567890.000100"],
    "numeric(10,2)": ["0.10"],
    "real": ["'NaN'", "'Infinity'", "1.1::real", "'-0'"],
    "double precision": ["'-Infinity'", "0.1", "5e-324", "1.7976931348623157e308"],
    "money": ["'-12.34'"],
    "text": [
        "''",
        "E'a\\n\\t\\\\\"\\'\\x01'",
        "'ñ€😀 '",
        "'null'",
        "'\\N'",
        "repeat('long', 9000)",
    ],
    "varchar(5)": ["'ab  '"],
    "char(5)": ["'ab'"],
    '"char"': ["'x'"],
    "name": ["'nom'"],
    "bytea": ["'\\x'", "'\\x00ff5c27'"],
    "date": ["'infinity'", "'0044-03-15 BC'", "'9999-12-31'"],
    "time": ["'24:00'", "'01:02:03.000004'"],
    "timetz": ["'12:00-03'"],
    "timestamp": ["'-infinity'", "'2025-01-01 00:00:00.000001'"],
    "timestamptz": ["'infinity'", "'0001-01-01 00:00+00 BC'", "'2025-01-01 00:00-03'"],
    "interval": ["'1 year -2 mons 3 days -04:05:06.7'", "'-1 day +1 second'"],
    "uuid": ["gen_random_uuid()"],
    "json": ['E\'{"a":  [1.0, null],\\n"a": "\\\\u0041"}\'', "'null'", "'\"x\"'"],
    "jsonb": ['\'{"a": 1.10, "b": "\\\\\\\\"}\'', "'null'"],
    "inet": ["'10.0.0.1'", "'::1/64'"],
    "cidr": ["'10.0.0.0/8'"],
    "macaddr": ["'08:00:2b:01:02:03'"],
    "bit(3)": ["B'101'"],
    "bit varying": ["B''", "B'1'"],
    "point": ["'(0.1,-1e300)'"],
    "polygon": ["'((0,0),(1,1),(1,0))'"],
    "circle": ["'<(0,0),1.5>'"],
    "tsvector": ["to_tsvector('a fat cat''s')"],
    "tsquery": ["'fat & (rat | !cat)'"],
    "int4range": ["'[1,5)'", "'empty'", "'(,)'"],
    "tstzrange": ["'[2025-01-01 00:00+00,infinity)'"],
    "nummultirange": ["'{[1.0,2],(3,4.50)}'"],
    "int[]": ["'{}'", "'{{1,2},{3,NULL}}'", "'[0:1]={1,2}'"],
    "text[]": ["ARRAY['a,b', 'c\"d', NULL, 'null', '', E'\\\\']"],
    "jsonb[]": ["ARRAY['{\"a\": 1}'::jsonb, NULL]"],
    "timestamptz[]": ["ARRAY['2025-01-01 00:00+00'::timestamptz]"],
    "mood": ["'very happy'"],
    "positive": ["7"],
    "pair": ["ROW(1, 'a,\"b')::pair", "ROW(NULL, NULL)::pair", "ROW(2, '')::pair"],
    "pair[]": ["ARRAY[ROW(1, 'x')::pair, NULL]"],
    "pg_lsn": ["'16/B374D848'"],
    "xid8": ["'18446744073709551615'"],
    "jsonpath": ["'$.a[*] ? (@ > 1)'"],
}


def wide(name: str) -> str:
    columns = ", ".join(f'"c{n}" {type_}' for n, type_ in enumerate(TYPES))
    return (
        f"CREATE TABLE {name} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
        f" created_at timestamptz NOT NULL, {columns}, line text, r int, faena_slice text,"
        f" twice numeric GENERATED ALWAYS AS (c3 * 2) STORED)"
    )


FILL = [
    f"INSERT INTO wide (created_at, \"c{n}\") VALUES ('2025-01-01 00:00+00', {value})"
    for n, values in enumerate(TYPES.values())
    for value in ["NULL", *values]
]
PREPARED = (
    "CREATE TYPE mood AS ENUM ('sad', 'very happy')",
    "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
    "CREATE TYPE pair AS (n int, t text)",
)


@pytest.mark.parametrize("kind", ["directory", "bucket"])
async def test_every_type_comes_back_exactly(pg: Postgres, tmp_path: Path, kind: str) -> None:
    with running() as server:
        to: Any = tmp_path if kind == "directory" else server.bucket("types", "cold")
        await run(pg, *PREPARED, wide("wide"), wide("back"), *FILL)
        before = await run(pg, "SELECT w::text FROM wide w ORDER BY 1")
        assert len(before) > 120
        async with pg.transaction() as connection:  # whatever the database's own settings are
            (name,) = await (await connection.execute("SELECT current_database()")).fetchone() or ()
            for one in ("TimeZone TO 'America/Argentina/Buenos_Aires'", "DateStyle TO 'SQL, DMY'",
                        "IntervalStyle TO 'sql_standard'", "bytea_output TO 'escape'",
                        "extra_float_digits TO 0"):  # fmt: skip
                await connection.execute(f"ALTER DATABASE {name} SET {one}".encode())
        await pg.close()
        pg.retain("wide", keep="5d", then=Archive(to=to, rows=50))
        (done,) = await pg.archive(at=NOW)
        assert (done.rows, done.problem) == (len(before), None)
        restored = await pg.restore("wide", into="back")
        assert (restored.rows, restored.skipped) == (len(before), 0)
        await run(pg, f"ALTER DATABASE {name} RESET ALL")
        await pg.close()
        assert await run(pg, "SELECT b::text FROM back b ORDER BY 1") == before
        again = await pg.restore("wide", into="back")
        assert (again.rows, again.skipped) == (0, len(before))
        assert await run(pg, "SELECT count(*) FROM wide") == [(0,)]


texts = st.none() | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
rows = st.tuples(
    texts,
    st.none() | st.floats(),
    st.none() | st.just(Decimal("NaN")) | st.decimals(allow_nan=False),
    st.none() | st.binary(max_size=20),
    st.none() | st.lists(texts, max_size=3),
    texts,
)


@pytest.fixture(scope="module")
def fuzzed(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    name = f"fuzzed_{tmp_path_factory.getbasetemp().name.replace('-', '_')}".lower()
    url = cluster.create(name, "migrated")
    table = "(id int PRIMARY KEY, t text, f float, n numeric, b bytea, a text[], org text, at date)"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE fuzz {table}; CREATE TABLE back {table}".encode())
    yield url, tmp_path_factory.mktemp("fuzzed")
    cluster.drop(name)


@given(some=st.lists(rows, min_size=1, max_size=30))
@searching(12, 300)
def test_any_values_come_back_exactly(fuzzed: tuple[str, Path], some: list[Any]) -> None:
    url, folder = fuzzed

    async def work() -> None:
        async with Postgres(Faena("fuzz"), url) as pg:
            pg.retain("fuzz", by="at", keep="5d", tenant="org", then=Archive(to=folder, rows=7))
            assert (await pg.archive(at=NOW))[0].problem is None
            await pg.restore("fuzz", into="back")

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("TRUNCATE fuzz, back, faena.archives")
        for number, one in enumerate(some):
            connection.execute(
                "INSERT INTO fuzz VALUES (%s, %s, %s, %s, %s, %s, %s, '2025-01-01')",
                [number, *one],
            )
        before = connection.execute("SELECT fuzz::text FROM fuzz ORDER BY id").fetchall()
        asyncio.run(work())
        assert connection.execute("SELECT count(*) FROM fuzz").fetchone() == (0,)
        assert connection.execute("SELECT back::text FROM back ORDER BY id").fetchall() == before


# -- where to -------------------------------------------------------------------------------------


@pytest.fixture
async def visits(pg: Postgres, tmp_path: Path) -> Path:
    """A table of which 120 rows were archived; where to."""
    await run(pg, PLAIN, "CREATE TABLE back (LIKE visits INCLUDING ALL)")
    pg.retain("visits", by="at", keep="5d", tenant="org", then=Archive(to=tmp_path, rows=50))
    assert (await pg.archive(at=NOW))[0].rows == 120
    return tmp_path


async def test_one_tenant_and_a_range_of_time_are_restored(pg: Postgres, visits: Path) -> None:
    since, until = datetime(2025, 2, 20, tzinfo=UTC), datetime(2025, 2, 22, tzinfo=UTC)
    restored = await pg.restore("visits", into="back", tenant="o1", since=since, until=until)
    assert await run(pg, "SELECT count(*), min(org), max(org) FROM back") == [
        (restored.rows, "o1", "o1")
    ]
    assert await run(pg, "SELECT min(at) >= '2025-02-20', max(at) < '2025-02-22' FROM back") == [
        (True, True)
    ]


async def test_rows_come_home_only_if_their_policy_keeps_them(
    pg: Postgres, database: str, visits: Path
) -> None:
    with pytest.raises(StoreRejected, match="would be archived again by its policy"):
        await pg.restore("visits")
    assert await run(pg, "SELECT count(*) FROM visits") == [(120,)]
    async with Postgres(pg.app, database) as later:
        later.retain("visits", by="at", keep="50y", tenant="org", then=Archive(to=visits))
        restored = await later.restore("visits")
        assert (restored.rows, restored.table) == (120, "public.visits")
        assert await run(pg, "SELECT count(*) FROM visits") == [(240,)]
        assert await later.archives("visits") == []
        assert (await later.restore("visits")).objects == 0
        (view,) = await later.retention_views()
        assert (view.rows, view.objects, view.size) == (0, 0, 0)


async def test_a_row_that_is_there_already_keeps_an_archive_from_coming_home(
    pg: Postgres, database: str, visits: Path
) -> None:
    await run(pg, "INSERT INTO visits VALUES (240, 'o0', now(), 'another')")
    async with Postgres(pg.app, database) as later:
        with pytest.raises(StoreRejected, match=r"are in public\.visits already"):
            await later.restore("visits")
    assert await run(pg, "SELECT note FROM visits WHERE id = 240") == [("another",)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("ALTER TABLE back DROP note", r"differs in note \(text archived, none in the table\)"),
        ("ALTER TABLE back ALTER id TYPE bigint", r"id \(integer archived, bigint in the table\)"),
        ("ALTER TABLE back DROP CONSTRAINT back_pkey", "must have a primary key"),
        ("DROP TABLE back", "table back does not exist"),
    ],
)
async def test_a_table_of_another_shape_is_refused(
    pg: Postgres, visits: Path, change: str, words: str
) -> None:
    await run(pg, change)
    with pytest.raises(Exception, match=words):
        await pg.restore("visits", into="back")


async def test_columns_may_be_in_another_order(pg: Postgres, visits: Path) -> None:
    await run(
        pg,
        "DROP TABLE back",
        "CREATE TABLE back (note text, at timestamptz, org text, id int PRIMARY KEY)",
    )
    assert (await pg.restore("visits", into="back")).rows == 120


def harmed(kind: str, path: Path, manifest: Path) -> None:
    match kind:
        case "truncated":
            path.write_bytes(path.read_bytes()[:-1])
        case "missing":
            path.unlink()
        case "manifest missing":
            manifest.unlink()
        case "manifest changed":
            manifest.write_text(manifest.read_text().replace('"rows": ', '"rows": 1'))
        case _:
            blob = bytearray(path.read_bytes())
            blob[len(blob) // 2] ^= 64
            path.write_bytes(bytes(blob))


@pytest.mark.parametrize(
    "harm", ["truncated", "changed", "missing", "manifest missing", "manifest changed"]
)
async def test_an_archive_that_is_damaged_is_told_and_not_restored(
    pg: Postgres, visits: Path, harm: str
) -> None:
    assert (await pg.verify_archives("visits")).problems == ()
    one = (await pg.archives("visits", tenant="o1"))[-1]
    folder = read_place(one.store)
    assert isinstance(folder, Path)
    harmed(harm, folder / one.key, folder / manifest_key(one.key))
    checked = await pg.verify_archives("visits")
    assert (len(checked.problems), checked.rows) == (1, 120 - one.rows)
    assert checked.objects == len(await pg.archives("visits")) - 1
    stem = one.key.removesuffix(".jsonl.zst")
    assert stem in checked.problems[0]
    with pytest.raises(ArchiveUnreadable, match=stem):
        await pg.restore("visits", into="back", tenant=one.tenant, since=one.last_at)
    assert await run(pg, "SELECT count(*) FROM back") == [(0,)]


async def test_rows_that_postgresql_reads_otherwise_are_not_restored(
    pg: Postgres, visits: Path
) -> None:
    """Somebody has changed an object, its manifest and its checksum in the catalogue."""
    one = (await pg.archives("visits", tenant="o1"))[-1]
    path, manifest = visits / one.key, visits / manifest_key(one.key)
    lines = zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())
    packer = Packer()
    packer.add([line.replace(b'"o1"', b'"oo"') for line in lines.splitlines()])
    forged = packer.finish()
    path.write_bytes(forged.blob)
    manifest.write_text(manifest.read_text().replace(one.sha256, forged.sha256))
    await run(pg, f"UPDATE faena.archives SET sha256 = '{forged.sha256}' WHERE id = {one.id}")
    with pytest.raises(ArchiveUnreadable, match="PostgreSQL reads others"):
        await pg.restore("visits", into="back", tenant="o1", since=one.last_at)
    assert await run(pg, "SELECT count(*) FROM back") == [(0,)]
    assert len((await pg.verify_archives("visits")).problems) == 1


async def test_objects_that_nobody_knows_are_told(pg: Postgres, visits: Path) -> None:
    (visits / "public.visits/t-o1/2025-02-20/stray.jsonl.zst").write_bytes(b"")
    for name in ("alone.json", "stray.txt"):
        (visits / "public.visits" / name).write_bytes(b"")
    checked = await pg.verify_archives("visits")
    assert checked.unknown == (
        "public.visits/alone.json",
        "public.visits/stray.txt",
        "public.visits/t-o1/2025-02-20/stray.jsonl.zst",
    )
    assert (await pg.verify_archives("visits", tenant="o2")).unknown == ()


async def test_a_store_that_loses_bytes_deletes_nothing(
    pg: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from faena.pg.archive.directory import DirectoryStore

    await partitioned(pg)
    await run(pg, PLAIN)
    for table in ("visits", "pings"):
        pg.retain(table, by="at", keep="5d", then=Archive(to=tmp_path))
    original = DirectoryStore.put

    async def put(self: Any, key: str, blob: bytes) -> None:
        await original(self, key, blob if key.endswith(".json") else blob[:-3])

    monkeypatch.setattr(DirectoryStore, "put", put)
    done = await pg.archive(at=NOW)
    assert all("truncated, damaged or changed" in (one.problem or "") for one in done)
    for table in ("visits", "pings"):
        assert await run(pg, f"SELECT count(*) FROM {table}") == [(240,)]
        assert await pg.archives(table) == []


async def test_a_table_without_retention_and_archives_is_refused(
    pg: Postgres, visits: Path
) -> None:
    expected = r"table must be one that has a retention or archives, got 'visit'; did you mean"
    for call in (pg.archives("visit"), pg.verify_archives("visit"), pg.restore("visit")):
        with pytest.raises(ArgumentError, match=expected):
            await call
    pg.retentions.clear()  # another program, which declares none
    await run(pg, "DROP TABLE visits")
    assert await pg.archives("visits")


@pytest.mark.parametrize("at", ["2023", datetime(2023, 1, 1)])  # noqa: DTZ001 - it is refused
async def test_an_instant_must_have_a_time_zone(pg: Postgres, at: Any) -> None:
    for field in ("since", "until"):
        with pytest.raises(ArgumentError, match=f"{field} must be a datetime with a time zone"):
            await pg.archives("visits", **{field: at})
