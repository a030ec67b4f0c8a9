"""Kinds of vouchers and the classes that rules are made for."""

from __future__ import annotations

from typing import Final, Literal

Class = Literal["A", "B", "C", "A with retention", "used goods"]

_KINDS: Final[dict[Class, frozenset[int]]] = {
    "A": frozenset({1, 2, 3, 4, 5, 34, 39, 60, 63, 201, 202, 203}),
    "B": frozenset({6, 7, 8, 9, 10, 35, 40, 61, 64, 206, 207, 208}),
    "C": frozenset({11, 12, 13, 15, 211, 212, 213}),
    "A with retention": frozenset({51, 52, 53, 54}),
    "used goods": frozenset({49}),
}
CREDIT_INVOICES: Final = frozenset({201, 202, 203, 206, 207, 208, 211, 212, 213})
"""FCE, for which nobody in the sandbox is registered; nor is anybody for used goods."""
DEBIT_NOTES: Final = frozenset({2, 7, 12, 52})
CREDIT_NOTES: Final = frozenset({3, 8, 13, 53})
NOTES: Final = DEBIT_NOTES | CREDIT_NOTES
INVOICES: Final = frozenset({1, 6, 11, 51})
LOOSE_VAT: Final = frozenset({2, 3, 7, 8, 52, 53})
"""Notes whose VAT lines are hardly checked."""

_RETENTION: Final = {88, 991}
ASSOCIABLE: Final[dict[int, frozenset[int]]] = {
    **dict.fromkeys((1, 6, 51), frozenset(_RETENTION)),
    **dict.fromkeys((2, 3), frozenset({1, 2, 3, 4, 5, 34, 39, 60, 63} | _RETENTION)),
    **dict.fromkeys((7, 8), frozenset({6, 7, 8, 9, 10, 35, 40, 61, 64} | _RETENTION)),
    **dict.fromkeys((12, 13), frozenset({11, 12, 13, 15})),
    **dict.fromkeys((52, 53), frozenset({51, 52, 53, 54} | _RETENTION)),
}
"""What may be associated with a voucher of a kind."""

VAT_CONDITIONS: Final[dict[Class, frozenset[int]]] = {
    "A": frozenset({1, 6, 13, 16}),
    "A with retention": frozenset({1, 6, 13, 16}),
    "B": frozenset({4, 5, 7, 8, 9, 10, 15}),
    "C": frozenset({1, 4, 5, 6, 7, 8, 9, 10, 13, 15, 16}),
    "used goods": frozenset({5}),
}
DOCUMENT_KINDS: Final = frozenset({*range(15), *range(16, 25), 80, 86, 87, *range(89, 97), 99})


def class_of(kind: int) -> Class | None:
    """The class of a kind of voucher; None if there is no such kind."""
    return next((name for name, kinds in _KINDS.items() if kind in kinds), None)
