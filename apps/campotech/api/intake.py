"""What organisations send in: invoices, messages, and what their devices did offline.

Each is stored with its job in one transaction. The same request twice is one piece of work: the
`Idempotency-Key` of an invoice, or the message's own key, tells.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from uuid import NAMESPACE_OID, UUID, uuid5

from fastapi import APIRouter, Header, Request
from pydantic import Field, StrictInt

from apps.campotech.api.caller import Caller, system_of
from apps.campotech.api.problem import Problem
from apps.campotech.invoicing.pending import message_of
from apps.campotech.keys import key_of
from apps.campotech.messages import SyncOffline, WhatsAppOutbound
from apps.campotech.messages.base import Schema
from apps.campotech.messages.fields import Pesos

router: Final = APIRouter(prefix="/api/v1")
_OWN: Final = "SELECT 1 FROM campotech.customers WHERE id = %s AND organization_id = %s"
_STORE: Final = """
    INSERT INTO campotech.invoices (id, organization_id, customer_id, kind, point_of_sale,
        net_cents, vat_cents, description, job_id)
    VALUES (%(id)s, %(org)s, %(customer)s, %(kind)s, %(point)s, %(net)s, %(vat)s, %(text)s, %(job)s)
    ON CONFLICT (id) DO NOTHING
    RETURNING created_at
"""
_SAME: Final = """
    SELECT (customer_id, kind, point_of_sale, net_cents, description)
        = (%(customer)s, %(kind)s::bpchar, %(point)s, %(net)s, %(text)s)
    FROM campotech.invoices WHERE id = %(id)s
"""
_LOOK: Final = """
    SELECT status, number, cae, cae_expires, problem, paid_cents, total_cents
    FROM campotech.invoices WHERE id = %s AND organization_id = %s
"""
Key = Annotated[str, Header(alias="Idempotency-Key", min_length=16, max_length=64)]


class NewInvoice(Schema):
    """An invoice that is to be issued."""

    customer_id: UUID
    invoice_type: Literal["A", "B", "C"]
    punto_venta: Annotated[StrictInt, Field(ge=1, le=99_998)]
    net: Pesos
    """Without VAT, which is 21 %; class C has none."""
    description: Annotated[str, Field(max_length=1000)] = ""
    job_id: UUID | None = None


@router.post("/invoices", status_code=202)
async def create_invoice(
    request: Request, caller: Caller, wanted: NewInvoice, idempotency_key: Key
) -> dict[str, str]:
    """Have an invoice issued; the same key is the same invoice."""
    system = system_of(request)
    net = int(wanted.net * 100)
    vat = 0 if wanted.invoice_type == "C" else (net * 21 + 50) // 100
    given: dict[str, Any] = {
        "id": uuid5(NAMESPACE_OID, f"invoice {caller.id} {idempotency_key}"),
        "org": caller.id,
        "customer": wanted.customer_id,
        "kind": wanted.invoice_type,
        "point": wanted.punto_venta,
        "net": net,
        "vat": vat,
        "text": wanted.description,
        "job": wanted.job_id,
    }
    async with system.pg.transaction("invoice") as connection:
        owned = await connection.execute(_OWN, [wanted.customer_id, caller.id])
        if await owned.fetchone() is None:
            raise Problem(422, "customerId must be a customer of this organisation")
        new = await (await connection.execute(_STORE, given)).fetchone()
        if new is None:
            same = await (await connection.execute(_SAME, given)).fetchone()
            if same is None or not same[0]:
                raise Problem(409, "another invoice has this Idempotency-Key")
        else:
            series = wanted.invoice_type, wanted.punto_venta
            message = message_of(
                given["id"], caller.id, wanted.customer_id, *series, net + vat, new[0]
            )
            await system.pg.outbox.enqueue(
                connection,
                system.issuing.request_cae,
                message,
                tenant=caller.tenant,
                id=str(key_of(message)),
            )
    return {"id": str(given["id"]), "status": "accepted" if new else "known"}


@router.get("/invoices/{invoice}")
async def look_at_invoice(request: Request, caller: Caller, invoice: UUID) -> dict[str, Any]:
    """How far an invoice is."""
    async with system_of(request).pg.transaction("invoice") as connection:
        row = await (await connection.execute(_LOOK, [invoice, caller.id])).fetchone()
    if row is None:
        raise Problem(404, "no such invoice")
    names = ("status", "number", "cae", "caeExpires", "problem", "paidCents", "totalCents")
    return {"id": str(invoice), **dict(zip(names, row, strict=True))}


@router.post("/messages", status_code=202)
async def send_message(
    request: Request, caller: Caller, message: WhatsAppOutbound
) -> dict[str, str]:
    """Send a message to a customer; the same message is sent once."""
    caller.owns(message.org_id)
    receipt = await system_of(request).sender.send.enqueue(
        message, tenant=caller.tenant, id=str(key_of(message)), on_conflict="keep"
    )
    return {"id": receipt.id, "status": receipt.status}


@router.post("/sync", status_code=202)
async def sync(request: Request, caller: Caller, message: SyncOffline) -> dict[str, Any]:
    """Apply what a device did offline; a job for each entity."""
    caller.owns(message.org_id)
    system, jobs = system_of(request), list[str]()
    async with system.pg.transaction("sync") as connection:
        for part in message.by_entity():
            jobs.append(
                await system.pg.outbox.enqueue(
                    connection,
                    system.sync.apply,
                    part,
                    tenant=caller.tenant,
                    key=part.entity_key,
                    id=str(key_of(part)),
                )
            )
    return {"jobs": jobs}
