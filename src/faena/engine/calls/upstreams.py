"""What operators see and do with upstreams: views, panics, forgetting.

Each is one call; forgetting takes one for each page of breakers in trouble.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from faena.engine import scripts
from faena.engine.calls.budget_view import BudgetRow, BudgetView, budget_views
from faena.engine.calls.resilience import SHARD, Undeclared
from faena.engine.engine import Engine
from faena.engine.settings import read_limits
from faena.errors import InternalError
from faena.limits import Limit
from faena.values.duration import describe
from faena.values.view import View

_UNDECLARED: Final = b"UNDECLARED"
_HOUR_US: Final = 3_600_000_000


class Panic(View, frozen=True, kw_only=True):
    """Why no call to an upstream is permitted."""

    reason: str
    by: str
    """The author; `faena` where its breaker has opened again and again."""
    since: int
    until: int | None
    """When it ends by itself; None: when an operator ends it."""

    def words(self, now: int) -> str:
        """It, as part of a sentence."""
        lasting = "" if self.until is None else f", for another {_left(self.until, now)}"
        return f"in panic, called by {self.by}: {self.reason}{lasting}"


class LimitUse(View, frozen=True, kw_only=True):
    """How much of a limit is used now."""

    limit: Limit
    is_tenants: bool
    """Whether it is a limit of the tenant whose view it is."""
    used: int
    max: int
    opens_at: int | None
    """When there is room again, if there is none now."""


class TroubledTenant(View, frozen=True, kw_only=True):
    """A tenant whose own breaker is not closed."""

    tenant: str
    state: str
    since: int


class UpstreamView(View, frozen=True, kw_only=True):
    """An upstream at one instant; instants are the server's microseconds."""

    also = ("error_rate", "slow_rate", "is_probe_due", "opens_at")

    name: str
    at: int
    tenant: str | None
    """Whose calls it is about; None for all calls."""
    per: str
    """Whether it has one breaker (`upstream`) or one for each tenant (`tenant`)."""
    state: str
    """Of the breaker: closed, open, half_open or recovering."""
    since: int | None
    """When that state began; None if it was never left, or an hour ago."""
    calls: int
    """Calls that ended in the breaker's window; while it is open, those that opened it."""
    failed: int
    slow: int
    is_latest: bool
    """Whether these were the last calls, of which nearly all failed; else those of the window."""
    next_probe_at: int | None
    """From when on a call is permitted as a probe, while it is open; see `is_probe_due`."""
    openings: int
    """How often the breaker has opened in a row."""
    no_calls_until: int | None
    """The upstream has asked for no calls until then."""
    panic: Panic | None
    limits: tuple[LimitUse, ...]
    tenant_limits: tuple[Limit, ...]
    """What each tenant has for itself; in a view of one, `limits` tells their use."""
    budgets: tuple[BudgetView, ...]
    """Its own ones and the totals of its currency. Those that each tenant has are the tenant's; in
    a view of all calls, those of the tenant that has spent most."""
    tenants: tuple[TroubledTenant, ...]
    """Up to 50 tenants whose own breakers are not closed."""
    troubled: int
    """How many there are."""

    @property
    def error_rate(self) -> float:
        """The share of failed calls, from 0 to 1."""
        return self.failed / self.calls if self.calls else 0.0

    @property
    def slow_rate(self) -> float:
        """The share of slow calls, from 0 to 1."""
        return self.slow / self.calls if self.calls else 0.0

    @property
    def is_probe_due(self) -> bool:
        """Whether the breaker is open and its time is over: the next call is the probe."""
        return self.next_probe_at is not None and self.next_probe_at <= self.at

    @property
    def opens_at(self) -> int | None:
        """When the next call may be made, if none may now and that is known."""
        if self.panic is not None:
            return self.panic.until
        waits = [self.no_calls_until, self.next_probe_at, *(use.opens_at for use in self.limits)]
        waits += [one.ends_at for one in self.full_budgets if one.is_used_up]
        return max((one for one in waits if one is not None and one > self.at), default=None)

    @property
    def full_budgets(self) -> list[BudgetView]:
        """The hard budgets without room for one more call as estimated."""
        return [one for one in self._hard_budgets if one.is_full]

    @property
    def _hard_budgets(self) -> list[BudgetView]:
        """A call without a tenant draws on no tenant's budget."""
        own = [one for one in self.budgets if one.is_hard]
        return [one for one in own if not one.is_each_tenants or self.tenant]

    def __str__(self) -> str:
        whose = f" for tenant {self.tenant}" if self.tenant and self.per == "tenant" else ""
        return f"upstream {self.name} is {'; '.join(self._facts(whose))}"

    def words(self) -> str:
        """It, for a job that waits. A job that reserves more than the usual estimate may be refused
        by a budget that has room for other calls, so the tightest budget is named in any case.
        """
        tightest = min(self._hard_budgets, key=lambda one: one.left.micro, default=None)
        is_open = self.state == "closed" and not (self.panic or self.opens_at or self.full_budgets)
        if tightest is None or not is_open:
            return str(self)
        return f"{self}; {tightest.label} has {tightest.left} left: {_use_of(tightest)}"

    def _facts(self, whose: str) -> list[str]:
        if self.panic is not None:
            return [self.panic.words(self.at)]
        facts = [f"{self.state.replace('_', '-')}{whose}{self._errors()}"]
        if self.next_probe_at is not None:
            left = _left(self.next_probe_at, self.at)
            when = "with the next call" if self.is_probe_due else f"in {left}"
            facts.append(f"the next probe goes {when}")
        if self.no_calls_until is not None:
            facts.append(f"it wants no calls for another {_left(self.no_calls_until, self.at)}")
        for use in self.limits:
            if use.opens_at is not None:
                own = "its tenant limit" if use.is_tenants else "its limit"
                room = f"room in {_left(use.opens_at, self.at)}"
                facts.append(f"{own} of {use.limit} is used up, {room}")
        return facts + [_full(one, self.at) for one in self.full_budgets]

    def _errors(self) -> str:
        if self.state == "closed" and not self.failed:
            return ""
        slow = f" and {self.slow} were slow" if self.slow else ""
        calls = f"the last {self.calls}" if self.is_latest else str(self.calls)
        return f", {self.failed} of {calls} calls failed{slow}"


def _full(budget: BudgetView, now: int) -> str:
    if not budget.is_used_up:
        return f"{budget.label} has no room until calls under way have ended: {_use_of(budget)}"
    ends = f"the {budget.per} ends in {_left(budget.ends_at, now)}"
    return f"{budget.label} is used up: {_use_of(budget)}; {ends}"


def _use_of(budget: BudgetView) -> str:
    return f"{budget.spent} spent, {budget.reserved} reserved"


def _left(until: int, now: int) -> str:
    """To the tenth of a second; to the second, where it is more than an hour."""
    if until - now > _HOUR_US:
        return describe(round(until - now, -6))
    return describe(max(100_000, round(until - now, -5)))


async def views(engine: Engine, names: Sequence[str] = (), tenant: str = "") -> list[UpstreamView]:
    """Those of upstreams that the server knows, or of all of them, in order of their names."""
    now, *rows = await engine.ask("upstream_views", SHARD, *names, tenant=tenant)
    return [_view(now, tenant, _Row(*msgspec.msgpack.decode(row))) for row in rows]


async def panic(
    engine: Engine, upstream: str, reason: str, by: str, duration_us: int | None
) -> bool:
    """Begin a panic, or change the one there is; whether there was none."""
    named = {"reason": reason, "duration_us": duration_us}
    return not await _decide(engine, upstream, "begin", by, **named)


async def end_panic(engine: Engine, upstream: str, by: str) -> bool:
    """Whether there was one."""
    return await _decide(engine, upstream, "end", by)


async def forget(engine: Engine, upstream: str, by: str) -> None:
    """Remove all that is known of it but its costs. Interrupted, it can be done again."""
    cursor = "0"
    while True:
        named = {**scripts.once("forget"), "upstream": upstream, "by": by, "cursor": cursor}
        cursor = (await engine.ask("forget_upstream", SHARD, **named)).decode()
        if cursor == _UNDECLARED.decode():
            raise Undeclared([upstream])
        if cursor == scripts.OVERTAKEN.decode():
            raise InternalError("a later call of this caller was answered already")
        if cursor == "0":
            return


async def _decide(engine: Engine, upstream: str, verb: str, by: str, **more: Any) -> bool:
    named = {**scripts.once("panic"), "upstream": upstream, "verb": verb, "by": by, **more}
    (was,) = await engine.ask("panic", SHARD, **named)
    if was == _UNDECLARED:
        raise Undeclared([upstream])
    return bool(was)


class _Row(NamedTuple):
    name: str
    is_per_tenant: bool
    facts: Sequence[Any]
    panic: Sequence[Any]
    uses: Sequence[Sequence[Any]]
    tenants: Sequence[Sequence[Any]]
    troubled: int
    budgets: Sequence[Any]
    tenant_limits: str


def _view(now: int, tenant: str, told: _Row) -> UpstreamView:
    state, since, (calls, failed, slow, is_latest), next_probe, openings, wait = told.facts
    return UpstreamView(
        name=told.name,
        at=now,
        tenant=tenant or None,
        per="tenant" if told.is_per_tenant else "upstream",
        state=state,
        since=int(since) or None,
        calls=int(calls),
        failed=int(failed),
        slow=int(slow),
        is_latest=bool(is_latest),
        next_probe_at=int(next_probe) or None,
        openings=int(openings),
        no_calls_until=int(wait) or None,
        panic=_panic(*told.panic) if told.panic else None,
        limits=tuple(_use(*use) for use in told.uses),
        tenant_limits=read_limits(told.tenant_limits),
        budgets=tuple(budget_views(msgspec.convert(told.budgets, list[BudgetRow]))),
        tenants=tuple(
            TroubledTenant(tenant=whose, state=state, since=int(since))
            for whose, state, since in told.tenants
        ),
        troubled=told.troubled,
    )


def _panic(until: float, reason: str, by: str, at: float) -> Panic:
    return Panic(reason=reason, by=by, since=int(at), until=int(until) or None)


def _use(is_tenants: bool, most: float, per_us: float, used: float, opens_at: float) -> LimitUse:
    return LimitUse(
        limit=Limit(f"{int(most)}/{int(per_us)}us"),
        is_tenants=is_tenants,
        used=int(used),
        max=int(most),
        opens_at=int(opens_at) or None,
    )
