"""Takes in what MercadoPago tells of a payment, a refund or a chargeback.

A notification only says where to look: the payment is read back, and what is read last counts,
whatever order notifications come in. An invoice is paid by the sum of its payments, less what was
given back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from apps.campotech.messages import PaymentWebhook
from apps.providers.mercadopago import Client, NotFound, Payment
from faena import Discard, Upstream
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

_STORE: Final = """
    INSERT INTO campotech.payments
        (id, organization_id, invoice_id, status, amount_cents, refunded_cents, changed_at)
    VALUES (%(id)s, %(organization)s, %(invoice)s, %(status)s, %(amount)s, %(refunded)s,
        coalesce(%(at)s, now()))
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, changed_at = excluded.changed_at,
        refunded_cents = excluded.refunded_cents, amount_cents = excluded.amount_cents
    WHERE payments.changed_at <= excluded.changed_at
        AND (payments.status, payments.refunded_cents, payments.changed_at)
            <> (excluded.status, excluded.refunded_cents, excluded.changed_at)
"""
_PAID: Final = """
    UPDATE campotech.invoices SET paid_cents = (
        SELECT coalesce(sum(amount_cents - refunded_cents), 0) FROM campotech.payments
        WHERE invoice_id = %(invoice)s AND status IN ('approved', 'in_mediation'))
    WHERE id = %(invoice)s
"""
_FIND: Final = "SELECT organization_id FROM campotech.invoices WHERE id = %s FOR UPDATE"
_AUDIT: Final = """
    INSERT INTO campotech.audit_logs (organization_id, subject, action, detail)
    VALUES (%s, %s, %s, %s)
"""


class Taken(NamedTuple):
    """A payment as it is known now."""

    id: str
    status: str
    invoice: str | None
    is_news: bool
    """Whether this notification has changed anything."""


class Payments:
    """The queue `payment.webhook`."""

    def __init__(self, system: System, client: Client, upstream: Upstream) -> None:
        self._pg, self._client, self._upstream = system.pg, client, upstream
        queue = system.queues["payment.webhook"]
        self.take = queue.task(name="take", upstreams=[upstream])(self._take)

    async def _take(self, message: PaymentWebhook) -> list[Taken]:
        """Read back what the notification is about, and store it."""
        try:
            async with self._upstream.call():
                payments = await self._read(message)
        except NotFound as error:
            raise Discard(str(error)) from error
        return [await self._store(message, one) for one in payments]

    async def _read(self, message: PaymentWebhook) -> list[Payment]:
        if message.event_type != "chargeback":
            return [await self._client.get_payment(message.mp_payment_id)]
        found = await self._client.get_chargeback(message.mp_payment_id)
        return [await self._client.get_payment(one) for one in found.payment_ids]

    async def _store(self, message: PaymentWebhook, one: Payment) -> Taken:
        async with self._pg.transaction("payment") as connection:
            return await store(connection, message.org_id, one, by=message.event_type)


async def store(connection: Connection, organization: UUID, one: Payment, *, by: str) -> Taken:
    """Write down a payment as MercadoPago has it; older news change nothing."""
    invoice = await _invoice_of(connection, organization, one)
    given: dict[str, Any] = {
        "id": one.id,
        "organization": organization,
        "invoice": invoice,
        "status": one.status,
        "amount": one.amount_centavos,
        "refunded": one.refunded_centavos,
        "at": one.updated_at,
    }
    is_news = (await connection.execute(_STORE, given)).rowcount == 1
    if is_news:
        if invoice is not None:
            await connection.execute(_PAID, given)
        detail = Jsonb({"status": one.status, "refunded": one.refunded_centavos, "by": by})
        subject = f"payment {one.id}"
        await connection.execute(_AUDIT, [organization, subject, "payment", detail])
    return Taken(one.id, one.status, None if invoice is None else str(invoice), is_news)


async def _invoice_of(connection: Connection, organization: UUID, one: Payment) -> UUID | None:
    """The invoice that the payment names. One of another organisation is nobody's business here:
    the notification was sent to the wrong address."""
    try:
        named = UUID(one.external_reference)
    except ValueError:
        return None
    row = await (await connection.execute(_FIND, [named])).fetchone()
    if row is not None and row[0] != organization:
        raise Discard("the payment must be one of this organisation")
    return None if row is None else named
