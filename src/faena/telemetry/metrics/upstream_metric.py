"""The metrics of upstreams, budgets and features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from faena.engine.calls.budget_view import BudgetView
from faena.engine.calls.upstreams import LimitUse, UpstreamView
from faena.resilience.feature_views import STATES
from faena.telemetry.metrics.metric import Facts, Metric, Sample

BREAKER_STATES: Final = ("closed", "open", "half_open", "recovering")
_BUDGET: Final = ("upstream", "currency", "per", "scope")


def _upstreams(facts: Facts) -> Iterable[UpstreamView]:
    return facts.snapshot.upstreams if facts.snapshot is not None else ()


def _each(number: Callable[[UpstreamView], float]) -> Callable[[Facts], Iterator[Sample]]:
    return lambda facts: (Sample((one.name,), number(one)) for one in _upstreams(facts))


def _breakers(facts: Facts) -> Iterator[Sample]:
    for one in _upstreams(facts):
        for state in BREAKER_STATES:
            yield Sample((one.name, state), float(one.state == state))


def _limits(number: Callable[[LimitUse], float]) -> Callable[[Facts], Iterator[Sample]]:
    def read(facts: Facts) -> Iterator[Sample]:
        for one in _upstreams(facts):
            found = {str(use.limit): number(use) for use in one.limits if not use.is_tenants}
            for limit, value in found.items():
                yield Sample((one.name, limit), value)

    return read


def _budgets(number: Callable[[BudgetView], float]) -> Callable[[Facts], Iterator[Sample]]:
    def read(facts: Facts) -> Iterator[Sample]:
        # A total is told with each upstream of its currency.
        found = {_names(one): one for upstream in _upstreams(facts) for one in upstream.budgets}
        for names, one in found.items():
            yield Sample(names, number(one))

    return read


def _names(budget: BudgetView) -> tuple[str, ...]:
    """Which tenant has spent most changes, so it is no label."""
    scope = "tenant" if budget.is_each_tenants else "upstream" if budget.upstream else "total"
    return budget.upstream or "", budget.amount.currency, budget.per, scope


def _features(facts: Facts) -> Iterator[Sample]:
    for one in facts.snapshot.features if facts.snapshot is not None else ():
        for state in STATES:
            yield Sample((one.name, state), float(one.state == state))


def _upstream(
    name: str,
    text: str,
    number: Callable[[UpstreamView], float],
) -> Metric:
    return Metric(f"faena_upstream_{name}", "gauge", ("upstream",), text, "broker", _each(number))


def _budget(
    name: str,
    text: str,
    number: Callable[[BudgetView], float],
) -> Metric:
    return Metric(f"faena_budget_{name}", "gauge", _BUDGET, text, "broker", _budgets(number))


UPSTREAMS: Final = (
    Metric(
        "faena_upstream_breaker",
        "gauge",
        ("upstream", "state"),
        "1 for the state that its breaker is in, 0 for the others.",
        "broker",
        _breakers,
    ),
    _upstream("panic", "1 while no call is permitted, else 0.", lambda one: one.panic is not None),
    _upstream(
        "paused",
        "1 while it has asked for no calls, else 0.",
        lambda one: (one.no_calls_until or 0) > one.at,
    ),
    _upstream("calls", "Calls in the window of its breaker.", lambda one: one.calls),
    _upstream("failed_calls", "Those of them that failed.", lambda one: one.failed),
    _upstream("slow_calls", "Those of them that were slow.", lambda one: one.slow),
    _upstream(
        "troubled_tenants",
        "Tenants whose own breakers are not closed.",
        lambda one: one.troubled,
    ),
    Metric(
        "faena_upstream_limit_used",
        "gauge",
        ("upstream", "limit"),
        "How much of a limit is used now.",
        "broker",
        _limits(lambda use: use.used),
    ),
    Metric(
        "faena_upstream_limit_max",
        "gauge",
        ("upstream", "limit"),
        "How much of it there is.",
        "broker",
        _limits(lambda use: use.max),
    ),
    _budget("amount", "A budget in units of its currency.", lambda one: one.amount.micro / 1e6),
    _budget(
        "spent",
        "How much of it is spent in this period; where each tenant has it, by the one that has "
        "spent most.",
        lambda one: one.spent.micro / 1e6,
    ),
    _budget(
        "reserved",
        "How much calls that are under way may cost.",
        lambda one: one.reserved.micro / 1e6,
    ),
    _budget(
        "used_up", "1 if it has no room for one more call, else 0.", lambda one: one.is_used_up
    ),
)

FEATURES: Final = (
    Metric(
        "faena_feature",
        "gauge",
        ("feature", "state"),
        "1 for the state that a feature is in, 0 for the others.",
        "broker",
        _features,
    ),
)
