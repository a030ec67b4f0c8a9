"""What a program says of an upstream, checked when it is declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypedDict

from faena.errors import ConfigError, shown
from faena.limits import Limit, check_stack
from faena.options.fields import check_is, derive
from faena.resilience.breaker import Breaker
from faena.resilience.money import Budget, Price, PriceList, check_budgets, today
from faena.resilience.sorting import Sorting, check_sorting
from faena.values.duration import Duration, to_us
from faena.values.money import Money
from faena.values.numbers import check_whole

_MOST_OPENINGS: Final = 1_000
_SHORTEST_US: Final = 1_000
_LONGEST_US: Final = 86_400_000_000
_PROBE_MARGIN_US: Final = 10_000_000
"""How much longer than its call a probe may be under way before its holder is taken for dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamOptions:
    """What a program says of an upstream."""

    limits: Sequence[Limit | str] = ()
    """How many calls may be made in a window, in all processes together: exact, and stacked."""

    tenant_limits: Sequence[Limit | str] = ()
    """The same for the calls of each tenant."""

    timeout: Duration = "30s"
    """How long one call may take; then its outcome is unknown."""

    breaker: Breaker = field(default_factory=Breaker)
    """When calls stop because too many fail or are slow."""

    sorting: Sorting | None = None
    """What errors mean, by exception class, HTTP status or a function; see `sorting.py`."""

    panic_after: int | None = None
    """After how many openings of the breaker in a row it is put into panic; None for never."""

    prices: Sequence[Price] = ()
    """What calls cost; days and tenants are metered where there are prices."""

    estimate: Mapping[str, int] = field(default_factory=dict[str, int])
    """What a call uses at most, by item of the prices: so much is reserved before it is made. By
    default one "call", if that has a price."""

    budgets: Sequence[Budget] = ()
    """How much may be spent in a day or a month."""

    timeout_us: int = field(init=False, repr=False, compare=False)
    price_list: PriceList | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("limits", "tenant_limits"):
            derive(self, name, _limits(name, getattr(self, name)))
        check_is("breaker", self.breaker, Breaker)
        if self.sorting is not None:
            check_sorting(self.sorting)
        _check_panic_after(self.panic_after, self.breaker)
        timeout_us = to_us("timeout", self.timeout, least_us=_SHORTEST_US, most_us=_LONGEST_US)
        derive(self, "timeout_us", timeout_us)
        derive(self, "price_list", _price_list(self.prices))
        self._check_money()

    def _check_money(self) -> None:
        prices, estimate = self.price_list, self.estimate
        if prices is None:
            if self.budgets or self.estimate:
                raise ConfigError(
                    "prices must be given with budgets or an estimate, such as "
                    "[Price('call', '0.005 USD')], got none",
                    field="prices",
                )
            return
        if not estimate and prices.items and "call" in prices.items:
            estimate = {"call": 1}
        derive(self, "estimate", check_used("estimate", estimate))
        if not self.estimate:
            raise ConfigError(
                f"estimate must say what a call uses at most, by item of the prices "
                f"({', '.join(prices.items)}), got none",
                field="estimate",
            )
        # On its cheapest day: whether a program starts must not depend on the day.
        micro = min(prices.cost(self.estimate, day) for day in prices.changes())
        budgets = check_budgets(self.budgets, prices.currency, may_be_tenants=True)
        derive(self, "budgets", budgets)
        if micro == 0:
            self.refuse_free(self.estimate)
        for one in budgets:
            if one.hard and one.money.micro < micro:
                raise ConfigError(
                    f"budgets must pay for one call as estimated, which costs "
                    f"{Money(micro, prices.currency)}, got {one.amount}",
                    field="budgets",
                    value=self.budgets,
                )

    def refuse_free(self, estimate: Mapping[str, int]) -> None:
        """Refuse calls that reserve nothing: no hard budget would ever stop them."""
        if any(one.hard for one in self.budgets):
            raise ConfigError(
                f"estimate must cost something where there is a hard budget, got "
                f"{shown(dict(estimate))}: say what a call uses at most",
                field="estimate",
                value=estimate,
            )

    def doubts(self) -> list[str]:
        """What is allowed, and will stop calls or count wrong amounts on some day from now on."""
        prices, now = self.price_list, today()
        if prices is None:
            return []
        doubts = prices.gaps(now)
        for day in [now, *(day for day in prices.changes() if day > now)]:
            micro = prices.cost(self.estimate, day)
            doubts += [
                f"from {day} on a call costs {Money(micro, prices.currency)} as estimated, for "
                f"which the budget of {one.amount} is too small: no call will be made"
                for one in self.budgets
                if one.hard and one.money.micro < micro
            ]
        return doubts

    def settings(self) -> Mapping[str, Any]:
        """What the server keeps of it."""
        breaker = self.breaker
        settings = {
            "errors": breaker.errors,
            "volume": breaker.volume,
            "window_us": breaker.window_us,
            "open_us": breaker.open_us,
            "longest_us": breaker.longest_us,
            "probes": breaker.probes,
            "probe_us": self.timeout_us + _PROBE_MARGIN_US,
            "ramp_us": breaker.ramp_us,
            "slow": breaker.slow,
            "per_tenant": breaker.per == "tenant" or None,
            "panic_after": self.panic_after,
            "limits": _text(self.limits),
            "tenant_limits": _text(self.tenant_limits),
            "currency": self.price_list and self.price_list.currency,
            "call_micro": self.price_list and self.price_list.cost(self.estimate),
            "budgets": [one.settings() for one in self.budgets] or None,
        }
        return {
            name: value for name, value in settings.items() if value is not None and value != ""
        }


class UpstreamFields(TypedDict, total=False):
    """The options of an upstream; see `UpstreamOptions`."""

    limits: Sequence[Limit | str]
    tenant_limits: Sequence[Limit | str]
    timeout: Duration
    breaker: Breaker
    sorting: Sorting
    panic_after: int | None
    prices: Sequence[Price]
    estimate: Mapping[str, int]
    budgets: Sequence[Budget]


def check_used(what: str, used: Any) -> dict[str, int]:
    """How much of each item, each a whole number from 0."""
    if not isinstance(used, Mapping):
        raise ConfigError(
            f"{what} must be a mapping such as {{'call': 1}}, got {shown(used)}",
            field=what,
            value=used,
        )
    return {
        item: check_whole(f"{what} of {item}", number, least=0, most=10**12)
        for item, number in used.items()
    }


def check_spent(used: Any, more: Mapping[str, int]) -> dict[str, int]:
    """What `spend` was given: a mapping, names, or both."""
    return {**check_used("used", {} if used is None else used), **check_used("used", more)}


def added(used: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """What was used before, and what is used besides."""
    return {item: used.get(item, 0) + more.get(item, 0) for item in (*used, *more)}


def _price_list(given: Any) -> PriceList | None:
    if not (isinstance(given, list | tuple) and all(isinstance(one, Price) for one in given)):
        raise ConfigError(
            f"prices must be a list such as [Price('call', '0.005 USD')], got {shown(given)}",
            field="prices",
            value=given,
        )
    return PriceList(given) if given else None


def _check_panic_after(given: Any, breaker: Breaker) -> None:
    if given is None:
        return
    check_whole("panic_after", given, least=1, most=_MOST_OPENINGS)
    if breaker.per == "tenant":
        raise ConfigError(
            "panic_after must be given with a breaker per upstream, got per='tenant': "
            "one tenant's broken account is no reason to stop all calls",
            field="panic_after",
            value=given,
        )


def _limits(name: str, given: Any) -> tuple[Limit, ...]:
    if isinstance(given, Limit | str):
        given = [given]
    if not isinstance(given, Sequence):
        raise ConfigError(
            f"{name} must be a list of limits such as ['60/min'], got {shown(given)}",
            field=name,
            value=given,
        )
    limits = [one if isinstance(one, Limit) else Limit(one) for one in given]
    for limit in limits:
        if limit.cost is not None:
            raise ConfigError(f"{name} must count calls, got {limit}", field=name, value=given)
    return check_stack(limits, what=name)


def _text(limits: Sequence[Limit | str]) -> str:
    return " ".join(f"{one.max}/{one.per_us}" for one in limits if isinstance(one, Limit))
