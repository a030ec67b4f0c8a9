"""Links at which customers pay their invoices, and what they are told while MercadoPago is out.

A link is stored once it is made, and is given again as long as the same amount is due. If the
process dies in between, the next request makes another one: both name the invoice, and a payment
counts for it whichever link the customer has used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from apps.providers.mercadopago import Checkout, Client, Item, Preference, Settings
from faena import Upstream

if TYPE_CHECKING:
    from apps.campotech.system import System

_FIND: Final = """
    SELECT one.status, one.total_cents - one.paid_cents, one.description, owner.name, link.url
    FROM campotech.invoices one
    JOIN campotech.organizations owner ON owner.id = one.organization_id
    LEFT JOIN campotech.payment_links link ON link.invoice_id = one.id
        AND link.amount_cents = one.total_cents - one.paid_cents
    WHERE one.id = %s AND one.organization_id = %s
"""
_STORE: Final = """
    INSERT INTO campotech.payment_links AS old
        (invoice_id, organization_id, preference_id, url, amount_cents)
    VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (invoice_id) DO UPDATE SET created_at = now(),
        preference_id = excluded.preference_id, url = excluded.url,
        amount_cents = excluded.amount_cents
    WHERE old.amount_cents <> excluded.amount_cents
"""
_LONGEST_TITLE: Final = 250


class NotPayable(Exception):
    """Why nobody can pay an invoice, in words for who asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualPayment:
    """Where to transfer the money while there are no links."""

    alias: str
    cbu: str
    amount_cents: int
    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Due:
    """An invoice, as far as paying it goes."""

    organization: UUID
    invoice: UUID
    cents: int
    title: str


class Links:
    """Makes them."""

    def __init__(self, system: System, client: Client, upstream: Upstream) -> None:
        self._pg, self._client = system.pg, client
        self._settings: Settings = system.settings.mercadopago
        self._notified = f"{system.settings.public_url}/webhooks/mercadopago"
        self._make = upstream.with_fallback(self._by_hand, on_error=True)(self._at_mercadopago)

    async def link(self, organization: UUID, invoice: UUID) -> str | ManualPayment | None:
        """The link of an invoice, or how to pay without one; None if there is no such invoice.

        Raises NotPayable.
        """
        async with self._pg.transaction("payment link") as connection:
            row = await (await connection.execute(_FIND, [invoice, organization])).fetchone()
        if row is None:
            return None
        status, cents, description, owner, url = row
        if status == "failed":
            raise NotPayable("the invoice was refused by AFIP")
        if cents <= 0:
            raise NotPayable("the invoice is paid")
        if url is not None:
            return url
        title = (description or owner)[:_LONGEST_TITLE]
        due = _Due(organization=organization, invoice=invoice, cents=cents, title=title)
        made = await self._make(due)
        return made if isinstance(made, ManualPayment) else await self._store(due, made)

    async def _at_mercadopago(self, due: _Due) -> Checkout | ManualPayment:
        preference = Preference(
            items=[Item(title=due.title, unit_price_centavos=due.cents)],
            external_reference=str(due.invoice),
            notification_url=f"{self._notified}/{due.organization}",
        )
        return await self._client.create_preference(preference)

    async def _by_hand(self, due: _Due) -> Checkout | ManualPayment:
        return ManualPayment(
            alias=self._settings.alias,
            cbu=self._settings.cbu,
            amount_cents=due.cents,
            reference=str(due.invoice),
        )

    async def _store(self, due: _Due, made: Checkout) -> str:
        given: list[Any] = [due.invoice, due.organization, made.id, made.url, due.cents]
        async with self._pg.transaction("payment link") as connection:
            await connection.execute(_STORE, given)
        return made.url
