"""SQLAlchemy and Django as producers: the examples of docs/outbox.md, with the real libraries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connections, transaction
from django.db import connection as django_connection
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import NullPool

from faena import Faena, Task
from faena.errors import PayloadError, StoreRejected
from faena.pg import Postgres
from tests._support.django_settings import configure
from tests._support.eventually import eventually
from tests._support.working import Working
from tests.fundamentals.test_docs import blocks_of

PAGE = Path(__file__).parents[2] / "docs" / "outbox.md"


@dataclass
class Order:
    id: str
    shop: str


class Base(DeclarativeBase):
    """The tables of the shop."""


class OrderRow(Base):
    __tablename__ = "orders"

    id: Mapped[str] = mapped_column(primary_key=True)


class Shop:
    """What the examples find around them."""

    def __init__(self, pg: Postgres, issue: Task[Order, None], ran: list[str], url: str) -> None:
        self.pg, self.issue, self.ran, self.url = pg, issue, ran, url

    def example(self, file: str) -> Callable[..., None]:
        """The function `buy` of a block of the page."""
        (block,) = [one for one in blocks_of(PAGE) if one.file == file]
        names = {"pg": self.pg, "issue": self.issue, "Order": Order, "OrderRow": OrderRow}
        exec(compile(block.text, file, "exec"), names)
        buy: Any = names["buy"]
        return buy

    async def kept(self) -> list[tuple[Any, ...]]:
        """Orders and jobs, each by its number of rows."""
        async with self.pg.transaction() as connection:
            found = await connection.execute(
                "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM faena.outbox)"
            )
            return await found.fetchall()


@pytest.fixture
async def shop(app: Faena, pg: Postgres, database: str) -> Shop:
    ran: list[str] = []

    @app.queue("invoices").task
    async def issue(order: Order) -> None:
        ran.append(order.id)

    async with pg.transaction() as connection:
        await connection.execute("CREATE TABLE orders (id text PRIMARY KEY)")
    await pg.outbox.publish()
    return Shop(pg, issue, ran, database)


def with_sqlalchemy(shop: Shop, work: Callable[[Session], None]) -> None:
    url = shop.url.replace("postgresql://", "postgresql+psycopg://")
    engine = create_engine(url, poolclass=NullPool)
    with Session(engine) as session:
        work(session)
    engine.dispose()


def with_django(shop: Shop, work: Callable[[], None]) -> None:
    """In a thread of its own, whose connection is new."""
    configure()
    known = conninfo_to_dict(shop.url)
    connections.settings["default"].update(
        NAME=known["dbname"], USER=known["user"], HOST=known["host"], PORT=known["port"]
    )
    try:
        work()
    finally:
        connections.close_all()


async def test_a_session_of_sqlalchemy_enqueues_in_its_transaction(
    app: Faena, shop: Shop, working: Working
) -> None:
    buy = shop.example("with_sqlalchemy.py")

    def work(session: Session) -> None:
        buy(session, Order("rolled back", "acme"))
        session.rollback()
        with session.begin_nested() as savepoint:
            buy(session, Order("to the savepoint", "acme"))
            savepoint.rollback()
        buy(session, Order("kept: with %s and :name", "acme"))
        session.commit()

    async with working(app):
        await asyncio.to_thread(with_sqlalchemy, shop, work)
        await eventually(lambda: bool(shop.ran))
        await eventually(lambda: _is_settled(shop))
    assert shop.ran == ["kept: with %s and :name"]


async def test_a_transaction_of_django_enqueues_with_its_rows(
    app: Faena, shop: Shop, working: Working
) -> None:
    buy = shop.example("with_django.py")

    def fail() -> None:
        with transaction.atomic():
            buy(Order("rolled back", "acme"))
            raise ZeroDivisionError

    def work() -> None:
        with pytest.raises(ZeroDivisionError):
            fail()
        with transaction.atomic():
            with pytest.raises(ZeroDivisionError):
                fail()  # a savepoint
            buy(Order("kept: with %s and :name", "acme"))

    async with working(app):
        await asyncio.to_thread(with_django, shop, work)
        await eventually(lambda: bool(shop.ran))
        await eventually(lambda: _is_settled(shop))
    assert shop.ran == ["kept: with %s and :name"]


async def _is_settled(shop: Shop) -> bool:
    return await shop.kept() == [(1, 0)]


async def test_all_options_travel_with_sqlalchemy(shop: Shop) -> None:
    at = datetime(2040, 1, 1, tzinfo=UTC)
    made = shop.pg.outbox.statement(
        shop.issue,
        Order("7", "acme"),
        tenant="acme",
        id="mine",
        at=at,
        priority=3,
        headers={"a": "b"},
        durability="broker",
    )
    found: list[Any] = []

    def work(session: Session) -> None:
        found.append(session.execute(text(made.named_sql), made.named).scalar_one())
        session.commit()

    await asyncio.to_thread(with_sqlalchemy, shop, work)
    assert found == ["mine"]
    async with shop.pg.transaction() as connection:
        rows = await connection.execute(
            "SELECT id, tenant, is_kept, options->>'priority' FROM faena.outbox"
        )
        assert await rows.fetchall() == [("mine", "acme", False, "3")]


async def test_what_is_refused_is_told_by_each_library_and_nothing_is_written(
    app: Faena, shop: Shop
) -> None:
    @app.queue("later").task
    async def unpublished(order: Order) -> None: ...

    def by_session(session: Session) -> None:
        made = shop.pg.outbox.statement(unpublished, Order("7", "acme"))
        session.add(OrderRow(id="7"))
        with pytest.raises(DBAPIError, match="later/unpublished"):
            session.execute(text(made.named_sql), made.named)
        with pytest.raises(PayloadError):
            shop.pg.outbox.statement(shop.issue, {"id": 7})  # pyright: ignore[reportArgumentType]

    def enqueue() -> None:
        with transaction.atomic(), django_connection.cursor() as cursor:
            cursor.execute("INSERT INTO orders (id) VALUES ('7')")
            shop.pg.outbox.enqueue_sync(cursor, unpublished, Order("7", "acme"))

    def by_django() -> None:
        with pytest.raises(DatabaseError, match="later/unpublished"):
            enqueue()

    await asyncio.to_thread(with_sqlalchemy, shop, by_session)
    await asyncio.to_thread(with_django, shop, by_django)
    assert await shop.kept() == [(0, 0)]


async def test_typed_parameters_are_cast_as_the_page_says(app: Faena, pg: Postgres) -> None:
    @app.queue("typed").task
    async def note(number: int) -> None: ...

    await pg.outbox.publish()
    call = "SELECT faena.enqueue('typed'::varchar, 'note'::varchar, '1'::json{})"
    async with pg.transaction() as connection:
        await connection.execute(call.format("::text::jsonb").encode())
    with pytest.raises(StoreRejected, match=r"does not exist; .* cast its arguments, such as"):
        async with pg.transaction() as connection:
            await connection.execute(call.format("").encode())
