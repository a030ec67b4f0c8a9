"""Migrations: each step once, in order, and never changed afterwards."""

from __future__ import annotations

import asyncio

import pytest

from faena import Faena
from faena.errors import StoreRejected
from faena.pg import Postgres
from faena.pg.migration import migrate, migrations, pending


async def test_all_steps_are_applied_once(app: Faena, bare_database: str) -> None:
    async with Postgres(app, bare_database) as pg:
        assert await pending(pg) == migrations()
        assert await migrate(pg) == migrations()
        assert await migrate(pg) == []
        assert await pending(pg) == []


async def test_processes_that_migrate_at_once_do_not_disturb_each_other(
    app: Faena, bare_database: str
) -> None:
    async with Postgres(app, bare_database) as pg:
        done = await asyncio.gather(*(migrate(pg) for _ in range(4)))
    assert sorted(one for each in done for one in each) == sorted(migrations())


async def test_a_migration_that_was_changed_is_refused(pg: Postgres) -> None:
    async with pg.transaction() as connection:
        await connection.execute("UPDATE faena.migrations SET digest = 'other' WHERE number = 1")
    with pytest.raises(StoreRejected, match="its text has changed"):
        await migrate(pg)


async def test_a_post_step_needs_its_pre_step(app: Faena, bare_database: str) -> None:
    async with Postgres(app, bare_database) as pg:
        with pytest.raises(StoreRejected, match="must follow its pre step"):
            await migrate(pg, "post")
        assert await pending(pg) == migrations()
