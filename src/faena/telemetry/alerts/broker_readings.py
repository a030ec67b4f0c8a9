"""Alerts of what belongs to no queue: the broker, upstreams, budgets, dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from faena.engine.calls.alerts import Reading
from faena.engine.calls.budget_view import BudgetView
from faena.engine.calls.upstreams import UpstreamView
from faena.telemetry.alerts.judgement import Bounds, Judgement
from faena.telemetry.snapshot import NodeSnapshot, Snapshot

_ALL_SPENT = 100
"""The percent of a budget from which on its alert is critical."""


def broker_readings(judgement: Judgement, seen: Snapshot) -> Iterator[Reading | None]:
    """Memory of nodes, breakers, budgets."""
    for node in seen.nodes:
        yield _memory(judgement, node)
    for upstream in seen.upstreams:
        yield _breaker(judgement, upstream)
    for budget in _budgets(seen.upstreams):
        yield from _budget(judgement, budget)


def _memory(judgement: Judgement, node: NodeSnapshot) -> Reading | None:
    if node.memory_used is None or not node.memory_max:
        return None
    percent = 100 * node.memory_used / node.memory_max
    text = f"the broker uses {percent:.0f} % of its memory"
    return judgement.reading("memory", node.node, percent, text)


def _breaker(judgement: Judgement, upstream: UpstreamView) -> Reading | None:
    """1 while its breaker, or that of a tenant, lets no calls through; 2 in a panic."""
    value, text = 0, f"its breaker is {upstream.state.replace('_', '-')}"
    if upstream.panic is not None:
        value, text = 2, upstream.panic.words(upstream.at)
    elif upstream.state in {"open", "half_open"}:
        value = 1
    elif open_for := [x.tenant for x in upstream.tenants if x.state in {"open", "half_open"}]:
        value, text = 1, f"its breaker is open for {_some(open_for)}"
    return judgement.reading("breaker", upstream.name, value, text)


def _some(tenants: list[str], most: int = 5) -> str:
    more = f" and {len(tenants) - most} more" if len(tenants) > most else ""
    return f"tenant {', '.join(tenants[:most])}{more}"


def _budgets(upstreams: Iterable[UpstreamView]) -> Iterable[BudgetView]:
    """Each once: totals of a currency are in the view of each upstream."""
    found = {_name(one): one for upstream in upstreams for one in upstream.budgets}
    return found.values()


def _name(budget: BudgetView) -> str:
    whose = budget.upstream or f"total-{budget.amount.currency}"
    tenant = f" @{budget.tenant}" if budget.is_each_tenants and budget.tenant else ""
    return f"{whose} {budget.per}{tenant}"


def _budget(judgement: Judgement, budget: BudgetView) -> Iterator[Reading | None]:
    """An alert for each threshold; it ends with the period."""
    text = f"{budget.spent} of {budget.amount} per {budget.per} is spent, {budget.percent:g} %"
    for threshold in budget.thresholds:
        bounds = (None, threshold) if threshold >= _ALL_SPENT else (threshold, None)
        subject = f"{_name(budget)} {threshold}%"
        yield judgement.reading("budget", subject, budget.percent, text, bounds=bounds)


def dead_readings(
    judgement: Judgement, app: str, dead: Mapping[str, tuple[float, Bounds, str]]
) -> Iterator[Reading | None]:
    """Alerts about the dead letters of all queues: their value, bounds and text, by rule."""
    for rule, (value, bounds, text) in dead.items():
        yield judgement.reading(rule, app, value, text, bounds=bounds)
