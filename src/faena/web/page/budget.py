"""Budgets as bars: what is spent, what calls under way hold, what is foreseen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from faena.engine.calls.budget_view import BudgetView
from faena.values.money import Money
from faena.web.figure import Figures
from faena.web.words import Speaker

_FULL: Final = 100.0
_NEAR: Final = 80.0


class Bar(NamedTuple):
    """One budget."""

    name: str
    """Its upstream, or that it is of all."""
    upstream: str | None
    whose: str
    """The tenant, where each has it."""
    period: str
    spent: str
    amount: str
    left: str
    percent: str
    width: float
    """What is spent, in percent of the bar."""
    ahead: float
    """With what is reserved or foreseen."""
    marks: Sequence[int]
    """The thresholds, in percent."""
    kind: str
    word: str
    ends: str
    label: str
    rank: tuple[int, float]
    """Worst first."""


def bars(
    budgets: Sequence[BudgetView],
    now: int,
    say: Speaker,
    foreseen: Mapping[str, Money] | None = None,
) -> list[Bar]:
    """Budgets, those that are used up first; `foreseen` is what upstreams cost in the month."""
    found = [_bar(one, now, say, (foreseen or {}).get(one.upstream or "")) for one in budgets]
    return sorted(found, key=lambda one: one.rank)


def _bar(one: BudgetView, now: int, say: Speaker, foreseen: Money | None) -> Bar:
    write = Figures(say)
    kind, word = _state(one, say)
    percent = write.percent(one.percent / 100)
    held = one.spent.micro + one.reserved.micro
    if foreseen is not None and one.per == "month" and not one.is_each_tenants:
        held = max(held, foreseen.micro)
    period = say("today") if one.per == "day" else say("this month")
    is_now = one.ends_at > now
    return Bar(
        name=one.upstream or say("all in {currency}", currency=one.amount.currency),
        upstream=one.upstream,
        whose=(one.tenant or say("each tenant")) if one.is_each_tenants else "",
        period=period if is_now else one.period,
        spent=write.money(one.spent),
        amount=write.money(one.amount),
        left=write.money(one.left),
        percent=percent,
        width=_width(one.spent, one.amount),
        ahead=_width(Money(held, one.amount.currency), one.amount),
        marks=[mark for mark in one.thresholds if mark < _FULL],
        kind=kind,
        word=word,
        ends=write.ago(one.ends_at, now) if is_now else "",
        label=say("{percent} of {amount} spent", percent=percent, amount=write.money(one.amount)),
        rank=({"crit": 0, "warn": 1}.get(kind, 2), -one.percent),
    )


def _width(part: Money, whole: Money) -> float:
    return round(min(_FULL, 100 * part.micro / whole.micro), 1) if whole.micro else 0.0


def _state(one: BudgetView, say: Speaker) -> tuple[str, str]:
    if one.is_used_up:
        return ("crit", say("used up: calls stop")) if one.is_hard else ("warn", say("used up"))
    if one.is_full and one.is_hard:
        return "warn", say("reserved by calls under way")
    if one.soft and one.percent >= 100 * one.soft:
        return "warn", say("calls should be frugal")
    return ("warn", say("nearly used up")) if one.percent >= _NEAR else ("ok", say("within"))
