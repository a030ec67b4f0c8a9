"""Budgets as readers see them, at one instant or in a period that is over."""

from __future__ import annotations

import calendar
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from faena.values.money import Money
from faena.values.view import View

_DAY_US: Final = 86_400_000_000


class BudgetRow(msgspec.Struct, array_like=True, frozen=True):
    """A budget in one period, as a script tells it."""

    upstream: str
    """Empty for one of all upstreams of a currency."""
    currency: str
    settings: Sequence[Any]
    """As the server keeps them: period, limit, is hard, soft, thresholds, is each tenant's."""
    period: str
    tenant: str
    """Whose, where each tenant has it; empty if no tenant has spent anything."""
    spent: str
    reserved: str
    call: int
    """What one more call is estimated to cost; 0 where that differs."""


class BudgetView(View, frozen=True, kw_only=True):
    """How much of a budget is used in a period."""

    also = ("left", "percent")

    upstream: str | None
    """None for one of all upstreams of its currency."""
    per: Literal["day", "month"]
    period: str
    """The day or month, in UTC, such as 2026-11-16 or 2026-11."""
    ends_at: int
    """When the period ends, in the server's microseconds."""
    amount: Money
    spent: Money
    reserved: Money
    """For calls that are under way; nothing in a period that is over."""
    is_hard: bool
    """Whether calls stop when it is used up."""
    is_used_up: bool
    """Whether what is spent leaves no room for one more call, if that costs what is estimated."""
    is_full: bool
    """Whether what is spent and reserved leaves no room for it: some may come back."""
    soft: float | None
    """The share beyond which calls should be frugal; the coming call's estimate counts."""
    thresholds: tuple[int, ...]
    """Percents; reaching one is an event, and an alert where there are some."""
    is_each_tenants: bool
    tenant: str | None
    """Whose it is, where each tenant has it: the one asked for, or the one that has spent most."""

    @property
    def left(self) -> Money:
        """What can still be reserved."""
        micro = self.amount.micro - self.spent.micro - self.reserved.micro
        return Money(max(0, micro), self.amount.currency)

    @property
    def percent(self) -> float:
        """How much of it is spent; more than 100 where calls have cost more than estimated."""
        return round(100 * self.spent.micro / self.amount.micro, 2)

    @property
    def label(self) -> str:
        """It, as part of a sentence about its upstream."""
        of = f"{self.amount} per {self.per}"
        if self.upstream is None:
            return f"the total budget of {of}"
        return f"its tenant budget of {of}" if self.is_each_tenants else f"its budget of {of}"


def budget_views(rows: Sequence[BudgetRow]) -> Iterator[BudgetView]:
    """Those of upstreams first, in order of their names."""
    for row in sorted(rows, key=lambda one: (not one.upstream, one.upstream, one.currency)):
        letter, limit, is_hard, soft, thresholds, is_each = row.settings
        spent, reserved, call = read_micro(row.spent), read_micro(row.reserved), max(1, row.call)
        yield BudgetView(
            upstream=row.upstream or None,
            per="day" if letter == "d" else "month",
            period=dashed(row.period),
            ends_at=span(row.period)[1],
            amount=Money(int(limit), row.currency),
            spent=Money(spent, row.currency),
            reserved=Money(reserved, row.currency),
            is_hard=is_hard == 1,
            is_used_up=spent + call > limit,
            is_full=spent + reserved + call > limit,
            soft=soft or None,
            thresholds=tuple(thresholds),
            is_each_tenants=is_each == 1,
            tenant=row.tenant or None,
        )


def span(period: str) -> tuple[int, int]:
    """When a day or a month such as 202611 begins and ends, in microseconds."""
    year, month, day = int(period[:4]), int(period[4:6]), int(period[6:] or 1)
    length = 1 if period[6:] else calendar.monthrange(year, month)[1]
    begin = calendar.timegm((year, month, day, 0, 0, 0)) * 1_000_000
    return begin, begin + length * _DAY_US


def dashed(period: str) -> str:
    """A day or a month for readers."""
    return "-".join(part for part in (period[:4], period[4:6], period[6:]) if part)


def read_micro(text: str) -> int:
    """A score may be written like a float."""
    return int(text) if text.isdecimal() else int(float(text))
