"""The tables of CampoTech: migrations, partitions ahead, and what must never be stored."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest
from apps.campotech.database import migrate, tables

from faena import Faena
from faena.pg import Archive, Postgres
from faena.pg.drift import drift

ORG, CUSTOMER = uuid4(), uuid4()


def declared(app: Faena, database: str) -> Postgres:
    app.queue("scheduler")
    pg = Postgres(app, database, relay=False)
    tables.declare(pg, Archive())
    return pg


@pytest.fixture
def rows(database: str) -> psycopg.Connection:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SET search_path TO campotech")
        connection.execute(
            "INSERT INTO organizations (id, name, cuit, token_digest) VALUES (%s, 'a', %s, '')",
            [ORG, "30500010912"],
        )
        connection.execute(
            "INSERT INTO customers (id, organization_id, name) VALUES (%s, %s, 'ana')",
            [CUSTOMER, ORG],
        )
        yield connection


async def test_migrations_can_be_applied_again(app: Faena, database: str) -> None:
    async with declared(app, database) as pg:
        await migrate.upgrade(pg)
        assert not await drift(pg)


async def test_each_large_table_has_partitions_for_the_next_three_months(
    app: Faena, database: str
) -> None:
    async with declared(app, database) as pg:
        await pg.ensure_partitions()
        views = {one.table: one for one in await pg.partitions()}
    assert sorted(views) == [
        "campotech.audit_logs",
        "campotech.jobs",
        "campotech.notification_logs",
        "campotech.technician_locations",
        "campotech.whatsapp_messages",
    ]
    ahead = {name: one.ahead for name, one in views.items()}
    assert ahead["campotech.jobs"] == ahead["campotech.audit_logs"] == 3
    assert ahead["campotech.whatsapp_messages"] == ahead["campotech.notification_logs"] == 12
    assert ahead["campotech.technician_locations"] == 90


INVOICE = """
    INSERT INTO invoices (id, organization_id, customer_id, kind, vat_cents,
        point_of_sale, net_cents, number, status, cae)
    VALUES (gen_random_uuid(), %s, %s, 'B', 21, %s, %s, %s, %s, %s)
"""


@pytest.mark.parametrize(
    ("point", "net", "number", "status", "cae"),
    [
        (0, 100, 1, "pending", None),
        (100_000, 100, 1, "pending", None),
        (1, 0, 1, "pending", None),
        (1, 100, 1, "odd", None),
        (1, 100, 1, "issued", None),
        (1, 100, 1, "pending", "71234567890123"),
        (1, 100, 1, "issued", "7123456789012"),
    ],
)
def test_an_impossible_invoice_is_refused(
    rows: psycopg.Connection, point: int, net: int, number: int, status: str, cae: str | None
) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        rows.execute(INVOICE, [ORG, CUSTOMER, point, net, number, status, cae])


def test_two_invoices_of_a_series_have_different_numbers(rows: psycopg.Connection) -> None:
    good = [ORG, CUSTOMER, 1, 100, 7, "issued", "71234567890123"]
    rows.execute(INVOICE, good)
    with pytest.raises(psycopg.errors.UniqueViolation):
        rows.execute(INVOICE, good)
    rows.execute(INVOICE, [ORG, CUSTOMER, 1, 100, None, "pending", None])
    rows.execute(INVOICE, [ORG, CUSTOMER, 1, 100, None, "pending", None])
