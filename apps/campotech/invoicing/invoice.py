"""An invoice as it is stored, and as the tax office gets it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final
from uuid import UUID

from psycopg.rows import class_row

from apps.campotech.invoicing.document import Document
from apps.providers.afip import (
    Authorized,
    Concept,
    DocumentKind,
    Receiver,
    Service,
    VatCondition,
    VatLine,
    VatRate,
    Voucher,
    VoucherKind,
    qr_url,
)
from faena.pg import Connection

KINDS: Final = {
    "A": VoucherKind.INVOICE_A,
    "B": VoucherKind.INVOICE_B,
    "C": VoucherKind.INVOICE_C,
}
_FIND: Final = """
    SELECT one.id, one.organization_id, owner.name AS issuer, owner.cuit, one.customer_id,
        customer.name AS receiver, customer.phone, customer.email,
        CASE WHEN one.sent_vat_condition IS NULL THEN customer.tax_id ELSE one.sent_tax_id END
            AS tax_id,
        coalesce(one.sent_vat_condition, customer.vat_condition) AS vat_condition,
        one.kind, one.point_of_sale, one.net_cents, one.vat_cents, one.description,
        one.status, one.number, one.voucher_date, one.cae, one.cae_expires, one.pdf_key,
        one.created_at
    FROM campotech.invoices one
    JOIN campotech.organizations owner ON owner.id = one.organization_id
    JOIN campotech.customers customer ON customer.id = one.customer_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoice:
    """One row, with what is needed of its organisation and its customer."""

    id: UUID
    organization_id: UUID
    issuer: str
    cuit: str
    customer_id: UUID
    receiver: str
    tax_id: str | None
    """The customer's and, once the invoice has a number, what the tax office is told: it is asked
    for the voucher that was sent, whatever the customer's data have become."""
    vat_condition: int
    phone: str | None
    email: str | None
    kind: str
    point_of_sale: int
    net_cents: int
    vat_cents: int
    description: str
    status: str
    number: int | None
    voucher_date: date | None
    cae: str | None
    cae_expires: date | None
    pdf_key: str | None
    created_at: datetime

    @property
    def series(self) -> tuple[int, VoucherKind]:
        """What numbers it: the point of sale and the kind."""
        return self.point_of_sale, KINDS[self.kind]

    @property
    def total_cents(self) -> int:
        """What is to be paid."""
        return self.net_cents + self.vat_cents

    def voucher(self) -> Voucher:
        """What the tax office gets; it has its number by then."""
        if self.number is None or self.voucher_date is None:
            raise ValueError(f"invoice {self.id} must have its number first")
        day = self.voucher_date
        return Voucher(
            kind=KINDS[self.kind],
            point_of_sale=self.point_of_sale,
            number=self.number,
            date=day,
            receiver=self._receiver(),
            concept=Concept.SERVICES,
            service=Service(since=day, until=day, pay_by=day),
            net_cents=self.net_cents,
            vat=() if self.kind == "C" else (self._vat(),),
        )

    def document(self) -> Document:
        """What is printed; it has its CAE by then."""
        if self.cae is None or self.cae_expires is None:
            raise ValueError(f"invoice {self.id} must have its CAE first")
        voucher = self.voucher()
        known = Authorized(cae=self.cae, expires_on=self.cae_expires, number=voucher.number)
        return Document(
            issuer=self.issuer,
            issuer_cuit=self.cuit,
            receiver=self.receiver,
            receiver_id=self.tax_id,
            kind=self.kind,
            point_of_sale=self.point_of_sale,
            number=voucher.number,
            issued=voucher.date,
            description=self.description,
            net_cents=self.net_cents,
            vat_cents=self.vat_cents,
            cae=self.cae,
            cae_expires=self.cae_expires,
            qr_url=qr_url(self.cuit, voucher, known),
        )

    def _vat(self) -> VatLine:
        rate = VatRate.TWENTY_ONE if self.vat_cents else VatRate.ZERO
        return VatLine(rate=rate, base_cents=self.net_cents, amount_cents=self.vat_cents)

    def _receiver(self) -> Receiver:
        kind, number = DocumentKind.UNIDENTIFIED, 0
        if self.tax_id:
            kind = DocumentKind.CUIT if len(self.tax_id) == 11 else DocumentKind.DNI
            number = int(self.tax_id)
        return Receiver(
            document_kind=kind,
            document_number=number,
            vat_condition=VatCondition(self.vat_condition),
        )


async def find(connection: Connection, organization: UUID, invoice: UUID) -> Invoice | None:
    """An invoice of an organisation."""
    return await _one(
        connection, "WHERE one.organization_id = %s AND one.id = %s", [organization, invoice]
    )


async def find_number(connection: Connection, like: Invoice, number: int) -> Invoice | None:
    """The invoice that has a number in the series of another."""
    series = like.organization_id, like.point_of_sale, like.kind
    return await find_in_series(connection, *series, number)


async def find_in_series(
    connection: Connection, organization: UUID, point_of_sale: int, kind: str, number: int
) -> Invoice | None:
    """The invoice that has a number in a series."""
    where = """
        WHERE one.organization_id = %s AND one.point_of_sale = %s AND one.kind = %s
            AND one.number = %s
    """
    return await _one(connection, where, [organization, point_of_sale, kind, number])


async def _one(connection: Connection, where: str, given: list[Any]) -> Invoice | None:
    async with connection.cursor(row_factory=class_row(Invoice)) as cursor:
        await cursor.execute((_FIND + where).encode(), given)
        return await cursor.fetchone()
