"""Makes invoices: each is stored with the job that asks for its CAE, in one transaction.

The same key is the same invoice. A job of the field is billed once, whoever asks for it and however
often.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import NAMESPACE_OID, UUID, uuid5

from apps.campotech.invoicing.pending import message_of
from apps.campotech.keys import key_of
from apps.campotech.messages.fields import MOST_PESOS
from apps.providers.afip import VatCondition
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

_OWN: Final = (
    "SELECT 1 FROM campotech.customers WHERE id = %(customer)s AND organization_id = %(org)s"
)
_STORE: Final = """
    INSERT INTO campotech.invoices (id, organization_id, customer_id, kind, point_of_sale,
        net_cents, vat_cents, description, job_id, due_at)
    VALUES (%(id)s, %(org)s, %(customer)s, %(kind)s, %(point)s, %(net)s, %(vat)s, %(text)s, %(job)s,
        now() + interval '10 days')
    ON CONFLICT (id) DO NOTHING
    RETURNING created_at
"""
_SAME: Final = """
    SELECT (customer_id, kind, point_of_sale, net_cents, description, job_id)
        IS NOT DISTINCT FROM
        (%(customer)s, %(kind)s::bpchar, %(point)s, %(net)s, %(text)s, %(job)s::uuid)
    FROM campotech.invoices WHERE id = %(id)s
"""
_JOB: Final = """
    SELECT one.status, one.customer_id, one.total_cents, one.description, owner.vat_condition,
        owner.point_of_sale, customer.vat_condition, customer.tax_id
    FROM campotech.jobs one
    JOIN campotech.organizations owner ON owner.id = one.organization_id
    LEFT JOIN campotech.customers customer
        ON customer.id = one.customer_id AND customer.organization_id = one.organization_id
    WHERE one.id = %s AND one.organization_id = %s
"""
_BILLED: Final = "SELECT status FROM campotech.invoices WHERE id = %s"
_CLASS_A: Final = frozenset({1, 6, 13, 16})
"""Conditions of those who get an invoice A."""
_VAT_PERCENT: Final = 21
_LONGEST: Final = 1000
_MOST_CENTS: Final = int(MOST_PESOS * 100)


class NotBillable(Exception):
    """Why there can be no such invoice, in words for who asked."""


class AnotherInvoice(NotBillable):
    """The key is that of an invoice with other data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInvoice:
    """An invoice that is to be issued."""

    organization: UUID
    key: str
    """Tells it from others of the organisation."""
    customer: UUID
    kind: str
    point_of_sale: int
    net_cents: int
    """Without VAT; class C has none."""
    description: str = ""
    job: UUID | None = None

    @property
    def id(self) -> UUID:
        """The same for the same key."""
        return _name(self.organization, self.key)

    @property
    def vat_cents(self) -> int:
        """21 %, to the nearest centavo."""
        return 0 if self.kind == "C" else (self.net_cents * _VAT_PERCENT + 50) // 100

    def values(self) -> dict[str, Any]:
        """As the statements name them."""
        return {
            "id": self.id,
            "org": self.organization,
            "customer": self.customer,
            "kind": self.kind,
            "point": self.point_of_sale,
            "net": self.net_cents,
            "vat": self.vat_cents,
            "text": self.description,
            "job": self.job,
        }


class Billing:
    """Whoever makes an invoice does it here."""

    def __init__(self, system: System) -> None:
        self._system = system

    async def store(self, connection: Connection, new: NewInvoice) -> bool:
        """Store an invoice with its job; False if it was there. Raises NotBillable."""
        given = new.values()
        if new.net_cents + new.vat_cents > _MOST_CENTS:
            raise NotBillable("net must be such that the total has at most thirteen digits")
        if await (await connection.execute(_OWN, given)).fetchone() is None:
            raise NotBillable("customerId must be a customer of this organisation")
        made = await (await connection.execute(_STORE, given)).fetchone()
        if made is None:
            same = await (await connection.execute(_SAME, given)).fetchone()
            if same is None or not same[0]:
                raise AnotherInvoice("another invoice has this key")
            return False
        message = message_of(
            new.id,
            new.organization,
            new.customer,
            new.kind,
            new.point_of_sale,
            new.net_cents + new.vat_cents,
            made[0],
        )
        await self._system.pg.outbox.enqueue(
            connection,
            self._system.issuing.request_cae,
            message,
            tenant=str(new.organization),
            id=str(key_of(message)),
        )
        return True

    async def bill_job(self, connection: Connection, organization: UUID, job: UUID) -> UUID:
        """The invoice of a completed job: a new one, or the one that it has. One that AFIP has
        refused is none: once its cause is mended, the job gets another."""
        row = await (await connection.execute(_JOB, [job, organization])).fetchone()
        if row is None:
            raise NotBillable(f"no job {job} in this organisation")
        status, customer, total, text, issuer, point, receiver, tax_id = row
        number, name = 1, name_of(organization, job)
        while known := await (await connection.execute(_BILLED, [name])).fetchone():
            if known[0] != "failed":
                return name  # what has been billed stays as it is, whatever the job says now
            number += 1
            name = name_of(organization, job, number)
        given = {"customer_id": customer, "total_cents": total}
        if receiver is None or not is_billable(status, given):
            raise NotBillable(f"job {job} must be completed, and have a customer and a total")
        kind = kind_of(issuer, receiver, tax_id)
        new = NewInvoice(
            organization=organization,
            key=_key(job, number),
            customer=customer,
            kind=kind,
            point_of_sale=point,
            net_cents=net_of(total, kind),
            description=text[:_LONGEST],
            job=job,
        )
        await self.store(connection, new)
        return new.id


def name_of(organization: UUID, job: UUID, number: int = 1) -> UUID:
    """What the invoice of a job is called, also before there is one; a second one is only made
    after AFIP has refused the first."""
    return _name(organization, _key(job, number))


def is_billable(status: str, job: Mapping[str, Any]) -> bool:
    """Whether a job has what an invoice needs."""
    return status == "completed" and job["customer_id"] is not None and bool(job["total_cents"])


def _key(job: UUID, number: int) -> str:
    return f"job-{job}" if number == 1 else f"job-{job}-{number}"


def _name(organization: UUID, key: str) -> UUID:
    return uuid5(NAMESPACE_OID, f"invoice {organization} {key}")


def kind_of(issuer: int, receiver: int, tax_id: str | None) -> str:
    """The class of an invoice: by the VAT conditions of who issues and who receives it."""
    if issuer != VatCondition.REGISTERED:
        return "C"
    if receiver not in _CLASS_A:
        return "B"
    if tax_id is None or len(tax_id) != 11:
        raise NotBillable("the customer must have a CUIT to get an invoice A")
    return "A"


def net_of(total_cents: int, kind: str) -> int:
    """What is left of a price without its VAT, so that both make the price again where possible."""
    if kind == "C":
        return total_cents
    return (total_cents * 100 + 60) // (100 + _VAT_PERCENT)
