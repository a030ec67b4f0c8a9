"""Which rights a role needs, as the page on connections lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from faena import Faena
from faena.errors import StoreRejected
from faena.pg import Connection, Postgres
from tests._support.eventually import eventually
from tests._support.working import Working

PAGE = Path(__file__).resolve().parents[2] / "docs" / "postgres-connections.md"
BLOCKS = re.findall(r"```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def grants(role: str) -> str:
    """The statements of the page for a role."""
    return next(one for one in BLOCKS if f" TO {role};" in one)


@pytest.fixture
def roles(database: str) -> Iterator[dict[str, str]]:
    """The URLs of a web role and a worker's role, with the rights that the page gives them."""
    number = re.sub(r"\W", "", database.partition("/test_")[2].partition("?")[0])
    names = {one: f"{one}_{number}" for one in ("shop_web", "shop_worker")}
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY)")
        for role, name in names.items():
            connection.execute(f"CREATE ROLE {name} LOGIN".encode())
            connection.execute(f"GRANT INSERT, SELECT ON orders TO {name}".encode())
            connection.execute(grants(role).replace(role, name).encode())
        yield {one: database.replace("postgres@", f"{name}@") for one, name in names.items()}
        for name in names.values():
            connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())


async def test_a_web_role_enqueues_and_a_workers_role_runs_the_jobs(
    app: Faena, pg: Postgres, roles: dict[str, str], working: Working
) -> None:
    del app.attachments[Postgres]
    worker = Postgres(app, roles["shop_worker"])
    ran: list[int] = []

    @app.queue("orders").task
    @worker.effect
    async def ship(transaction: Connection, number: int) -> int:
        await transaction.execute("INSERT INTO orders VALUES (%s)", [number])
        ran.append(number)
        return number

    await worker.outbox.publish()
    async with Postgres(app, roles["shop_web"], relay=False) as web, worker:
        async with web.transaction() as connection:
            for _ in range(2):  # the second one reads what is there
                await web.outbox.enqueue(connection, ship, 1, id="first")
            await web.outbox.enqueue_many(connection, ship, [2, 3])
            await connection.execute("SELECT faena.enqueue('orders', 'ship', '4')")
        async with working(app):
            await eventually(lambda: sorted(ran) == [1, 2, 3, 4])
            await eventually(lambda: _is_empty(worker))


async def _is_empty(pg: Postgres) -> bool:
    view = await pg.outbox.view()
    return (view.pending, view.sent, view.refused) == (0, 0, 0)


async def test_who_lacks_a_right_is_told_where_to_read_which(
    app: Faena, database: str, roles: dict[str, str]
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        name = roles["shop_web"].partition("://")[2].partition("@")[0]
        connection.execute(f"REVOKE USAGE ON SCHEMA faena FROM {name}".encode())

    @app.queue("orders").task
    async def ship(number: int) -> None: ...

    async with Postgres(app, roles["shop_web"], relay=False) as web:

        async def enqueue() -> Any:
            async with web.transaction() as connection:
                return await web.outbox.enqueue(connection, ship, 1)

        with pytest.raises(StoreRejected, match=r"permission denied .*postgres-connections\.md"):
            await enqueue()
