"""Rules about days: that of the voucher, of the service, of payment."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from apps.sandbox.afip.case import Case, read_day

_GOODS: Final = 1
_CONCEPTS: Final = frozenset({1, 2, 3})
_WINDOW: Final = {1: timedelta(days=5), 2: timedelta(days=10), 3: timedelta(days=10)}


def voucher_date(case: Case) -> Iterator[int]:
    """Near today; ahead only in this month, if goods are sold."""
    window = _WINDOW.get(case.detail.concept)
    if window is None:
        yield 10030
        return
    day = case.date
    if day is None or abs(day - case.today) > window:
        yield 10016
    elif case.detail.concept == _GOODS and day > case.today and day.month != case.today.month:
        yield 10152


def service_dates(case: Case) -> Iterator[int]:
    """All three or none, in order, and needed for services."""
    sent = case.detail
    texts = (sent.service_since, sent.service_until, sent.pay_by)
    if not any(texts):
        if sent.concept in _CONCEPTS - {_GOODS}:
            yield 10049
        return
    yield from (code for code, text in zip((10031, 10033, 10035), texts, strict=True) if not text)
    if not all(texts):
        return
    since, until, pay_by = (read_day(text) for text in texts)
    if since is None or until is None or pay_by is None:
        yield 10049
        return
    if since > until:
        yield 10032
    if case.date is not None and pay_by < case.date:
        yield 10036
