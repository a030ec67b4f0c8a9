"""Invoices: ask the tax office for a CAE, then make the PDF."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt

from apps.campotech.messages.base import Message
from apps.campotech.messages.fields import Id, Pesos


class AfipInvoice(Message):
    """An invoice that needs a CAE."""

    invoice_id: Id
    invoice_type: Literal["A", "B", "C"]
    punto_venta: Annotated[StrictInt, Field(ge=1, le=99_999)]
    customer_id: Id
    total: Pesos

    @property
    def total_centavos(self) -> int:
        """The total as a whole number."""
        return int(self.total * 100)


class InvoicePdf(Message):
    """An invoice that has its CAE and becomes a PDF."""

    invoice_id: Id
    regenerate: StrictBool = False
    send_after: StrictBool = True
    version: Annotated[StrictInt, Field(ge=1, le=9_999)] | None = None
    """Which version of the PDF it is; None: the first one or, if it is made again, one that the
    idempotency key tells from others. The specification's key names it, its schema forgot it."""
