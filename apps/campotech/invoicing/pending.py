"""Finds invoices that nobody works on any more, every five minutes, and has them tried again.

An invoice may be left behind: its job was cancelled, or died while nobody knew what had become of
its request. One whose job still waits is left alone: it comes in its turn.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from apps.campotech.keys import key_of
from apps.campotech.messages import AfipInvoice

if TYPE_CHECKING:
    from apps.campotech.system import System

_LEFT: Final = """
    SELECT id, organization_id, customer_id, kind, point_of_sale, total_cents, created_at
    FROM campotech.invoices
    WHERE status IN ('pending', 'sending') AND created_at < now() - %s
    ORDER BY created_at LIMIT 50
"""
_OVER: Final = frozenset({None, "dead", "cancelled", "completed"})


class Pending:
    """The schedule `find-pending-invoices` of the queue `scheduler`."""

    def __init__(self, system: System) -> None:
        self._system, self._least = system, system.pace.of("2m")
        queue, interval = system.queues["scheduler"], system.pace.interval("5m")
        system.app.every(interval, queue=queue, name="find-pending-invoices")(self.find)

    async def find(self) -> int:
        """How many were handed over again."""
        async with self._system.pg.transaction("invoice") as connection:
            rows = await (await connection.execute(_LEFT, [self._least])).fetchall()
        return sum([await self._try_again(*row) for row in rows])

    async def _try_again(self, *row: Any) -> bool:
        message = message_of(*row)
        organization, key = str(message.org_id), str(key_of(message))
        queue = self._system.queues["afip.invoice"]
        view = await queue.handle(key, tenant=organization).view()
        if (None if view is None else view.state.value) not in _OVER:
            return False
        receipt = await self._system.issuing.request_cae.enqueue(
            message, tenant=organization, unique=f"again-{message.invoice_id}"
        )
        return receipt.status != "duplicate"


def message_of(
    invoice: UUID,
    organization: UUID,
    customer: UUID,
    kind: str,
    point_of_sale: int,
    total_cents: int,
    created_at: datetime,
) -> AfipInvoice:
    """What asks for the CAE of an invoice; always the same for the same invoice."""
    return AfipInvoice.model_validate(
        {
            "org_id": organization,
            "idempotency_key": f"cae-{invoice}",
            "created_at": created_at.astimezone(UTC),
            "invoice_id": invoice,
            "invoice_type": kind,
            "punto_venta": point_of_sale,
            "customer_id": customer,
            "total": f"{total_cents // 100}.{total_cents % 100:02}",
        }
    )
