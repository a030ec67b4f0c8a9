"""Finds invoices that nobody works on any more, every five minutes, and has them tried again.

An invoice may be left behind: its job was cancelled, or died while nobody knew what had become of
its request, or before the PDF was asked for, or before the customer was told. One whose job still
waits is left alone: it comes in its turn. Those that were not looked at for longest come first, so
invoices that cannot be helped, such as those of an organisation without a certificate, keep no
other from its turn.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from apps.campotech.invoicing import issue
from apps.campotech.keys import key_of
from apps.campotech.messages import AfipInvoice
from faena.errors import Overloaded
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

MOST: Final = 50
"""Invoices that are handed over in one run."""
PAGE: Final = 50
LONGEST_S: Final = 5.0
"""After this no other page is begun: the queue's time limit is ten seconds."""
_MOST_PAGES: Final = 20
_LEFT: Final = """
    WITH left_behind AS (
        SELECT id FROM campotech.invoices
        WHERE (status IN ('pending', 'sending')
                OR (status = 'issued' AND (pdf_key IS NULL OR announced_at IS NULL)))
            AND coalesce(looked_at, created_at) < now() - %(least)s
        ORDER BY coalesce(looked_at, created_at) LIMIT %(most)s FOR UPDATE SKIP LOCKED)
    UPDATE campotech.invoices one SET looked_at = now() FROM left_behind
    WHERE one.id = left_behind.id
    RETURNING one.status = 'issued', one.status = 'issued' AND one.pdf_key IS NOT NULL, one.id,
        one.organization_id, one.customer_id, one.kind, one.point_of_sale, one.total_cents,
        one.created_at
"""
_KEPT: Final = """
    SELECT id FROM faena.outbox WHERE queue = 'afip.invoice' AND id = ANY(%s) AND refused IS NULL
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
        handed, given = 0, {"least": self._least, "most": PAGE}
        clock = asyncio.get_running_loop().time
        ends = clock() + LONGEST_S
        for _ in range(_MOST_PAGES):
            async with self._system.pg.transaction("invoice") as connection:
                rows = await (await connection.execute(_LEFT, given)).fetchall()
                found = await _without_jobs(connection, rows)
            handed += sum(await asyncio.gather(*[self._try_again(*one) for one in found]))
            if len(rows) < PAGE or handed >= MOST or clock() > ends:
                break
        return handed

    async def _try_again(self, is_issued: bool, has_pdf: bool, message: AfipInvoice) -> bool:
        """Whether it was handed over; what finds a full queue comes with one of the next runs."""
        try:
            return await self._hand_over(is_issued, has_pdf, message)
        except Overloaded:
            return False

    async def _hand_over(self, is_issued: bool, has_pdf: bool, message: AfipInvoice) -> bool:
        if has_pdf:
            return await self._announce(message)
        if is_issued:
            await self._system.issuing.follow_up(message)
            return True
        organization, key = str(message.org_id), str(key_of(message))
        queue = self._system.queues["afip.invoice"]
        view = await queue.handle(key, tenant=organization).view()
        if (None if view is None else view.state.value) not in _OVER:
            return False
        receipt = await self._system.issuing.request_cae.enqueue(
            message, tenant=organization, unique=f"again-{message.invoice_id}"
        )
        return receipt.status != "duplicate"

    async def _announce(self, message: AfipInvoice) -> bool:
        """By a job of its own: that of the flow is over, dead perhaps."""
        receipt = await self._system.documents.announce.enqueue(
            issue.wanted_document(message),
            tenant=str(message.org_id),
            unique=f"announce-{message.invoice_id}",
        )
        return receipt.status != "duplicate"


async def _without_jobs(
    connection: Connection, rows: list[tuple[Any, ...]]
) -> list[tuple[bool, bool, AfipInvoice]]:
    """Those whose job has ended, as far as the outbox knows: it keeps a row of each until then."""
    found = [(is_issued, has_pdf, message_of(*row)) for is_issued, has_pdf, *row in rows]
    keys = [str(key_of(message)) for is_issued, _, message in found if not is_issued]
    kept = await (await connection.execute(_KEPT, [keys])).fetchall()
    waiting = {name for (name,) in kept}
    return [one for one in found if one[0] or str(key_of(one[2])) not in waiting]


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
