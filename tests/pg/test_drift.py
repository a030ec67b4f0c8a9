"""A schema that somebody has changed by hand is told by every name, and left as it is."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from faena import Faena
from faena.errors import StoreRejected
from faena.pg import Connection, Postgres
from faena.pg.drift import drift
from faena.pg.migration import migrate, migrations


async def run(pg: Postgres, words: str) -> None:
    async with pg.transaction() as connection:
        await connection.execute(words.encode())


async def told(pg: Postgres) -> list[str]:
    return [str(one) for one in await drift(pg)]


async def test_what_the_migrations_made_is_no_drift(pg: Postgres) -> None:
    assert await drift(pg) == []
    await run(pg, "CREATE TABLE mine (id int); CREATE SCHEMA other; CREATE TABLE other.outbox ()")
    assert await drift(pg) == []


async def test_a_database_without_migrations_or_with_some_of_them_has_none(
    app: Faena, bare_database: str
) -> None:
    async with Postgres(app, bare_database, relay=False) as pg:
        assert await drift(pg) == []
        await migrate(pg, "pre")
        assert await drift(pg) == []
        assert "post" in {one.step for one in migrations()}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("ALTER TABLE faena.outbox ADD COLUMN extra int", ["column outbox.extra is extra"]),
        ("ALTER TABLE faena.effects DROP COLUMN result", ["column effects.result is missing"]),
        (
            "ALTER TABLE faena.effects ALTER attempt TYPE bigint",
            ["column effects.attempt is changed"],
        ),
        (
            "ALTER TABLE faena.effects ALTER attempt SET DEFAULT 1",
            ["column effects.attempt is changed"],
        ),
        (
            "ALTER TABLE faena.effects ALTER attempt DROP NOT NULL",
            ["column effects.attempt is changed"],
        ),
        (
            "CREATE INDEX mine ON faena.effects (attempt)",
            ["index mine is extra"],
        ),
        (
            "DROP INDEX faena.effects_committed_at",
            ["index effects_committed_at is missing"],
        ),
        (
            "ALTER TABLE faena.conversions DROP CONSTRAINT conversions_step_check",
            ["constraint conversions.conversions_step_check is missing"],
        ),
        (
            "ALTER TABLE faena.effects ADD CONSTRAINT mine CHECK (attempt > 0) NOT VALID",
            ["constraint effects.mine is extra"],
        ),
        (
            (
                "ALTER TABLE faena.effects ENABLE ROW LEVEL SECURITY;"
                " CREATE POLICY mine ON faena.effects USING (attempt > 1)"
            ),
            ["policy effects.mine is extra", "table effects is changed"],
        ),
        ("CREATE TABLE faena.mine (id int PRIMARY KEY)", ["table mine is extra"]),
        ("DROP TABLE faena.conversions", ["table conversions is missing"]),
        ("CREATE VIEW faena.seen AS SELECT 1 AS one", ["view seen is extra"]),
        ("CREATE TYPE faena.mood AS ENUM ('good')", ["type mood is extra"]),
        (
            (
                "CREATE FUNCTION faena.mine() RETURNS int LANGUAGE sql AS 'SELECT 1';"
                " CREATE RULE quiet AS ON DELETE TO faena.effects DO INSTEAD NOTHING"
            ),
            ["function mine() is extra", "rule effects.quiet is extra"],
        ),
        (
            (
                "DO $$BEGIN EXECUTE format('ALTER FUNCTION %s COST 7', min(oid)::regprocedure)"
                " FROM pg_proc WHERE pronamespace = 'faena'::regnamespace; END$$"
            ),
            ["is changed"],
        ),
    ],
)
async def test_a_change_by_hand_is_told_by_name(
    pg: Postgres, change: str, words: list[str]
) -> None:
    await run(pg, change)
    found = await told(pg)
    assert len(found) == len(words), found
    assert all(one.endswith(word) for one, word in zip(found, words, strict=True)), found
    assert await told(pg) == found  # the look has left everything as it was


async def test_partitions_that_come_and_go_are_no_drift(pg: Postgres) -> None:
    for name, month in (("history_first", 1), ("history_y2025m02", 2)):
        await run(
            pg,
            f"CREATE TABLE faena.{name} PARTITION OF faena.history"
            f" FOR VALUES FROM ('2025-0{month}-01') TO ('2025-0{month + 1}-01')",
        )
    assert await drift(pg) == []
    await run(pg, "ALTER TABLE faena.history DETACH PARTITION faena.history_y2025m02")
    assert await drift(pg) == []
    await run(pg, "ALTER TABLE faena.history DETACH PARTITION faena.history_first")
    assert await told(pg) == ["table history_first is extra"]


async def test_the_look_disturbs_nobody_who_uses_the_schema(pg: Postgres) -> None:
    async with pg.transaction() as busy:
        await busy.execute("LOCK TABLE faena.outbox, faena.effects IN ROW EXCLUSIVE MODE")
        await busy.execute("INSERT INTO faena.effects (queue, job, attempt) VALUES ('q', 'j', 1)")
        looks = asyncio.gather(*(drift(pg) for _ in range(3)))
        while not looks.done():
            await _use(busy)
        assert await looks == [[], [], []]


async def _use(connection: Connection) -> None:
    found = await connection.execute("SELECT count(*) FROM faena.effects")
    assert await found.fetchone() == (1,)
    await asyncio.sleep(0)


async def test_who_does_not_own_the_schema_is_told_so(
    app: Faena, pg: Postgres, database: str
) -> None:
    role = f"guest_{datetime.now(UTC):%H%M%S%f}"
    await run(pg, f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA faena TO {role}")
    await run(pg, f"GRANT SELECT ON faena.migrations TO {role}")
    async with Postgres(app, database.replace("postgres@", f"{role}@"), relay=False) as guest:
        with pytest.raises(StoreRejected, match="must be owner of schema faena"):
            await drift(guest)
    await run(pg, f"DROP OWNED BY {role}; DROP ROLE {role}")
