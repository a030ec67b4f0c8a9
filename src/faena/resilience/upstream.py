"""An outside service that jobs call: how many calls it takes, when to leave it alone, and what its
errors mean.

    afip = app.upstream("afip", limits=["60/min", "1000/h"], breaker=Breaker(open="60s"))

    @invoices.task(upstreams=[afip])
    async def request_cae(invoice: Invoice) -> Cae: ...

What is known of it lives on the broker, so every process agrees. A job whose task names it starts
only when a call is allowed; otherwise it stays in its queue and no attempt is used.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final, ParamSpec, TypedDict, TypeVar, cast

from faena.engine import Engine
from faena.engine.calls.upstreams import UpstreamView
from faena.errors import ConfigError, shown
from faena.limits import Limit, check_stack
from faena.options.fields import check_is, derive
from faena.outcomes import UpstreamUnavailable
from faena.resilience.breaker import Breaker
from faena.resilience.call import UpstreamCall
from faena.resilience.control import UpstreamControl
from faena.resilience.fallback import check_call_fallback, guard_call
from faena.resilience.gate import Gate, Wanted
from faena.resilience.money import Budget, Price, PriceList, check_budgets
from faena.resilience.permits import CURRENT, Holder, Permit, permit_of
from faena.resilience.sorting import Sorted, Sorting, check_sorting, sort_error
from faena.values.duration import Duration, to_us
from faena.values.names import check_label
from faena.values.numbers import check_whole

P = ParamSpec("P")
R = TypeVar("R")

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
        prices.cost(self.estimate)
        budgets = check_budgets(self.budgets, prices.currency, may_be_tenants=True)
        derive(self, "budgets", budgets)

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


class Upstream:
    """One outside service of an app."""

    def __init__(
        self,
        name: str,
        options: UpstreamOptions,
        gate: Callable[[], Awaitable[Gate]],
        run_in_thread: Callable[[Coroutine[Any, Any, Permit]], Permit],
        control: UpstreamControl,
    ) -> None:
        """`gate` is where its calls ask, on the running event loop; `run_in_thread` runs a
        coroutine where there is none."""
        self.name = name
        self._control = control
        self.options = options
        self._gate = gate
        self._run_in_thread = run_in_thread
        self._timeout_s = options.timeout_us / 1e6
        slow_us = options.breaker.slow_after_us
        self.slow_s = None if slow_us is None else slow_us / 1e6
        """From how many seconds on a call is slow; None for never."""
        self.timeout_us = options.timeout_us
        self.is_priced = options.price_list is not None
        is_tenants = options.breaker.per == "tenant" or bool(options.tenant_limits)
        self.has_scopes = is_tenants or self.is_priced
        """Whether it matters for whose jobs it is called."""

    def __repr__(self) -> str:
        return f"<Upstream {self.name}>"

    def sorts(self, error: BaseException) -> Sorted | None:
        """What an error says of it; None for nothing."""
        meaning = sort_error(error, self.options.sorting)
        return meaning and meaning._replace(upstream=self.name)

    def estimate(self) -> int:
        """What a call costs at most, in millionths of its currency; 0 without prices."""
        return self._cost(self.options.estimate) if self.is_priced else 0

    @property
    def is_frugal(self) -> bool:
        """In a job: whether so much of a budget is used up that cheaper calls should be made."""
        held = CURRENT.get()
        return bool(held and held.permits and held.permits.is_soft)

    def spend(self, **used: int) -> None:
        """In a job whose handler is the call: say what it has used; else the estimate counts."""
        held = CURRENT.get()
        is_own = held and held.permits and self.name in held.permits.group.names
        if held is None or not is_own or self.name in (held.called or ()):
            raise ConfigError(
                f"spend must be used in a job whose task names {self.name}, or as call.spend() in "
                f"`async with {self.name}.call() as call:`"
            )
        spent = held.spent = held.spent or {}
        spent[self.name] = spent.get(self.name, 0) + self._cost(used)

    def _cost(self, used: Mapping[str, int]) -> int:
        prices = self.options.price_list
        if prices is None:
            raise ConfigError(f"upstream {self.name} must have prices, got none", field="prices")
        return prices.cost(check_used("used", used))

    def call(
        self, *, tenant: str | None = None, estimate: Mapping[str, int] | None = None
    ) -> UpstreamCall:
        """Make one call: `async with afip.call(): …`, or `with afip.call(): …` in a thread.

        Raises UpstreamUnavailable, with nothing called, when none may be made now. In a job whose
        task names the upstream, the first call was permitted with the job. A call is for the job's
        tenant unless another is given. In a thread, a call that takes too long is not cut off.
        `estimate` is what this call uses at most, if that is more or less than usual.
        """
        whose = None if tenant is None else check_label("tenant", tenant)
        micro = None if estimate is None else self._cost(estimate)
        return UpstreamCall(
            lambda: self._permit(whose, micro),
            lambda: self._permit_in_thread(whose, micro),
            self._timeout_s,
            self._cost,
        )

    async def run(self, function: Callable[P, Awaitable[R]], *args: P.args, **named: P.kwargs) -> R:
        """Call a coroutine function as one call to the upstream."""
        async with self.call():
            return await function(*args, **named)

    def run_sync(self, function: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
        """Call a plain function as one call to the upstream, in a thread without event loop."""
        with self.call():
            return function(*args, **named)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Have every call of a function be one to the upstream: `@afip`."""

        @wraps(function)
        async def guarded(*args: P.args, **named: P.kwargs) -> Any:
            async with self.call():
                return await cast("Awaitable[Any]", function(*args, **named))

        @wraps(function)
        def guarded_in_thread(*args: P.args, **named: P.kwargs) -> R:
            return self.run_sync(function, *args, **named)

        is_async = inspect.iscoroutinefunction(function)
        return cast("Callable[P, R]", guarded) if is_async else guarded_in_thread

    def with_fallback(
        self, fallback: Callable[P, Any], *, on_error: bool = False
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Like `@afip`, with a function that is called with the same arguments when no call may be
        made; with `on_error`, also when one was made and failed, unless it was refused for good.

        Raises FallbackFailed if that fails as well.
        """
        check_call_fallback(fallback, on_error)
        return lambda function: guard_call(self, function, fallback, on_error=on_error)

    def run_in_thread(self, running: Coroutine[Any, Any, Any], /) -> Any:
        """Run a coroutine from a thread without event loop."""
        return self._run_in_thread(running)

    async def engine(self) -> Engine:
        """Where what is known of it lives."""
        return (await self._gate()).engine

    # -- for operators ----------------------------------------------------------------------------

    async def view(self, *, tenant: str | None = None) -> UpstreamView:
        """How it is now: its breaker, its limits, a panic; for all calls, or for a tenant's."""
        return await self._control.view(self.name, tenant=tenant)

    async def panic(
        self, *, reason: str, by: str = "operator", lasting: Duration | None = None
    ) -> bool:
        """Permit no call until `end_panic`, or for a time; False if it is in panic already.

        Then that panic has this reason, author and end from now on.
        """
        return await self._control.panic(self.name, reason=reason, by=by, lasting=lasting)

    async def end_panic(self, *, by: str = "operator") -> bool:
        """Permit calls again, as its breaker has it; False if it was not in panic."""
        return await self._control.end_panic(self.name, by=by)

    # -- permits ----------------------------------------------------------------------------------

    async def _permit(self, tenant: str | None, micro: int | None) -> Permit:
        held = CURRENT.get()
        if permit := self._held(held, tenant, micro):
            return permit
        whose = tenant or (held.tenant if held else "")
        gate = await self._gate()
        task = held.task_name if held and self.is_priced else ""
        group = gate.group([self], whose if self.has_scopes else "", task)
        if micro is None and (permits := group.take(time.monotonic())):
            return Permit(permits, self, is_alone=True)
        (answer,) = await gate.admit([Wanted(group, 1, estimate=micro)])
        permits, grant = answer
        if not grant.number:
            is_tenants = self.is_tenants(grant.reason, whose)
            raise UpstreamUnavailable(
                self.name, grant.reason, grant.wait_us, is_for_tenant=is_tenants
            )
        return Permit(permits, self, permits.probe(1), is_alone=True)

    def _permit_in_thread(self, tenant: str | None, micro: int | None) -> Permit:
        held = self._held(CURRENT.get(), tenant, micro)
        return held or self._run_in_thread(self._permit(tenant, micro))

    def _held(self, held: Holder | None, tenant: str | None, micro: int | None) -> Permit | None:
        """What the job that runs here may call; not where a call has an estimate of its own."""
        if held is None or tenant not in {None, held.tenant} or not (micro is None or held.probe):
            return None
        return permit_of(held, self)

    def is_tenants(self, reason: str, tenant: str) -> bool:
        """Whether a refusal is for the calls of one tenant only."""
        if not tenant or reason in {"limit", "panic", "budget", "total_budget"}:
            return False
        is_own = reason in {"tenant_limit", "tenant_budget"}
        return is_own or self.options.breaker.per == "tenant"


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
