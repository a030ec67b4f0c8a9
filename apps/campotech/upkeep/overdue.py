"""Reminds customers of invoices that are overdue, each once a week, and tells the owners."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID, uuid5

from apps.campotech.invoicing.money import pesos
from apps.campotech.messaging.customer_notice import Addressee, News, tell_customer
from apps.campotech.upkeep.owner import tell_owners
from apps.campotech.upkeep.page import Asked, Page, Work
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

MOST: Final = 50
"""Customers who are told in one job; the others are told tomorrow, the oldest debts come first."""
_AGAIN: Final = "168h"
_IS_DUE: Final = """
    status = 'issued' AND paid_cents < total_cents AND due_at < %(now)s
    AND (reminded_at IS NULL OR reminded_at < %(before)s)
"""
_PAGE: Final = f"""
    SELECT DISTINCT organization_id FROM campotech.invoices
    WHERE {_IS_DUE} AND organization_id > %(after)s ORDER BY 1 LIMIT %(most)s
"""  # noqa: S608 - constants
_REMIND: Final = f"""
    WITH due AS (
        SELECT id FROM campotech.invoices WHERE organization_id = %(org)s AND {_IS_DUE}
        ORDER BY due_at, id LIMIT %(most)s FOR UPDATE)
    UPDATE campotech.invoices one SET reminded_at = %(now)s
    FROM due, campotech.customers customer, campotech.organizations owner
    WHERE one.id = due.id AND customer.id = one.customer_id AND owner.id = one.organization_id
    RETURNING one.id, one.kind, one.point_of_sale, one.number, one.total_cents - one.paid_cents,
        customer.id, customer.name, customer.phone, customer.email, owner.name,
        owner.phone_number_id
"""  # noqa: S608 - constants


class Overdue(Work):
    """The work `invoice_overdue_check`."""

    kind: ClassVar[str] = "invoice_overdue_check"

    def __init__(self, system: System) -> None:
        self._system, self._again = system, system.pace.of(_AGAIN)

    async def page(self, transaction: Connection, page: Page) -> list[UUID]:
        """Those who are owed something."""
        given = self._given(page.now, after=page.after, most=page.most)
        rows = await (await transaction.execute(_PAGE.encode(), given)).fetchall()
        return [row[0] for row in rows]

    async def do(self, transaction: Connection, asked: Asked) -> dict[str, Any]:
        """Remind customers; how many, and of how much."""
        organization, now = asked.organization, asked.now
        given = self._given(now, org=organization, most=MOST)
        rows = await (await transaction.execute(_REMIND.encode(), given)).fetchall()
        reached, owed = 0, sum(int(row[4]) for row in rows)
        for row in rows:
            reached += await self._tell(transaction, organization, now, *row)
        if rows:
            said = (
                "Facturas vencidas",
                f"{len(rows)} vencidas por {pesos(owed)}; avisamos a {reached} clientes",
            )
            await tell_owners(self._system, transaction, organization, said)
        return {"invoices": len(rows), "reached": reached, "owedCents": owed}

    def _given(self, now: datetime, **more: Any) -> dict[str, Any]:
        return {"now": now, "before": now - self._again, **more}

    async def _tell(
        self, transaction: Connection, organization: UUID, now: datetime, *row: Any
    ) -> bool:
        invoice, kind, point, number, owed, customer, name, phone, email, issuer, line = row
        to = Addressee(
            organization=organization, number=line, customer=customer, phone=phone, email=email
        )
        facts = {
            "customer": name,
            "organization": issuer,
            "invoice": f"{kind} {point:05}-{number:08}",
            "amount": pesos(owed),
        }
        news = News(
            id=uuid5(invoice, f"overdue {now.timestamp():.6f}"),
            kind="invoice_overdue",
            facts=facts,
            at=now,
            invoice=invoice,
        )
        return await tell_customer(self._system, transaction, to, news) is not None
