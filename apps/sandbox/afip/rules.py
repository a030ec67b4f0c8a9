"""What FECAESolicitar checks of a request and of each voucher; codes as in AFIP's manual 4.7.

Left out: optional data, several buyers, activities, and all that only AFIP's own registers know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from apps.sandbox.afip import amount_rules, date_rules, party_rules
from apps.sandbox.afip.case import Case
from apps.sandbox.afip.classes import CREDIT_INVOICES, class_of
from apps.sandbox.afip.registry import Business
from apps.sandbox.afip.terms import Terms

_MOST_VOUCHERS: Final = 9_998
_MOST_POINTS_OF_SALE: Final = 99_998
_MOST_NUMBERS: Final = 99_999_999
_USED_GOODS: Final = 49


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """FeCabReq, and how many details came with it."""

    count: int
    point_of_sale: int
    kind: int
    details: int


def head_problems(head: Head, business: Business | None, terms: Terms) -> Iterator[int]:
    """What refuses the whole request."""
    if business is None or not business.is_active:
        yield 10000
        return
    if head.kind in CREDIT_INVOICES or head.kind == _USED_GOODS:
        yield 10000
    if not 1 <= head.count <= _MOST_VOUCHERS:
        yield 10001
    if head.count != head.details:
        yield 10002
    if head.details > terms.most_per_request:
        yield 10003
    if not 1 <= head.point_of_sale <= _MOST_POINTS_OF_SALE:
        yield 10004
    elif head.point_of_sale not in business.points_of_sale:
        yield 10005
    if head.kind <= 0:
        yield 10006
    elif class_of(head.kind) is None:
        yield 10007


def number_problems(case: Case) -> Iterator[int]:
    """What no number can be like; only then it is asked whether it is the next one."""
    sent = case.detail
    if not 1 <= sent.first <= _MOST_NUMBERS:
        yield 10008
    if not 1 <= sent.last <= _MOST_NUMBERS:
        yield 10010
    if sent.last == sent.first:
        return
    if case.letter != "B":
        yield 10012
    elif sent.last < sent.first:
        yield 10011
    elif sent.total * (sent.rate or 1) / (sent.last - sent.first + 1) >= case.terms.identified_from:
        yield 10014
    elif (sent.document_kind, sent.document_number) != (99, 0):
        yield 10015


def remarks(case: Case) -> tuple[list[int], list[int]]:
    """What refuses a voucher, and what is only observed."""
    checks = (
        party_rules.receiver,
        date_rules.voucher_date,
        date_rules.service_dates,
        amount_rules.amounts,
        amount_rules.vat,
        amount_rules.tributes,
        amount_rules.currency,
        party_rules.associated,
        party_rules.period,
        party_rules.vat_condition,
    )
    found = dict.fromkeys(code for check in checks for code in check(case))
    excluding = [code for code in found if party_rules.is_excluding(code, case.kind)]
    return excluding, [code for code in found if code not in excluding]
