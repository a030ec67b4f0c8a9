"""What operators see and do with upstreams: views, and panics. Each is one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from faena.engine import scripts
from faena.engine.calls.resilience import SHARD, Undeclared
from faena.engine.engine import Engine
from faena.limits import Limit
from faena.values.duration import describe
from faena.values.view import View

_UNDECLARED: Final = b"UNDECLARED"


class Panic(View, frozen=True, kw_only=True):
    """Why nobody calls an upstream."""

    reason: str
    by: str
    """Who called it; `faena` where its breaker has opened again and again."""
    since: int
    until: int | None
    """When it ends by itself; None: when somebody ends it."""

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

    also = ("error_rate", "slow_rate")

    name: str
    at: int
    tenant: str | None
    """Whose calls it is about; None for everybody's."""
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
    next_probe_at: int | None
    """When the next call may be tried, while it is open."""
    openings: int
    """How often the breaker has opened in a row."""
    no_calls_until: int | None
    """The upstream has asked for no calls until then."""
    panic: Panic | None
    limits: tuple[LimitUse, ...]
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
    def opens_at(self) -> int | None:
        """When the next call may be made, if none may now and that is known."""
        if self.panic is not None:
            return self.panic.until
        waits = [self.no_calls_until, self.next_probe_at, *(use.opens_at for use in self.limits)]
        return max((one for one in waits if one is not None), default=None)

    def __str__(self) -> str:
        whose = f" for tenant {self.tenant}" if self.tenant and self.per == "tenant" else ""
        return f"upstream {self.name} is {'; '.join(self._facts(whose))}"

    def _facts(self, whose: str) -> list[str]:
        if self.panic is not None:
            return [self.panic.words(self.at)]
        facts = [f"{self.state.replace('_', '-')}{whose}{self._errors()}"]
        if self.next_probe_at is not None:
            due = self.next_probe_at <= self.at
            when = "with the next job" if due else f"in {_left(self.next_probe_at, self.at)}"
            facts.append(f"the next probe goes {when}")
        if self.no_calls_until is not None:
            facts.append(f"it wants no calls for another {_left(self.no_calls_until, self.at)}")
        for use in self.limits:
            if use.opens_at is not None:
                own = "its tenant limit" if use.is_tenants else "its limit"
                room = f"room in {_left(use.opens_at, self.at)}"
                facts.append(f"{own} of {use.limit} is used up, {room}")
        return facts

    def _errors(self) -> str:
        if self.state == "closed" and not self.failed:
            return ""
        slow = f" and {self.slow} were slow" if self.slow else ""
        return f", {self.failed} of {self.calls} calls failed{slow}"


def _left(until: int, now: int) -> str:
    """To the tenth of a second, which is all anybody wants to read."""
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


def _view(now: int, tenant: str, told: _Row) -> UpstreamView:
    state, since, (calls, failed, slow), next_probe, openings, wait = told.facts
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
        next_probe_at=int(next_probe) or None,
        openings=int(openings),
        no_calls_until=int(wait) or None,
        panic=_panic(*told.panic) if told.panic else None,
        limits=tuple(_use(*use) for use in told.uses),
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
