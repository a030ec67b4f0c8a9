"""Makes the PDF of an invoice, stores it, and has the customer told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from apps.campotech.invoicing import invoice as invoices
from apps.campotech.invoicing.invoice import Invoice
from apps.campotech.messages import InvoicePdf
from apps.providers import storage
from faena import Discard, Job

if TYPE_CHECKING:
    from apps.campotech.system import System

_KIND: Final = "application/pdf"
_STORED: Final = """
    WITH stored AS (
        INSERT INTO campotech.files (key, organization_id, size) VALUES (%(key)s, %(org)s, %(size)s)
        ON CONFLICT (key) DO UPDATE SET size = excluded.size
    )
    UPDATE campotech.invoices SET pdf_key = %(key)s WHERE id = %(id)s
"""


class Documents:
    """The task `render` of the queue `invoice.pdf`, and `announce` of `job.notification`."""

    def __init__(self, system: System, files: storage.Client) -> None:
        self._system, self._pg, self._files = system, system.pg, files
        self.render = system.queues["invoice.pdf"].task(name="render")(self._render)
        queue = system.queues["job.notification"]
        self.announce = queue.task(name="announce_invoice")(self._announce)

    async def _render(self, message: InvoicePdf, job: Job) -> str:
        """The key of the PDF. The same version has the same bytes, so it can be stored again."""
        one = await self._find(message)
        if one.pdf_key is not None and not message.regenerate:
            return one.pdf_key
        content = await asyncio.to_thread(one.document().render)
        key = f"{one.organization_id}/invoices/{one.id}-v{message.version or 1}.pdf"
        await self._files.put(key, content, kind=_KIND)
        given = {"key": key, "org": one.organization_id, "size": len(content), "id": one.id}
        async with self._pg.transaction("pdf") as connection:
            await connection.execute(_STORED, given)
        job.log(f"{len(content)} bytes are stored")
        return key

    async def _announce(self, message: InvoicePdf) -> str:
        """Have the customer told; how."""
        one = await self._find(message)
        if not message.send_after:
            return "not wanted"
        async with self._pg.transaction("announce") as connection:
            return await self._system.sender.announce_invoice(connection, one)

    async def _find(self, message: InvoicePdf) -> Invoice:
        async with self._pg.transaction("pdf") as connection:
            found = await invoices.find(connection, message.org_id, message.invoice_id)
        if found is None or found.status == "failed":
            raise Discard(f"no issued invoice {message.invoice_id} in this organisation")
        return found
