"""Migrations of the schema `faena`, each in two steps.

    0001_outbox.pre.sql      before new programs start: what they need is added
    0001_outbox.post.sql     when no old program runs any more: what only they needed is removed

Programs of the release before run beside the pre step. A step is applied once, in one transaction
with its record, by one process at a time. What was applied must not change: its text is compared.
"""

from __future__ import annotations

import hashlib
import importlib.resources
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from faena.errors import ConfigError, StoreRejected, shown
from faena.pg.postgres import Connection, Postgres

Step: TypeAlias = Literal["pre", "post"]

LOCK: Final = 0x6661656E61
"""Only one process migrates at a time."""
RECORDS: Final = """
    CREATE SCHEMA IF NOT EXISTS faena;
    CREATE TABLE IF NOT EXISTS faena.migrations (
        number integer NOT NULL,
        step text NOT NULL CHECK (step IN ('pre', 'post')),
        name text NOT NULL,
        digest text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (number, step)
    );
"""


class Migration(NamedTuple):
    """One step of one migration."""

    number: int
    step: Step
    name: str
    sql: str

    @property
    def digest(self) -> str:
        """Of its text."""
        return hashlib.sha256(self.sql.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"{self.number:04d}_{self.name}.{self.step}"


def migrations() -> list[Migration]:
    """Those of this release, in the order in which they are applied."""
    folder = importlib.resources.files("faena.pg").joinpath("sql")
    found: list[Migration] = []
    for file in folder.iterdir():
        stem, _, step = file.name.removesuffix(".sql").rpartition(".")
        if step in {"pre", "post"}:
            number, _, name = stem.partition("_")
            found.append(Migration(int(number), step, name, file.read_text()))  # pyright: ignore[reportArgumentType]
    return sorted(found, key=lambda one: (one.number, one.step == "post"))


async def migrate(
    pg: Postgres, step: Step | None = None, report: Callable[[Migration], None] | None = None
) -> list[Migration]:
    """Apply what is missing: all of it, or one kind of step; returns what was applied."""
    if step not in {None, "pre", "post"}:
        raise ConfigError(f"step must be pre or post, got {shown(step)}", field="step", value=step)
    done: list[Migration] = []
    for one in migrations():
        if step in {None, one.step} and await _apply(pg, one):
            done.append(one)
            if report is not None:
                report(one)
    return done


async def _apply(pg: Postgres, one: Migration) -> bool:
    async with pg.transaction("migrate") as connection:
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        await connection.execute(RECORDS)
        if await _is_applied(connection, one):
            return False
        if one.step == "post":
            await _refuse_without_pre(connection, one)
        await connection.execute(one.sql.encode())
        await connection.execute(
            "INSERT INTO faena.migrations (number, step, name, digest) VALUES (%s, %s, %s, %s)",
            [one.number, one.step, one.name, one.digest],
        )
    return True


async def _is_applied(connection: Connection, one: Migration) -> bool:
    found = await connection.execute(
        "SELECT digest FROM faena.migrations WHERE number = %s AND step = %s",
        [one.number, one.step],
    )
    row = await found.fetchone()
    if row and row[0] != one.digest:
        raise StoreRejected(
            f"migration {one} must be the one that was applied, but its text has changed: install "
            f"the release that wrote this database, or a later one",
            op="migrate",
        )
    return row is not None


async def _refuse_without_pre(connection: Connection, one: Migration) -> None:
    found = await connection.execute(
        "SELECT 1 FROM faena.migrations WHERE number = %s AND step = 'pre'", [one.number]
    )
    if await found.fetchone() is None:
        raise StoreRejected(f"migration {one} must follow its pre step", op="migrate")


async def pending(pg: Postgres) -> Sequence[Migration]:
    """What is missing in the database."""
    async with pg.transaction("migrations") as connection:
        known = await applied(connection) if await exists(connection) else []
    return [one for one in migrations() if one not in known]


async def exists(connection: Connection) -> bool:
    """Whether any migration was applied."""
    found = await connection.execute("SELECT to_regclass('faena.migrations') IS NOT NULL")
    row = await found.fetchone()
    return bool(row and row[0])


async def applied(connection: Connection) -> list[Migration]:
    """Those of this release that the database has."""
    return [one for one in migrations() if await _is_applied(connection, one)]
