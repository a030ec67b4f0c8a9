"""An organisation with a customer, as tests need it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self
from uuid import UUID, uuid4

from apps.campotech.security import digest_of, new_token
from apps.campotech.system import System
from apps.sandbox.sandbox import Sandbox

from apps.campotech.messages import AfipInvoice

PLATFORM = "30500010912"
_numbers = itertools.count(20_000_000)


def next_cuit() -> str:
    """Another CUIT, with its check digit."""
    while True:
        body = f"30{next(_numbers):08}"
        weights = (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
        rest = 11 - sum(int(n) * w for n, w in zip(body, weights, strict=True)) % 11
        if rest != 10:
            return f"{body}{0 if rest == 11 else rest}"


@dataclass(frozen=True)
class Business:
    """What tests know of it."""

    system: System
    id: UUID
    cuit: str
    token: str
    customer: UUID
    phone: str

    @classmethod
    async def make(
        cls,
        system: System,
        sandbox: Sandbox,
        *,
        number: str | None = None,
        is_delegated: bool = True,
    ) -> Self:
        cuit, token = next_cuit(), new_token()
        made = cls(system, uuid4(), cuit, token, uuid4(), f"+5491155{cuit[4:10]}")
        sandbox.afip.registry.register(int(cuit), (1, 2))
        if number is not None:
            sandbox.whatsapp.numbers.add(number)
        if is_delegated:
            sandbox.afip.delegate(cuit, PLATFORM)
        async with system.pg.transaction() as connection:
            await connection.execute(
                "INSERT INTO campotech.organizations "
                "(id, name, cuit, token_digest, phone_number_id) VALUES (%s, %s, %s, %s, %s)",
                [
                    made.id,
                    f"Plomería {cuit[2:6]}",
                    cuit,
                    digest_of(token),
                    number or sandbox.whatsapp.phone_number_id,
                ],
            )
            await connection.execute(
                "INSERT INTO campotech.customers (id, organization_id, name, phone) "
                "VALUES (%s, %s, 'Ana Muñoz', %s)",
                [made.customer, made.id, made.phone],
            )
        return made

    async def invoice(self, *, net_cents: int = 100_000, kind: str = "B", point: int = 1) -> UUID:
        """A pending invoice."""
        invoice = uuid4()
        vat = 0 if kind == "C" else net_cents * 21 // 100
        async with self.system.pg.transaction() as connection:
            await connection.execute(
                "INSERT INTO campotech.invoices (id, organization_id, customer_id, kind, "
                "point_of_sale, net_cents, vat_cents) VALUES (%s, %s, %s, %s, %s, %s, %s)",
                [invoice, self.id, self.customer, kind, point, net_cents, vat],
            )
        return invoice

    def message(self, invoice: UUID, *, net_cents: int = 100_000, **given: Any) -> AfipInvoice:
        """What asks for its CAE."""
        made: dict[str, Any] = {
            "org_id": self.id,
            "idempotency_key": f"cae-{invoice}",
            "created_at": datetime.now(UTC),
            "invoice_id": invoice,
            "invoice_type": "B",
            "punto_venta": 1,
            "customer_id": self.customer,
            "total": f"{net_cents * 121 / 10_000:.2f}",
        }
        return AfipInvoice(**{**made, **given})

    async def rows(self, query: str, *given: Any) -> list[tuple[Any, ...]]:
        async with self.system.pg.transaction() as connection:
            return await (await connection.execute(query.encode(), given)).fetchall()
