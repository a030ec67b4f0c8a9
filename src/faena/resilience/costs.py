"""Reports of what calls to upstreams cost, and of how much of each budget is used."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, Literal

from faena.engine import Engine
from faena.engine.calls import resilience, spending
from faena.engine.calls.budget_view import BudgetView, budget_views, dashed, read_micro, span
from faena.engine.calls.spending import SeenCosts, ServiceRow
from faena.errors import ConfigError, shown
from faena.resilience.money import TOTALS
from faena.values.money import Money
from faena.values.names import check_label
from faena.values.numbers import check_whole
from faena.values.view import View

_MONTH: Final = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")
_MOST_TENANTS: Final = 100
_MOST_NAMED: Final = 1_000
_DAY_US: Final = 86_400_000_000


class TaskCost(View, frozen=True, kw_only=True):
    """What the jobs of a task have cost."""

    task: str
    spent: Money


class TenantCost(View, frozen=True, kw_only=True):
    """What a tenant's calls have cost."""

    tenant: str
    spent: Money


class ServiceCost(View, frozen=True, kw_only=True):
    """What calls to one upstream have cost."""

    upstream: str
    spent: Money
    month_spent: Money
    """In the whole month of the report."""
    forecast: Money | None
    """For the month; see `CostReport.forecast`."""
    tasks: tuple[TaskCost, ...]
    """The most expensive first; calls outside of jobs are not among them."""
    tenants: int
    """How many tenants have spent something."""
    top_tenants: tuple[TenantCost, ...]


class DayCost(View, frozen=True, kw_only=True):
    """What was spent on a day, by currency."""

    day: str
    spent: tuple[Money, ...]


class CostReport(View, frozen=True, kw_only=True):
    """What calls to upstreams have cost in a day or a month, of UTC."""

    at: int
    per: Literal["day", "month"]
    period: str
    """Such as 2026-11-16 or 2026-11."""
    spent: tuple[Money, ...]
    """By currency."""
    month_spent: tuple[Money, ...]
    """The same in the whole month."""
    forecast: tuple[Money, ...] | None
    """What the month will have cost: what was spent so far, divided by the time that has passed,
    for the whole month. None in its first day, and when it is over."""
    services: tuple[ServiceCost, ...]
    """The most expensive first, among those of one currency."""
    days: tuple[DayCost, ...]
    """The days of the month on which something was spent."""
    budgets: tuple[BudgetView, ...]
    """Budgets of the day and of its month; of the month alone, where that is the period."""


class CostDesk:
    """Reads them, also those of other programs."""

    def __init__(
        self, engine: Callable[[], Awaitable[Engine]], settings: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """`settings` are those of the program's own upstreams; more may be declared later."""
        self._engine, self._settings = engine, settings

    async def budgets(self, tenant: str | None = None) -> list[BudgetView]:
        """All budgets now, those of upstreams first."""
        whose = "" if tenant is None else check_label("tenant", tenant)
        engine = await self._engine()
        seen = await spending.budgets(engine, whose)
        missing = self._settings.keys() - {*seen.declared, *([TOTALS] if seen.has_totals else [])}
        if missing:
            await resilience.declare(engine, {name: self._settings[name] for name in missing})
            seen = await spending.budgets(engine, whose)
        return [*budget_views(seen.rows)]

    async def tenants(self, names: Sequence[str]) -> dict[str, tuple[Money, ...]]:
        """What each of some tenants has cost in this month, by currency; () for nothing."""
        check_whole("number of tenants", len(names), least=0, most=_MOST_NAMED)
        chosen = [check_label("tenant", one) for one in names]
        engine = await self._engine()
        seen = await spending.costs(engine, day="", month="", top=0)
        found: dict[str, dict[str, int]] = {name: {} for name in chosen}
        for row in seen.services if chosen else ():
            spent = await spending.spent_of(engine, seen.month, row.name, chosen)
            for name, micro in zip(chosen, spent, strict=True):
                if micro:
                    sums = found[name]
                    sums[row.currency] = sums.get(row.currency, 0) + micro
        return {
            name: tuple(Money(micro, currency) for currency, micro in sorted(sums.items()))
            for name, sums in found.items()
        }

    async def report(self, *, month: Any, day: Any, top: Any) -> CostReport:
        """What was spent in a month or on a day; see `Faena.cost_report`."""
        check_whole("top", top, least=0, most=_MOST_TENANTS)
        if month is not None and day is not None:
            raise ConfigError(
                f"day must be left out when a month is given, got {shown(day)} and {shown(month)}",
                field="day",
                value=day,
            )
        period = {"day": _day(day), "month": _month(month)}
        return _report(await spending.costs(await self._engine(), **period, top=top))


def yesterday(now: datetime) -> str:
    """The last whole day before an instant, in UTC."""
    return (now.astimezone(UTC).date() - timedelta(days=1)).isoformat()


def _day(given: Any) -> str:
    if given is None:
        return ""
    try:
        found = given if type(given) is date else date.fromisoformat(given)
    except (TypeError, ValueError):
        raise ConfigError(
            f"day must be a date such as '2026-11-16', got {shown(given)}", field="day", value=given
        ) from None
    return f"{found:%Y%m%d}"


def _month(given: Any) -> str:
    if given is None:
        return ""
    if not (isinstance(given, str) and _MONTH.fullmatch(given)):
        raise ConfigError(
            f"month must be one such as '2026-11', got {shown(given)}", field="month", value=given
        )
    return given.replace("-", "")


# -- what the server has told ----------------------------------------------------------------------


def _report(seen: SeenCosts) -> CostReport:
    spent, month_spent = _sums(seen.spent), _sums(seen.month_spent)
    foresee = _forecast(seen.now, seen.month)
    whole_month = _totals(month_spent)
    named = [_service(one, spent, month_spent, foresee) for one in seen.services]
    named.sort(key=lambda one: (one.spent.currency, -one.spent.micro, one.upstream))
    return CostReport(
        at=seen.now,
        per="day" if seen.day else "month",
        period=dashed(seen.day or seen.month),
        spent=_totals(spent),
        month_spent=whole_month,
        forecast=foresee and tuple(foresee(one) for one in whole_month),
        services=tuple(one for one in named if one.month_spent.micro),
        days=tuple(DayCost(day=dashed(one[0]), spent=_amounts(one[1:])) for one in seen.days),
        budgets=tuple(budget_views(seen.budgets)),
    )


def _service(
    row: ServiceRow,
    spent: Mapping[str, int],
    month_spent: Mapping[str, int],
    foresee: Callable[[Money], Money] | None,
) -> ServiceCost:
    currency, prefix = row.currency, f"k/{row.name}/"
    in_month = Money(month_spent.get(f"s/{row.name}", 0), currency)
    tasks = [
        TaskCost(task=scope.removeprefix(prefix), spent=Money(micro, currency))
        for scope, micro in spent.items()
        if scope.startswith(prefix)
    ]
    return ServiceCost(
        upstream=row.name,
        spent=Money(spent.get(f"s/{row.name}", 0), currency),
        month_spent=in_month,
        forecast=foresee and foresee(in_month),
        tasks=tuple(sorted(tasks, key=lambda one: (-one.spent.micro, one.task))),
        tenants=row.tenants,
        top_tenants=tuple(
            TenantCost(tenant=tenant, spent=Money(micro, currency))
            for tenant, micro in _pairs(row.top)
        ),
    )


def _forecast(now: int, month: str) -> Callable[[Money], Money] | None:
    begin, end = span(month)
    passed = now - begin
    if now >= end or passed < _DAY_US:
        return None
    return lambda spent: Money(spent.micro * (end - begin) // passed, spent.currency)


def _sums(flat: Sequence[str]) -> dict[str, int]:
    return dict(_pairs(flat))


def _pairs(flat: Sequence[str]) -> Iterator[tuple[str, int]]:
    for i in range(0, len(flat), 2):
        yield flat[i], read_micro(flat[i + 1])


def _totals(sums: Mapping[str, int]) -> tuple[Money, ...]:
    totals = [(scope[2:], micro) for scope, micro in sums.items() if scope.startswith("t/")]
    return tuple(Money(micro, currency) for currency, micro in sorted(totals))


def _amounts(flat: Sequence[str]) -> tuple[Money, ...]:
    return tuple(Money(micro, currency) for currency, micro in _pairs(flat))
