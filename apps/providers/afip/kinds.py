"""The code tables of WSFEv1 that a caller chooses from."""

from __future__ import annotations

from decimal import Decimal
from enum import IntEnum
from typing import Final


class VoucherKind(IntEnum):
    """CbteTipo. A to registered businesses, B to others, C from monotributo and exempt issuers."""

    INVOICE_A = 1
    DEBIT_NOTE_A = 2
    CREDIT_NOTE_A = 3
    RECEIPT_A = 4
    INVOICE_B = 6
    DEBIT_NOTE_B = 7
    CREDIT_NOTE_B = 8
    RECEIPT_B = 9
    INVOICE_C = 11
    DEBIT_NOTE_C = 12
    CREDIT_NOTE_C = 13
    RECEIPT_C = 15


class Concept(IntEnum):
    """What is billed. Services have days of service and of payment."""

    GOODS = 1
    SERVICES = 2
    GOODS_AND_SERVICES = 3


class DocumentKind(IntEnum):
    """DocTipo of the receiver."""

    CUIT = 80
    CUIL = 86
    CDI = 87
    PASSPORT = 94
    DNI = 96
    UNIDENTIFIED = 99
    """A final consumer without a name: document number 0."""


class VatCondition(IntEnum):
    """CondicionIVAReceptorId. Class A: 1, 6, 13, 16. Class B: the others. Class C: all."""

    REGISTERED = 1
    EXEMPT = 4
    FINAL_CONSUMER = 5
    MONOTRIBUTO = 6
    UNCATEGORISED = 7
    FOREIGN_SUPPLIER = 8
    FOREIGN_CUSTOMER = 9
    RELEASED = 10
    SOCIAL_MONOTRIBUTO = 13
    NOT_REACHED = 15
    PROMOTED_MONOTRIBUTO = 16


class VatRate(IntEnum):
    """Id of AlicIva."""

    ZERO = 3
    TEN_AND_A_HALF = 4
    TWENTY_ONE = 5
    TWENTY_SEVEN = 6
    FIVE = 8
    TWO_AND_A_HALF = 9

    @property
    def percent(self) -> Decimal:
        """Of the base."""
        return _PERCENT[self]


_PERCENT: Final = {
    VatRate.ZERO: Decimal(0),
    VatRate.TEN_AND_A_HALF: Decimal("10.5"),
    VatRate.TWENTY_ONE: Decimal(21),
    VatRate.TWENTY_SEVEN: Decimal(27),
    VatRate.FIVE: Decimal(5),
    VatRate.TWO_AND_A_HALF: Decimal("2.5"),
}
