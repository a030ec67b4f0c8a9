"""Budgets under any interleaving of grants, ends, deaths, lost replies, days and months.

A model in plain Python says what each call must answer, and every sum on the server. Beside it, as
long as no call costs more than its estimate, nothing spent and reserved ever exceeds a hard budget.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from faena import Budget, Price
from faena.engine import Address, Engine
from faena.engine.calls import resilience, spending
from faena.engine.calls.resilience import SHARD, Ask, Grant, Settled
from faena.engine.scripts import texts
from faena.engine.wire.wire import Wire
from faena.resilience.money import TOTALS, total_settings
from faena.resilience.upstream import UpstreamOptions
from faena.values.money import Money
from tests._support.rig import SECOND, Clock
from tests._support.search import searching
from tests._support.valkey import Server
from tests.properties.budget_model import CALL, Expected, Lot, Model, period_of

NUMBERS = itertools.count()
HOUR, DAY = 3600 * SECOND, 86400 * SECOND
START = int(datetime(2026, 11, 30, 23, 58, tzinfo=UTC).timestamp()) * SECOND
STACKS: dict[str, tuple[Budget, ...]] = {
    "none": (),
    "small": (Budget("0.000050 USD", soft=0.5), Budget("0.000200 USD", per="month")),
    "tenants": (
        Budget("0.000030 USD", each_tenant=True),
        Budget("0.000090 USD", each_tenant=True, per="month", hard=False, thresholds=[10, 70]),
        Budget("0.000100 USD", soft=1),
    ),
    "told": (Budget("0.000040 USD", hard=False, soft=0.9),),
    "large": (Budget("0.01 USD"), Budget("0.02 USD", per="month", thresholds=[])),
}
TOTAL: dict[str, tuple[Budget, ...]] = {
    "none": (),
    "day": (Budget("0.000060 USD"),),
    "both": (Budget("0.000070 USD", soft=0.7), Budget("0.000150 USD", per="month")),
}
NAMES = st.sampled_from([("ai",), ("sms",), ("ai", "sms"), ("sms", "ai")])
STEPS = st.one_of(
    st.tuples(
        st.just("ask"),
        NAMES,
        st.sampled_from(["", "x", "y"]),
        st.integers(0, 12),
        st.integers(0, 25),
        st.integers(0, 30),
    ),
    st.tuples(st.just("end"), st.integers(0, 9), st.integers(1, 9), st.integers(0, 130)),
    st.tuples(st.just("end"), st.integers(0, 9), st.integers(1, 9), st.integers(0, 100)),
    st.tuples(st.just("drop"), st.integers(0, 9), st.integers(1, 99)),
    st.tuples(
        st.just("wait"),
        st.sampled_from([1, SECOND, 30 * SECOND, 60 * SECOND, 2 * HOUR, 11 * HOUR, DAY, 20 * DAY]),
    ),
    st.tuples(st.just("look")),
    st.tuples(st.just("raise"), st.sampled_from(["ai", "sms"]), st.integers(1, 60)),
)


class Bank:
    """Two upstreams, and what should be known of their money."""

    def __init__(self, engine: Engine, clock: Clock, model: Model, *, is_honest: bool) -> None:
        self.engine, self.clock, self.model, self.is_honest = engine, clock, model, is_honest
        self.held: list[Ask] = []
        """Whoever asked, dead or not."""
        self.turns = 0

    async def declare(self) -> None:
        for name, budgets in self.model.budgets.items():
            await self._declare(name, budgets)
        totals = total_settings(self.model.totals)
        await resilience.declare(self.engine, {TOTALS: totals})

    async def _declare(self, name: str, budgets: Sequence[Budget]) -> None:
        prices = [Price("call", str(Money(CALL, "USD")))]
        options = UpstreamOptions(prices=prices, budgets=budgets)
        await resilience.declare(self.engine, {name: options.settings()})

    async def do(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("ask", names, tenant, number, advance, micro):
                estimates = [micro + i for i in range(len(names))]
                stem, lasting = f"lot{len(self.held)}", (30 + number % 2 * 30) * SECOND
                ask = Ask(names, tenant, number, stem, advance * 9, estimates, lasting)
                self.held.append(ask)
                await self.admit(ask)
            case ("end", at, ended, percent) if self.held:
                await self.end(self.held[-1 - at % len(self.held)], ended, percent)
            case ("drop", at, ended) if self.held:
                await self.end(self.held[-1 - at % len(self.held)], ended, 0)
            case ("wait", us):
                self.clock.now += us
            case ("look",):
                await self.look()
            case ("raise", name, micro):
                self.model.budgets[name] = [_larger(one, micro) for one in self.model.budgets[name]]
                await self._declare(name, self.model.budgets[name])
            case _:
                pass
        await self.check()

    async def end(self, ask: Ask, ended: int, percent: int) -> None:
        """So many calls of a grant have ended, and cost so much of their estimate."""
        lot = self.model.lots.get(ask.stem)
        is_alive = lot is not None and lot.ends_at > self.clock.now
        if self.is_honest:
            ended, percent = min(ended, lot.left if lot and is_alive else 0), min(percent, 100)
        costs: list[Any] = []
        for name, micro in zip(ask.upstreams, ask.estimates, strict=True):
            costs += (name, micro * ended * percent // 100)
        await self.admit(settled=Settled(ask.stem, ended, ask.tenant, "answer", costs))

    async def admit(self, ask: Ask | None = None, settled: Settled | None = None) -> None:
        """Every call is sent twice, as if its reply had been lost."""
        now = self.clock.now
        self.turns += 1
        asks, told = [ask] if ask else [], [settled] if settled else []
        for _ in range(2):
            call = self.engine, "gate", f"{self.turns:012x}"
            grants = (await resilience.admit(*call, [], asks, told)).grants
            if _ == 0:
                self.model.bury(now)
                for one in told:
                    self.model.settle(one, now)
                expected = [self.model.ask(one, now) for one in asks]
            assert [*map(_seen, grants)] == expected

    async def check(self) -> None:
        lots = self.model.lots.values()
        scopes = {scope for lot in lots for scope in lot.needs}
        reserved = {scope: sum_ for scope in scopes if (sum_ := self.model.reserved(scope))}
        assert await self._sums("reserved") == reserved
        for per in ("day", "month"):
            period, _ = period_of(self.clock.now, per)
            own = {s: micro for (p, s), micro in self.model.spent.items() if p == period and micro}
            assert await self._sums(f"spent:{period}") == {
                scope: micro for scope, micro in own.items() if "/@" not in scope
            }
        if self.is_honest:
            self._keep_promise()

    def _keep_promise(self) -> None:
        for name, tenant in itertools.product(self.model.budgets, ("", "x", "y")):
            for one in self.model.drawn(name, tenant):
                period, _ = period_of(self.clock.now, one.budget.per)
                used = self.model.spent[period, one.scope] + self.model.reserved(one.scope)
                assert not one.budget.hard or used <= one.limit

    async def look(self) -> None:
        """What readers see, without those that are dead by now."""
        now = self.clock.now
        alive: dict[str, Lot] = {n: lot for n, lot in self.model.lots.items() if lot.ends_at > now}
        seen = await spending.budgets(self.engine, "x")
        for row in seen.rows:
            own = f"s/{row.upstream}" if row.upstream else "t/USD"
            scope = f"{own}/@{row.tenant}" if row.tenant else own
            assert int(row.spent) == self.model.spent[row.period, scope]
            held = sum(lot.left * lot.needs.get(scope, 0) for lot in alive.values())
            assert int(row.reserved) == held

    async def _sums(self, name: str) -> dict[str, int]:
        flat = texts(await self.engine.command("HGETALL", SHARD, name))
        return {name: int(micro) for name, micro in zip(flat[::2], flat[1::2], strict=True)}

    async def told(self) -> list[str]:
        rows = await self.engine.command("XRANGE", SHARD, "events", "-", "+")
        told = [texts(fields)[4:] for _, fields in rows]
        pairs = [pair for one in told for pair in zip(one[::2], one[1::2], strict=True)]
        return [" ".join(pair) for pair in pairs if pair[0].startswith("budget_")]


def _larger(budget: Budget, micro: int) -> Budget:
    return replace(budget, amount=str(Money(budget.money.micro + micro, "USD")))


def _seen(grant: Grant) -> Expected:
    own = grant.number, grant.upstream, grant.reason, grant.wait_us
    return Expected(*own, grant.advance, grant.is_soft)


@searching(150)
@given(
    stacks=st.tuples(st.sampled_from(sorted(STACKS)), st.sampled_from(sorted(STACKS))),
    total=st.sampled_from(sorted(TOTAL)),
    steps=st.lists(STEPS, min_size=5, max_size=60),
    is_honest=st.booleans(),
)
def test_no_money_is_lost_or_spent_twice(
    valkey: Server,
    stacks: tuple[str, str],
    total: str,
    steps: list[tuple[Any, ...]],
    *,
    is_honest: bool,
) -> None:
    async def play() -> None:
        wire, clock = Wire(Address.parse(valkey.url)), Clock(START)
        engine = Engine(wire, namespace=f"money{next(NUMBERS)}", clock=clock, patience_s=60)
        model = Model({"ai": STACKS[stacks[0]], "sms": STACKS[stacks[1]]}, TOTAL[total])
        bank = Bank(engine, clock, model, is_honest=is_honest)
        try:
            await bank.declare()
            for step in steps:
                await bank.do(step)
            assert await bank.told() == model.events
        finally:
            with valkey.client() as client:
                client.flushall()
            await wire.close()

    asyncio.run(play())
