"""Rules about the receiver, and about the vouchers that a note is about."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Final

from apps.sandbox.afip.case import Case, read_day
from apps.sandbox.afip.classes import (
    ASSOCIABLE,
    CREDIT_NOTES,
    DOCUMENT_KINDS,
    INVOICES,
    NOTES,
    VAT_CONDITIONS,
)
from apps.sandbox.afip.detail import AssociatedLine
from apps.sandbox.afip.registry import has_check_digit

_CUIT: Final = 80
_TAX_NUMBERS: Final = frozenset({80, 86, 87})
_UNIDENTIFIED: Final = 99
_UNCATEGORISED: Final = 23_000_000_000
_ALL_CONDITIONS: Final = VAT_CONDITIONS["C"]
_EARLIEST: Final = date(2006, 1, 1)
NEVER_EXCLUDING: Final = frozenset(
    {10017, 10041, 10063, 10188, 10209, 10217, 10234, 10235, 10236, 10237, 10238, 10245, 10249}
)
_NOT_FOR_CREDIT_NOTES: Final = frozenset({10247, 10248})


def receiver(case: Case) -> Iterator[int]:
    """A document that suits the class and the amount, and is not the issuer's."""
    sent = case.detail
    if sent.document_kind == _CUIT and sent.document_number == case.issuer:
        yield 10069
    if case.letter in ("A", "A with retention") and sent.document_kind != _CUIT:
        yield 10013
    elif sent.document_kind not in DOCUMENT_KINDS or not _is_document(case):
        yield 10015 if case.letter == "B" else 10247
    elif case.letter == "B" and sent.document_kind == _UNIDENTIFIED and _is_large(case):
        yield 10015
    yield from case.receiver_remarks


def vat_condition(case: Case) -> Iterator[int]:
    """Known, and of the class."""
    sent, terms = case.detail.vat_condition, case.terms
    if sent is None:
        yield 10246 if terms.is_vat_condition_required else 10245
    elif sent not in _ALL_CONDITIONS:
        yield 10242
    elif sent not in VAT_CONDITIONS[case.letter]:
        yield 10243


def associated(case: Case) -> Iterator[int]:
    """A note names vouchers or a period; an invoice names no period."""
    lines = case.detail.associated
    if case.kind in NOTES and not lines and case.detail.period is None:
        yield 10197
    if lines is not None and not lines:
        yield 10062
    if lines and case.kind not in ASSOCIABLE:
        yield 10040
    for one in lines or ():
        yield from _one_associated(case, one)
    keys = [(one.kind, one.point_of_sale, one.number) for one in lines or ()]
    if len({*keys}) < len(keys):
        yield 10060


def period(case: Case) -> Iterator[int]:
    """Two days in order, up to that of the voucher."""
    sent = case.detail.period
    if sent is None:
        return
    if case.kind in INVOICES:
        yield 10198
    yield from (code for code, text in zip((10199, 10203), sent, strict=True) if not text)
    since, until = (read_day(text) for text in sent)
    if sent[0] and since is None:
        yield 10204
    if sent[1] and until is None:
        yield 10205
    if since is None or until is None:
        return
    if min(since, until) <= _EARLIEST:
        yield 10206
    if until < since:
        yield 10207
    if case.date is not None and until > case.date:
        yield 10208


def is_excluding(code: int, kind: int) -> bool:
    """Whether a voucher with this remark gets no CAE."""
    if code in _NOT_FOR_CREDIT_NOTES:
        return kind not in CREDIT_NOTES
    return code not in NEVER_EXCLUDING


def _is_document(case: Case) -> bool:
    kind, number = case.detail.document_kind, case.detail.document_number
    if kind == _UNIDENTIFIED:
        return number == 0
    if kind in _TAX_NUMBERS and number != _UNCATEGORISED:
        return has_check_digit(number)
    return number > 0


def _is_large(case: Case) -> bool:
    return case.detail.total * (case.detail.rate or 1) >= case.terms.identified_from


def _one_associated(case: Case, one: AssociatedLine) -> Iterator[int]:
    if one.kind <= 0:
        yield 10057
    elif case.kind in ASSOCIABLE and one.kind not in ASSOCIABLE[case.kind]:
        yield 10040
    if not 0 < one.point_of_sale < 99_999:
        yield 10058
    if not 0 < one.number < 99_999_999:
        yield 10059
    if one.cuit is not None and not (len(one.cuit) == 11 and one.cuit.isdigit()):
        yield 10151
    if one.date is not None and read_day(one.date) is None:
        yield 10213
    found = case.find(one)
    if found is None:
        yield 10041
    elif case.kind in CREDIT_NOTES and case.detail.total > found.total:
        yield 10237
