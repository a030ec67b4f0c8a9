"""Tickets of the tax office are kept for all workers, and one of them asks at a time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from apps.campotech.invoicing.tickets import PostgresTickets
from apps.campotech.system import System
from apps.providers.afip import Ticket

from tests._support.eventually import eventually
from tests.apps.campotech.business import PLATFORM

WAITING = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
NOW = datetime.now(UTC)
TICKET = Ticket(
    cuit=PLATFORM,
    service="wsfe",
    token="t1",
    sign="s",
    generated_at=NOW,
    expires_at=NOW + timedelta(hours=12),
)


async def test_the_ticket_that_was_saved_last_is_found(system: System) -> None:
    tickets = PostgresTickets(system.pg)
    assert await tickets.load(PLATFORM, "wsfe") is None
    for one in (TICKET, replace(TICKET, token="t2")):
        await tickets.save(one)
        assert await tickets.load(PLATFORM, "wsfe") == one
    assert await tickets.load(PLATFORM, "wsfex") is None


async def test_one_asks_for_a_ticket_at_a_time_and_others_are_not_kept_waiting(
    system: System,
) -> None:
    tickets, entered = PostgresTickets(system.pg), asyncio.Event()

    async def enter(service: str) -> None:
        async with PostgresTickets(system.pg).lock(PLATFORM, service):
            entered.set()

    async def is_settled() -> bool:
        async with system.pg.transaction() as connection:
            waits = await (await connection.execute(WAITING)).fetchone()
        return waits is not None or entered.is_set()

    async with tickets.lock(PLATFORM, "wsfe"):
        await asyncio.wait_for(enter("wsfex"), 60)
        entered.clear()
        second = asyncio.create_task(enter("wsfe"))
        await eventually(is_settled)
        assert not entered.is_set()
    await asyncio.wait_for(second, 60)
    assert entered.is_set()
