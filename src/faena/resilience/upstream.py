"""An outside service that jobs call: how many calls it takes, when to leave it alone, and what its
errors mean.

    afip = app.upstream("afip", limits=["60/min", "1000/h"], breaker=Breaker(open="60s"))

    @invoices.task(upstreams=[afip])
    async def request_cae(invoice: Invoice) -> Cae: ...

What is known of it lives on the broker, so every process agrees. A job whose task names it starts
only when a call is allowed; otherwise it stays in its queue and no attempt is used.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar, cast

from faena.engine import Engine
from faena.engine.calls.resilience import call_within_us
from faena.engine.calls.upstreams import UpstreamView
from faena.errors import ConfigError, shown
from faena.limits import Limit
from faena.options.fields import check_is
from faena.outcomes import UpstreamUnavailable
from faena.resilience.call import UpstreamCall
from faena.resilience.call_group import CallGroup
from faena.resilience.control import UpstreamControl
from faena.resilience.fallback import check_call_fallback, check_guarded, guard_call
from faena.resilience.gate import Gate
from faena.resilience.permits import (
    CURRENT,
    Holder,
    Permit,
    ask_instead,
    give_back,
    permit_of,
)
from faena.resilience.question import Wanted
from faena.resilience.sorting import Sorted, sort_error
from faena.resilience.upstream_options import UpstreamOptions, added, check_spent, check_used
from faena.values.duration import Duration
from faena.values.keywords import known_keywords
from faena.values.names import check_label

P = ParamSpec("P")
R = TypeVar("R")

_LEAST_WAIT_S: Final = 0.01

STAND_IN: ContextVar[Gate | None] = ContextVar("faena_stand_in", default=None)
"""Where calls ask instead of at their app's gate, while a test runs a handler without a broker."""


class Upstream:
    """One outside service of an app."""

    def __init__(
        self,
        name: str,
        options: UpstreamOptions,
        gate: Callable[[], Awaitable[Gate]],
        run_in_thread: Callable[[Coroutine[Any, Any, Permit]], Permit],
        control: UpstreamControl,
        app: str,
        span: Callable[[str], AbstractContextManager[object]],
    ) -> None:
        """`gate` is where its calls ask, on the running event loop; `run_in_thread` runs a
        coroutine where there is none; `app` is the name of the app that declares it; `span` is
        around each call that is made."""
        self._span = span
        self.name, self.app_name = name, app
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
        limits = (*options.limits, *options.tenant_limits)
        windows = [one.per_us for one in limits if isinstance(one, Limit)]
        self.call_within_s = call_within_us(min(windows)) / 1e6 if windows else math.inf
        """How long after its grant a permit is good for a call."""
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

    def spend(self, used: Mapping[str, int] | None = None, /, **more: int) -> None:
        """In a job whose handler is the call: say what it has used, as `spend(tokens=812)` or
        `spend({"gpt-4.input": 812})`; if nothing is said, the estimate counts."""
        held = CURRENT.get()
        is_own = held and held.permits and self.name in held.permits.group.names
        if held is None or not is_own or self.name in (held.called or ()):
            raise ConfigError(
                f"spend must be used in a job whose task names {self.name}, or as call.spend() in "
                f"`async with {self.name}.call() as call:`"
            )
        all_used = added((held.used or {}).get(self.name, {}), check_spent(used, more))
        cost = self._cost(all_used)
        held.used = {**(held.used or {}), self.name: all_used}
        held.spent = {**(held.spent or {}), self.name: cost}

    def _cost(self, used: Mapping[str, int]) -> int:
        prices = self.options.price_list
        if prices is None:
            raise ConfigError(f"upstream {self.name} must have prices, got none", field="prices")
        return prices.cost(check_used("used", used), upstream=self.name)

    @known_keywords("call")
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
        if estimate is not None and micro == 0:
            self.options.refuse_free(estimate)
        return UpstreamCall(
            lambda: self._permit(whose, micro),
            lambda: self._permit_in_thread(whose, micro),
            self._timeout_s,
            self._cost,
            self.name,
            self._span,
        )

    async def run(self, function: Callable[P, Awaitable[R]], *args: P.args, **named: P.kwargs) -> R:
        """Call a coroutine function as one call to the upstream."""
        async with self.call():
            return await function(*args, **named)

    def run_sync(self, function: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
        """Call a plain function as one call to the upstream, in a thread without event loop."""
        if inspect.iscoroutinefunction(function):
            raise ConfigError(
                f"run_sync must be given a plain function, got {shown(function)}, which is async: "
                f"write `await {self.name}.run(…)`",
                field="function",
                value=function,
            )
        with self.call():
            return function(*args, **named)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Have every call of a function be one to the upstream: `@afip`."""
        check_guarded(self.name, function)

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
        return self._held(held, tenant, micro) or await self._ask(held, tenant, micro)

    async def _ask(self, held: Holder | None, tenant: str | None, micro: int | None) -> Permit:
        """A permit of its own; `held` is the job that calls, which another thread may run."""
        whose = tenant or (held.tenant if held else "")
        gate = STAND_IN.get() or await self._gate()
        task = held.task_name if held and self.is_priced else ""
        group = gate.group([self], whose if self.has_scopes else "", task)
        if micro is None and (permits := group.take(time.monotonic())):
            return Permit(permits, self, is_alone=True)
        last = 0.0
        if held is not None:
            last = time.monotonic() + self._timeout_s if held.called else last
            give_back(held, self)
        while True:
            (answer,) = await gate.admit([Wanted(group, 1, estimate=micro)])
            permits, grant = answer
            if grant.number:
                permit = Permit(permits, self, permits.probe(1), is_alone=True)
                if time.monotonic() < permits.lapses_at:
                    return _unless_closed(permit, group)
                permit.drop()  # the process was frozen: what was reserved has come back
                continue
            wait_s = max(_LEAST_WAIT_S, grant.wait_us / 1e6)
            if time.monotonic() + wait_s > last:
                is_tenants = self.is_tenants(grant.reason, whose)
                raise UpstreamUnavailable(
                    self.name, grant.reason, grant.wait_us, is_for_tenant=is_tenants
                )
            await asyncio.sleep(wait_s)  # its job has called already, and would call again

    def _permit_in_thread(self, tenant: str | None, micro: int | None) -> Permit:
        held = CURRENT.get()
        if permit := self._held(held, tenant, micro):
            return permit
        asking = self._ask(held, tenant, micro)
        if stand_in := STAND_IN.get():
            return asyncio.run_coroutine_threadsafe(asking, stand_in.loop).result()
        return self._run_in_thread(asking)

    def _held(self, held: Holder | None, tenant: str | None, micro: int | None) -> Permit | None:
        """What the job that runs here may call; not where a call has an estimate of its own."""
        if held is None:
            return None
        if tenant in {None, held.tenant} and (micro is None or held.probe):
            return permit_of(held, self)
        ask_instead(held, self)
        return None

    def is_tenants(self, reason: str, tenant: str) -> bool:
        """Whether a refusal is for the calls of one tenant only."""
        if not tenant or reason in {"limit", "panic", "budget", "total_budget", "reserved"}:
            return False
        is_own = reason in {"tenant_limit", "tenant_budget", "tenant_reserved"}
        return is_own or self.options.breaker.per == "tenant"

    def breaker_of(self, tenant: str) -> str:
        """Whose breaker counts for a tenant's calls: its own, or empty for that of all."""
        return tenant if self.options.breaker.per == "tenant" else ""


def refuse_foreign(what: str, given: Sequence[Any], app: str, own: Mapping[str, Upstream]) -> None:
    """Refuse upstreams of another app: this one's workers do not declare them on the broker."""
    for one in given:
        if isinstance(one, Upstream) and own.get(one.name) is not one:
            raise _foreign(f"{what} must be upstreams", one, app, field="upstreams", value=given)


def check_own(upstream: Any, app: str, own: Mapping[str, Upstream]) -> Upstream:
    """Return `upstream` if it is one of the app."""
    check_is("upstream", upstream, Upstream)
    if own.get(upstream.name) is upstream:
        return upstream
    raise _foreign("upstream must be one", upstream, app, field="upstream", value=upstream)


def _foreign(words: str, one: Upstream, app: str, *, field: str, value: object) -> ConfigError:
    return ConfigError(
        f"{words} of app {app}, got {one.name} of another app, {one.app_name}: declare it with "
        f"upstream({one.name!r}) of app {app}",
        field=field,
        value=value,
    )


def _unless_closed(permit: Permit, group: CallGroup) -> Permit:
    """A permit that was granted; refused if the upstream was closed while it was under way."""
    if not permit.is_probe and (closing := group.closing()):
        permit.drop()
        raise closing.refusal()
    return permit
