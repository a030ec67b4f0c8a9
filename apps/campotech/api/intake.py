"""What organisations send in: invoices, messages, and what their devices did offline.

Invoices and changes are stored with their jobs in one transaction; a message goes to its queue,
which turns it away when it is full. The same request twice is one piece of work: the
`Idempotency-Key` of an invoice, or the message's own key, tells.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Header, Request
from pydantic import Field, StrictInt

from apps.campotech.api.answer import Answer
from apps.campotech.api.caller import Caller, system_of
from apps.campotech.api.problem import Problem, answers
from apps.campotech.invoicing import bill
from apps.campotech.keys import key_of
from apps.campotech.messages import SyncOffline, WhatsAppOutbound
from apps.campotech.messages.base import Schema
from apps.campotech.messages.fields import Pesos, Text
from apps.campotech.once import enqueue_once

router: Final = APIRouter(prefix="/api/v1", tags=["intake"], responses=answers(401, 422, 503))
_LOOK: Final = """
    SELECT status, number, cae, cae_expires, problem, paid_cents, total_cents
    FROM campotech.invoices WHERE id = %s AND organization_id = %s
"""
_MOST_AHEAD: Final = timedelta(days=1)
"""Messages are stored by their time: for years to come there is no place yet."""
Key = Annotated[str, Header(alias="Idempotency-Key", min_length=16, max_length=64)]


class NewInvoice(Schema):
    """An invoice that is to be issued."""

    customer_id: UUID
    invoice_type: Literal["A", "B", "C"]
    punto_venta: Annotated[StrictInt, Field(ge=1, le=99_998)]
    net: Pesos
    """Without VAT, which is 21 %; class C has none."""
    description: Annotated[Text, Field(max_length=1000)] = ""
    job_id: UUID | None = None


class AcceptedInvoice(Answer):
    """An invoice that will be issued."""

    id: UUID
    status: Literal["accepted", "known"]
    """known: the key has been used for it before."""


class InvoiceState(Answer):
    """How far an invoice is."""

    id: UUID
    status: Literal["pending", "sending", "issued", "failed"]
    number: int | None
    cae: str | None
    cae_expires: date | None
    problem: str | None
    paid_cents: int
    total_cents: int


class AcceptedMessage(Answer):
    """A message that will be sent."""

    id: str
    status: str


class AcceptedChanges(Answer):
    """What a device did, which will be applied."""

    jobs: list[str]


@router.post("/invoices", status_code=202, responses=answers(400, 409, 413))
async def create_invoice(
    request: Request, caller: Caller, wanted: NewInvoice, idempotency_key: Key
) -> AcceptedInvoice:
    """Have an invoice issued; the same key is the same invoice."""
    system = system_of(request)
    new = bill.NewInvoice(
        organization=caller.id,
        key=idempotency_key,
        customer=wanted.customer_id,
        kind=wanted.invoice_type,
        point_of_sale=wanted.punto_venta,
        net_cents=int(wanted.net * 100),
        description=wanted.description,
        job=wanted.job_id,
    )
    try:
        async with system.pg.transaction("invoice") as connection:
            is_new = await system.billing.store(connection, new)
    except bill.AnotherInvoice:
        raise Problem(409, "another invoice has this Idempotency-Key") from None
    except bill.NotBillable as error:
        raise Problem(422, str(error)) from None
    return AcceptedInvoice(id=new.id, status="accepted" if is_new else "known")


@router.get("/invoices/{invoice}", responses=answers(404))
async def look_at_invoice(request: Request, caller: Caller, invoice: UUID) -> InvoiceState:
    """How far an invoice is."""
    async with system_of(request).pg.transaction("invoice") as connection:
        row = await (await connection.execute(_LOOK, [invoice, caller.id])).fetchone()
    if row is None:
        raise Problem(404, "no such invoice")
    names = ("status", "number", "cae", "cae_expires", "problem", "paid_cents", "total_cents")
    return InvoiceState(id=invoice, **dict(zip(names, row, strict=True)))


@router.post("/messages", status_code=202, responses=answers(400, 403, 413))
async def send_message(
    request: Request, caller: Caller, message: WhatsAppOutbound
) -> AcceptedMessage:
    """Send a message to a customer; the same message is sent once."""
    caller.owns(message.org_id)
    _check_storable(message)
    # To the second, as its key has it: it is stored by its time, and found there later.
    second = message.created_at.replace(microsecond=0)
    message = message.model_copy(update={"created_at": second})
    receipt = await system_of(request).sender.send.enqueue(
        message, tenant=caller.tenant, id=str(key_of(message)), on_conflict="keep"
    )
    return AcceptedMessage(id=receipt.id, status=receipt.status)


@router.post("/sync", status_code=202, responses=answers(400, 403, 413))
async def sync(request: Request, caller: Caller, message: SyncOffline) -> AcceptedChanges:
    """Apply what a device did offline; a job for each entity."""
    caller.owns(message.org_id)
    system, jobs = system_of(request), list[str]()
    async with system.pg.transaction("sync") as connection:
        for part in message.by_entity():
            options = {"key": part.entity_key, "id": str(key_of(part))}
            job, _ = await enqueue_once(
                system, connection, system.sync.apply, part, tenant=caller.tenant, **options
            )
            jobs.append(job)
    return AcceptedChanges(jobs=jobs)


def _check_storable(message: WhatsAppOutbound) -> None:
    """What PostgreSQL cannot store would be accepted here, and never be sent."""
    if message.created_at > datetime.now(UTC) + _MOST_AHEAD:
        raise Problem(422, "createdAt must not be more than a day ahead")
    said = [message.text, message.media_caption, *message.template_params]
    if any("\0" in one for one in said if one):
        raise Problem(422, "a message must have no NUL character")
