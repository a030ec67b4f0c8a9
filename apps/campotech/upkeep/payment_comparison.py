"""Payments against MercadoPago's: those made in the period, then those of ours that are open.

MercadoPago is asked for the payments of each day, and each is taken in as if a notification had
come: a lost one is healed, and older news change nothing. A payment of ours that may still change
is read back by its id; a full comparison reads all that changed in the period.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from apps.campotech.payments.take import store
from apps.campotech.upkeep.comparison import (
    Difference,
    Found,
    Part,
    Period,
    Position,
    midnight,
    nothing,
)
from apps.providers.mercadopago import NotFound, Payment, PaymentSearch
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

PAGE: Final = 50
_READ_BACK: Final = 20
_OPEN: Final = ["pending", "in_process", "authorized", "in_mediation"]
_MILLISECOND: Final = timedelta(milliseconds=1)
_WHOSE: Final = """
    SELECT organization_id FROM campotech.invoices WHERE id = %(invoice)s
    UNION ALL SELECT organization_id FROM campotech.payments WHERE id = %(payment)s
    LIMIT 1
"""
_OWN: Final = """
    SELECT id, organization_id FROM campotech.payments
    WHERE changed_at >= %(begin)s AND changed_at < %(end)s AND id > %(after)s
        AND (%(full)s OR status = ANY(%(open)s))
        AND coalesce(organization_id = %(org)s, true)
    ORDER BY id LIMIT %(most)s
"""


class Payments:
    """A comparison of payments."""

    def __init__(self, system: System) -> None:
        self._pg, self._client = system.pg, system.mercadopago
        self._upstream = system.upstreams.mercadopago

    async def read(self, period: Period, position: Position) -> Part:
        """A page of a day's payments, or some of ours."""
        if "own" in position:
            return await self._read_own(period, position["own"])
        day = date.fromisoformat(position.get("day") or period.first.isoformat())
        return await self._read_page(period, day, position.get("offset", 0))

    async def _read_page(self, period: Period, day: date, offset: int) -> Part:
        tomorrow = day + timedelta(days=1)
        search = PaymentSearch(begin=midnight(day), end=midnight(tomorrow) - _MILLISECOND)
        async with self._upstream.call():
            page = await self._client.search_payments(search, limit=PAGE, offset=offset)

        async def write(connection: Connection) -> Found:
            found = Found()
            for one in page.payments:
                await _take(connection, period, one, found)
            return found

        then: dict[str, Any] = {"day": day.isoformat(), "offset": page.next_offset}
        if page.next_offset is None:
            is_last = day >= period.last
            then = {"own": ""} if is_last else {"day": tomorrow.isoformat(), "offset": 0}
        return Part(then=then, write=write)

    async def _read_own(self, period: Period, after: str) -> Part:
        given = {
            "begin": period.begin,
            "end": period.end,
            "after": after,
            "full": period.is_full,
            "open": _OPEN,
            "org": period.organization,
            "most": _READ_BACK,
        }
        async with self._pg.transaction("reconciliation") as connection:
            rows = await (await connection.execute(_OWN, given)).fetchall()
        if not rows:
            return Part(then=None, write=nothing)
        read = [(whose, name, await self._get(name)) for name, whose in rows]

        async def write(connection: Connection) -> Found:
            found = Found()
            for whose, name, one in read:
                await _compare(connection, whose, name, one, found)
            return found

        return Part(then={"own": rows[-1][0]}, write=write)

    async def _get(self, payment: str) -> Payment | None:
        """A payment as it is now; None if MercadoPago does not know it."""
        async with self._upstream.call():
            try:
                return await self._client.get_payment(payment)
            except NotFound:
                return None


async def _take(connection: Connection, period: Period, one: Payment, found: Found) -> None:
    whose = await _organization_of(connection, one)
    if whose is None:
        if period.organization is None:
            problem = "MercadoPago has a payment that names no invoice of ours"
            found.differences.append(Difference(problem=problem, subject=f"payment {one.id}"))
            found.looked_at += 1
        return
    if period.includes(whose):
        await _compare(connection, whose, one.id, one, found)


async def _compare(
    connection: Connection, whose: UUID, name: str, one: Payment | None, found: Found
) -> None:
    found.looked_at += 1
    if one is None:
        problem = "MercadoPago does not know the payment"
        said = Difference(problem=problem, subject=f"payment {name}", organization=whose)
        found.differences.append(said)
    elif (await store(connection, whose, one, by="reconciliation")).is_news:
        found.repaired += 1


async def _organization_of(connection: Connection, one: Payment) -> UUID | None:
    try:
        invoice = UUID(one.external_reference)
    except ValueError:
        invoice = None
    given = {"invoice": invoice, "payment": one.id}
    row = await (await connection.execute(_WHOSE, given)).fetchone()
    return None if row is None else row[0]
