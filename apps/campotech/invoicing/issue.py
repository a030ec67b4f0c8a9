"""Asks the tax office for the CAE of an invoice: one for each, and numbers without gaps.

    1. number    the last one of the series and one, written down before it is sent, with what is
                 sent about the customer
    2. send      an answer is written down with the audit log; a refusal gives the number up
    3. recover   an invoice that has its number was sent before, perhaps: AFIP is asked for it first

The jobs of an organisation run one after the other, and a job that fails holds back those behind
it. So a series has one writer, and what died between two steps is finished by the next attempt.
A worker that was frozen and comes back can do no harm: AFIP takes each number once, and the rows
are changed only by who finds them as they were.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import ZoneInfo

from psycopg.types.json import Jsonb

from apps.campotech.invoicing import invoice as invoices
from apps.campotech.invoicing.invoice import Invoice
from apps.campotech.invoicing.money import pesos
from apps.campotech.messages import AfipInvoice, InvoicePdf
from apps.campotech.upkeep.owner import tell_owners
from apps.providers.afip import (
    Authorized,
    Client,
    Different,
    NumberTaken,
    Permanent,
    Rejected,
    TicketHeld,
)
from faena import Discard, Snooze, Upstream
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

BUENOS_AIRES: Final = ZoneInfo("America/Argentina/Buenos_Aires")
_OLDEST: Final = timedelta(days=5)
"""How old a voucher may be when the tax office gets it."""
_SOON: Final = "1s"
_NUMBER: Final = """
    UPDATE campotech.invoices one SET number = %(number)s, voucher_date = %(day)s, problem = NULL,
        status = 'sending', sent_tax_id = %(tax_id)s, sent_vat_condition = %(condition)s
    WHERE id = %(id)s AND status IN ('pending', 'sending') AND number IS NULL AND NOT EXISTS (
        SELECT FROM campotech.invoices holder WHERE holder.number = %(number)s
            AND holder.organization_id = one.organization_id AND holder.kind = one.kind
            AND holder.point_of_sale = one.point_of_sale)
"""
_ISSUED: Final = """
    UPDATE campotech.invoices SET status = 'issued', cae = %s, cae_expires = %s, issued_at = now(),
        problem = NULL
    WHERE id = %s AND number = %s AND status = 'sending'
"""
_GIVEN_UP: Final = """
    UPDATE campotech.invoices SET status = %s, number = NULL, voucher_date = NULL, problem = %s,
        sent_tax_id = NULL, sent_vat_condition = NULL
    WHERE id = %s AND status IN ('pending', 'sending')
"""
_SAME_PROBLEM: Final = """
    SELECT 1 FROM campotech.invoices
    WHERE organization_id = %(org)s AND problem = %(problem)s AND status IN ('pending', 'sending')
    LIMIT 1
"""
_PROBLEM: Final = """
    UPDATE campotech.invoices SET problem = %(problem)s WHERE id = %(id)s AND cae IS NULL
"""
_AUDIT: Final = """
    INSERT INTO campotech.audit_logs (organization_id, subject, action, detail)
    VALUES (%s, %s, %s, %s)
"""


class Cae(NamedTuple):
    """What an invoice has got."""

    number: int
    cae: str
    expires: date


class Issuing:
    """The task `request_cae` of the queue `afip.invoice`."""

    def __init__(self, system: System, client: Client, upstream: Upstream) -> None:
        self._system, self._pg = system, system.pg
        self._client, self._upstream = client, upstream
        queue = system.queues["afip.invoice"]
        self.request_cae = queue.task(name="request_cae", upstreams=[upstream])(self._request_cae)

    async def _request_cae(self, message: AfipInvoice) -> Cae:
        """Get the CAE, then have the PDF made and sent."""
        one = await self._find(message)
        if one.cae is None:
            one = await self._issue(one)
        await self.follow_up(message)
        return _cae_of(one)

    async def _find(self, message: AfipInvoice) -> Invoice:
        async with self._pg.transaction("invoice") as connection:
            found = await invoices.find(connection, message.org_id, message.invoice_id)
        if found is None:
            raise Discard(f"no invoice {message.invoice_id} in this organisation")
        if found.status == "failed":
            raise Discard(f"invoice {message.invoice_id} was refused before; make a new one")
        said = (message.invoice_type, message.punto_venta, message.total_centavos)
        if said != (found.kind, found.point_of_sale, found.total_cents):
            raise Discard(f"invoice {message.invoice_id} is not what the message says")
        return found

    async def _issue(self, one: Invoice) -> Invoice:
        try:
            async with self._upstream.call():
                return await self._authorize(one)
        except Rejected as error:
            await self._give_up(one, "failed", str(error))
            raise Discard(str(error)) from error
        except Permanent as error:  # the organisation's certificate or rights: not the invoice's
            await self._note_problem(one, str(error))
            raise Discard(str(error)) from error

    # -- with the tax office ----------------------------------------------------------------------

    async def _authorize(self, one: Invoice) -> Invoice:
        """In one call: its limit is one of invoices."""
        try:
            if one.number is not None:
                known = await self._recover(one)
                if known is not None and known.cae is not None:
                    return known
                one = known or replace(one, number=None, voucher_date=None)
            return await self._send(await self._with_number(one))
        except TicketHeld as error:  # of this organisation only: AFIP itself is well
            raise Snooze(timedelta(seconds=error.retry_after or 60)) from error

    async def _recover(self, one: Invoice) -> Invoice | None:
        """As AFIP knows it: with its CAE, still to be sent, or None if the number is another's."""
        found = await self._client.recover(one.cuit, one.voucher())
        if isinstance(found, Authorized):
            return await self._note_issued(one, found)
        if isinstance(found, Different):
            await self._give_up(one, "pending", "the number belongs to another voucher")
            return None
        if not found.is_next or _today() - (one.voucher_date or _today()) > _OLDEST:
            await self._give_up(one, "pending", "it was not sent in time")
            return None
        return one

    async def _with_number(self, one: Invoice) -> Invoice:
        """Write the number down before it is sent."""
        if one.number is not None:
            return one
        _check(one)
        last = await self._client.last_authorized(one.cuit, *one.series)
        numbered = replace(one, number=last + 1, voucher_date=_today(), status="sending")
        if not await self._note_number(numbered):
            await self._settle_holder(one, last + 1)
            raise Snooze(_SOON)
        return numbered

    async def _settle_holder(self, one: Invoice, number: int) -> None:
        """An invoice whose job has died may have been sent: find out, or free its number.

        Either way this one is tried again at once, and uses no attempt.
        """
        async with self._pg.transaction("invoice") as connection:
            holder = await invoices.find_number(connection, one, number)
        if holder is not None and holder.cae is None and await self._recover(holder) == holder:
            await self._give_up(holder, "pending", "it was not sent")

    async def _send(self, one: Invoice) -> Invoice:
        try:
            answer = await self._client.request_cae(one.cuit, one.voucher())
        except NumberTaken:  # perhaps by an attempt of ours whose answer was lost
            known = await self._recover(one)
            if known is not None and known.cae is not None:
                return known
            raise Snooze(_SOON) from None
        return await self._note_issued(one, answer)

    # -- in the database --------------------------------------------------------------------------

    async def _note_number(self, one: Invoice) -> bool:
        """Whether it has the number now: not if another invoice has it, or another worker acts."""
        given = {
            "number": one.number,
            "day": one.voucher_date,
            "id": one.id,
            "tax_id": one.tax_id,
            "condition": one.vat_condition,
        }
        async with self._pg.transaction("invoice") as connection:
            return (await connection.execute(_NUMBER, given)).rowcount == 1

    async def _note_problem(self, one: Invoice, problem: str) -> None:
        """The owners are told of a problem when the first of their invoices has it."""
        given = {"problem": problem, "id": one.id, "org": one.organization_id}
        async with self._pg.transaction("invoice") as connection:
            is_known = await (await connection.execute(_SAME_PROBLEM, given)).fetchone()
            await connection.execute(_PROBLEM, given)
            if is_known is None:
                await self._tell(connection, one, f"Las facturas esperan. Error: {problem}")

    async def _note_issued(self, one: Invoice, answer: Authorized) -> Invoice:
        async with self._pg.transaction("invoice") as connection:
            await note_issued(connection, one, answer)
        return replace(one, cae=answer.cae, cae_expires=answer.expires_on, status="issued")

    async def _give_up(self, one: Invoice, status: str, problem: str) -> None:
        """Free its number; a pending one is tried again with another, of a failed one the owners
        are told."""
        async with self._pg.transaction("invoice") as connection:
            if not (await connection.execute(_GIVEN_UP, [status, problem, one.id])).rowcount:
                return
            await connection.execute(
                _AUDIT,
                [one.organization_id, str(one.id), f"cae {status}", Jsonb({"problem": problem})],
            )
            if status == "failed":
                name = f"La factura {one.kind} de {one.receiver} por {pesos(one.total_cents)}"
                await self._tell(connection, one, f"{name} no pudo procesarse. Error: {problem}")

    async def _tell(self, connection: Connection, one: Invoice, text: str) -> None:
        said, data = ("Error en facturación AFIP", text), {"invoiceId": str(one.id)}
        await tell_owners(self._system, connection, one.organization_id, said, data=data)

    async def follow_up(self, message: AfipInvoice) -> None:
        """The PDF, then the message: one flow for each invoice, however often this is done."""
        flow = self._system.app.flow("invoice", id=f"inv-{message.invoice_id.hex}")
        tenant = str(message.org_id)
        wanted = wanted_document(message)
        made = flow.add(self._system.documents.render.draft(wanted, tenant=tenant))
        flow.add(self._system.documents.announce.draft(wanted, tenant=tenant), after=[made])
        await flow.start()


async def note_issued(connection: Connection, one: Invoice, answer: Authorized) -> bool:
    """Write down the CAE that AFIP has given, or had given; False if that was done before."""
    given = [answer.cae, answer.expires_on, one.id, one.number]
    if not (await connection.execute(_ISSUED, given)).rowcount:
        return False
    detail = Jsonb({"number": answer.number, "cae": answer.cae})
    await connection.execute(_AUDIT, [one.organization_id, str(one.id), "cae given", detail])
    return True


def wanted_document(message: AfipInvoice) -> InvoicePdf:
    """What asks for the PDF of an invoice, and for its announcement."""
    common = message.model_dump(include={"org_id", "idempotency_key", "created_at"})
    return InvoicePdf(**common, invoice_id=message.invoice_id)


def _check(one: Invoice) -> None:
    """Refuse what AFIP would, before it has a number: a number that cannot be sent, nor asked for,
    would hold up its series."""
    try:
        replace(one, number=1, voucher_date=_today()).voucher()
    except ValueError as error:
        raise Rejected(f"no voucher can be like that: {error}") from error


def _cae_of(one: Invoice) -> Cae:
    if one.number is None or one.cae is None or one.cae_expires is None:
        raise ValueError(f"invoice {one.id} must have its CAE first")
    return Cae(one.number, one.cae, one.cae_expires)


def _today() -> date:
    return datetime.now(BUENOS_AIRES).date()
