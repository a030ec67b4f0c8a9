"""Costs: what is spent, where it ends this month, and who spends it."""

from __future__ import annotations

import asyncio
import calendar
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from faena.resilience.costs import CostReport, ServiceCost
from faena.values.money import Money
from faena.web.answer import Refusal
from faena.web.curve import top
from faena.web.figure import NONE, Figures
from faena.web.page.budget import Bar, bars
from faena.web.route import Visit
from faena.web.site import Site
from faena.web.template import spoken
from faena.web.words import Speaker

_MONTH: Final = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")
_MONTHS: Final = 4
"""Costs are kept for ninety days."""
_TENANTS: Final = 100
_SHOWN: Final = 12
_WIDTH, _HEIGHT = 600, 140


class Service(NamedTuple):
    """One upstream that costs something, or has a budget."""

    name: str
    spent: str
    forecast: str
    tasks: Sequence[str]
    budgets: Sequence[Bar]
    kind: str
    word: str


class Spender(NamedTuple):
    """A tenant or a task."""

    name: str
    spent: str
    width: float
    most: str
    """What most of it is for."""


class Days(NamedTuple):
    """What was spent a day, in one currency."""

    currency: str
    says: str
    spent: str
    ahead: str
    limit: str
    y: Sequence[str]
    x: Sequence[str]
    share: str


async def costs(visit: Visit) -> Response:
    """A month, by default this one, or a day."""
    say, asked = Speaker(spoken(visit)), visit.request.query_params.get("month") or None
    now = datetime.now(UTC)
    months = _months(now)
    if asked is not None and not _MONTH.fullmatch(asked):
        raise Refusal(422, "invalid", "month must be one such as 2026-11")
    day = visit.request.query_params.get("day") or None
    month = day[:7] if day else asked or months[-1]
    report, budgets = await asyncio.gather(
        visit.app.cost_report(month=None if day else month, day=day, top=_TENANTS),
        visit.app.budget_views(),
    )
    is_now = month == months[-1] and day is None
    writer = _Writer(report, budgets if is_now else report.budgets, say)
    return visit.site.templates.page(
        visit,
        "costs.html",
        report=report,
        month=month,
        day=day,
        period=day or _named(month, say),
        months=[(one, say(_NAMES[int(one[5:]) - 1])) for one in months],
        is_now=is_now,
        summary=writer.summary(),
        facts=writer.facts(is_now=is_now),
        totals=[one for one in writer.bars if one.upstream is None],
        services=writer.services(),
        tenants=writer.tenants(),
        tasks=writer.tasks(),
        days=[*writer.days()],
        is_own=visit.app.upstream_control.declares_totals,
    )


def _months(now: datetime) -> list[str]:
    """The months that are kept, this one last."""
    number = now.year * 12 + now.month - 1
    return [f"{one // 12:04}-{one % 12 + 1:02}" for one in range(number - _MONTHS + 1, number + 1)]


_NAMES: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def _named(month: str, say: Speaker) -> str:
    return f"{say(_NAMES[int(month[5:]) - 1])} {month[:4]}"


class _Writer:
    """Writes a report for one reader."""

    def __init__(self, report: CostReport, budgets: Sequence[Any], say: Speaker) -> None:
        self._report, self._say, self._write = report, say, Figures(say)
        foreseen = {one.upstream: one.forecast for one in report.services if one.forecast}
        self.bars = bars(budgets, report.at, say, foreseen)
        self._budgets = budgets

    def summary(self) -> str:
        """Which budget is worst, or what is spent."""
        say, worst = self._say, [one for one in self.bars if one.kind != "ok"]
        spent = say("{amounts} spent.", amounts=self._sum(self._report.spent))
        if not worst:
            return spent
        first = say(
            "{name}: {percent} of {amount} for {period} is spent: {word}.",
            name=worst[0].name,
            percent=worst[0].percent,
            amount=worst[0].amount,
            period=worst[0].period,
            word=worst[0].word,
        )
        more = len(worst) - 1
        rest = say("{n} more {n|needs|need} attention.", n=more) if more else ""
        return " ".join(part for part in (first, rest, spent) if part)

    def facts(self, *, is_now: bool) -> list[tuple[str, str]]:
        """The figures at the top."""
        report, say = self._report, self._say
        today = datetime.fromtimestamp(report.at / 1e6, UTC).date().isoformat()
        lately = next((one.spent for one in report.days if one.day == today), ())
        held = [one.reserved for one in self._budgets if one.reserved.micro and one.per == "month"]
        found = [(say("Spent"), self._sum(report.spent))]
        if is_now:
            foreseen = [_rounded(one) for one in report.forecast or ()]
            forecast = self._sum([one for one in foreseen if one is not None])
            found.append((say("Forecast to the end of the month"), forecast))
            found.append((say("Today"), self._sum(lately)))
            found.append((say("Reserved by calls under way"), self._sum(held)))
        return found

    def services(self) -> list[Service]:
        """Upstreams, those whose budgets are worst first."""
        costs = {one.upstream: one for one in self._report.services}
        mine: dict[str, list[Bar]] = {}
        for bar in self.bars:
            if bar.upstream is not None:
                mine.setdefault(bar.upstream, []).append(bar)
        names = {**costs, **mine}
        found = [self._service(name, costs.get(name), mine.get(name, [])) for name in names]
        ranks = {"crit": 0, "warn": 1}
        return sorted(found, key=lambda one: ranks.get(one.kind, 2))

    def _service(self, name: str, cost: ServiceCost | None, budgets: Sequence[Bar]) -> Service:
        kind, word = (budgets[0].kind, budgets[0].word) if budgets else ("idle", "")
        return Service(
            name=name,
            spent=NONE if cost is None else self._write.money(cost.spent),
            forecast=NONE if cost is None else self._write.money(_rounded(cost.forecast)),
            tasks=[one.task for one in cost.tasks[:3]] if cost else [],
            budgets=budgets,
            kind=kind,
            word=word,
        )

    def tenants(self) -> list[Spender]:
        """The dearest tenants, of all services of a currency together."""
        sums: dict[tuple[str, str], dict[str, int]] = {}
        for service in self._report.services:
            for one in service.top_tenants:
                mine = sums.setdefault((one.spent.currency, one.tenant), {})
                mine[service.upstream] = one.spent.micro
        return self._ranked(sums)

    def tasks(self) -> list[Spender]:
        """The dearest tasks."""
        sums: dict[tuple[str, str], dict[str, int]] = {}
        for service in self._report.services:
            for one in service.tasks:
                mine = sums.setdefault((one.spent.currency, one.task), {})
                mine[service.upstream] = one.spent.micro
        return self._ranked(sums)

    def _ranked(self, sums: Mapping[tuple[str, str], Mapping[str, int]]) -> list[Spender]:
        ranked = sorted(sums.items(), key=lambda one: (one[0][0], -sum(one[1].values())))
        most: dict[str, int] = {}
        found = list[Spender]()
        for (currency, name), parts in ranked[:_SHOWN]:
            total = sum(parts.values())
            top_of = most.setdefault(currency, total)
            dearest = max(parts, key=lambda one: parts[one])
            share = self._write.percent(parts[dearest] / total, 0) if total else ""
            width = round(100 * total / top_of, 1) if top_of else 0.0
            money = self._write.money(Money(total, currency))
            found.append(Spender(name, money, width, f"{dearest} {share}"))
        return found

    def days(self) -> Iterator[Days]:
        """A chart for each currency."""
        for total in self._report.month_spent:
            yield self._days(total.currency)

    def _days(self, currency: str) -> Days:
        report, write, say = self._report, self._write, self._say
        year, month = int(report.period[:4]), int(report.period[5:7])
        number = calendar.monthrange(year, month)[1]
        spent = [0.0] * number
        for day in report.days:
            for one in day.spent:
                if one.currency == currency:
                    spent[int(day.day[8:]) - 1] = one.micro / 1e6
        ahead = self._ahead(currency, number, spent)
        limit = self._a_day(currency, number)
        most = top([*spent, ahead, limit], 0.01)
        past = self._past(number)
        return Days(
            currency=currency,
            says=say(
                "Costs a day in {currency}: at most {amount}",
                currency=currency,
                amount=write.rough(max(spent)),
            ),
            spent=_columns(spent, most),
            ahead=_columns([0.0] * past + [ahead or 0.0] * (number - past), most),
            limit=f"M0,{_HEIGHT * (1 - limit / most):.4g}h{_WIDTH}" if limit else "",
            y=[write.rough(most), write.rough(most / 2), "0"],
            x=[str(one) for one in (1, 8, 15, 22, number)],
            share=write.rough(limit) if limit else "",
        )

    def _past(self, number: int) -> int:
        """The days of the month that have begun."""
        now = datetime.fromtimestamp(self._report.at / 1e6, UTC)
        return now.day if f"{now:%Y-%m}" == self._report.period[:7] else number

    def _ahead(self, currency: str, number: int, spent: Sequence[float]) -> float | None:
        """What each day to come is expected to cost."""
        forecast = next(
            (one for one in self._report.forecast or () if one.currency == currency), None
        )
        left = number - self._past(number)
        if forecast is None or not left:
            return None
        return max(0.0, (forecast.micro / 1e6 - sum(spent)) / left)

    def _a_day(self, currency: str, number: int) -> float | None:
        """A day's part of what may be spent in the month."""
        whole = [
            one.amount.micro
            for one in self._budgets
            if one.per == "month" and one.upstream is None and one.amount.currency == currency
        ]
        return min(whole) / 1e6 / number if whole else None

    def _sum(self, amounts: Sequence[Money]) -> str:
        sums: dict[str, int] = {}
        for one in amounts:
            sums[one.currency] = sums.get(one.currency, 0) + one.micro
        return " · ".join(self._write.money(Money(m, c)) for c, m in sorted(sums.items())) or NONE


def _rounded(amount: Money | None) -> Money | None:
    """What is foreseen is not known to the millionth."""
    return None if amount is None else amount._replace(micro=round(amount.micro, -4))


def _columns(values: Sequence[float], most: float) -> str:
    """Columns of a chart as one path."""
    step = _WIDTH / len(values)
    wide = round(step * 0.7, 1)
    return "".join(
        f"M{at * step + 0.15 * step:.4g},{_HEIGHT}h{wide}v-{_HEIGHT * value / most:.4g}h-{wide}z"
        for at, value in enumerate(values)
        if value > 0
    )


async def _figures(site: Site, say: Speaker) -> Mapping[str, str]:
    month = f"{datetime.now(UTC):%Y-%m}"
    report, budgets = await asyncio.gather(
        site.app.cost_report(month=month, top=0), site.app.budget_views()
    )
    writer = _Writer(report, budgets, say)
    found = {"summary": writer.summary()}
    found |= {f"fact.{at}": text for at, (_, text) in enumerate(writer.facts(is_now=True))}
    return found


def channel(site: Site, say: Speaker, _query: Mapping[str, Any]) -> tuple[Any, Any]:
    """What a tab with this month's costs listens to."""
    return ("costs", say.language), lambda: _figures(site, say)
