"""Breakers, limits, budgets, panics and features at once, under outages, deaths and lost replies.

The machines beside this one search each of them alone. Here one call is refused by whichever has
the least room, and a feature follows all of its sources: what one of them decides must not depend
on the others.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena import Breaker, Budget, Price
from faena.engine import Address, Engine
from faena.engine.calls import resilience, upstreams
from faena.engine.calls.features import FeatureCalls
from faena.engine.calls.resilience import BAD, GOOD, VOID, Ask, Report, Settled
from faena.engine.wire.wire import Wire
from faena.resilience.money import TOTALS, total_settings
from faena.resilience.upstream_options import UpstreamOptions
from tests._support.rig import SECOND, Clock
from tests._support.search import searching
from tests._support.valkey import Server
from tests.properties import budget_model
from tests.properties.budget_model import period_of
from tests.properties.resilience_model import WHEN_OPEN, Model

NUMBERS = itertools.count()
NAMES, TENANTS, CALL = ("afip", "ai"), ("", "x", "y"), 7
BREAKERS = (
    Breaker(volume=3, window="5s", open="2s", longest="7s", ramp="10s"),
    Breaker(volume=4, window="3s", open="1s", longest="2s", probes=3, ramp="2s", errors=0.3),
    Breaker(volume=2, window="5s", open="2s", ramp="3s", per="tenant", probes=2),
)
LIMITS = ((), ("4/s",), ("300/s", "900/9s"))
BUDGETS: tuple[tuple[Budget, ...], ...] = (
    (),
    (Budget("0.000050 USD", per="month"), Budget("0.000050 USD", soft=0.5)),
    (Budget("0.000030 USD", each_tenant=True), Budget("0.000100 USD", soft=1)),
    (Budget("0.1 USD"),),
)
TOTAL: tuple[tuple[Budget, ...], ...] = ((), (Budget("0.000120 USD"),))
WAITS = (1, SECOND // 20, SECOND, 2 * SECOND, 5 * SECOND, 41 * SECOND, 12 * 3600 * SECOND)


def options(budgets: tuple[Budget, ...]) -> st.SearchStrategy[UpstreamOptions]:
    return st.builds(
        UpstreamOptions,
        breaker=st.sampled_from(BREAKERS),
        limits=st.sampled_from(LIMITS),
        tenant_limits=st.sampled_from(LIMITS[:2]),
        timeout=st.just("5s"),
        prices=st.just([Price("call", f"0.{CALL:06d} USD")]),
        budgets=st.just(budgets),
    )


asks = st.tuples(
    st.sampled_from([("afip",), ("ai",), ("afip", "ai")]),
    st.sampled_from(TENANTS),
    st.integers(0, 6),
    st.sampled_from([0, 1, 50]),
)
STEPS = st.one_of(
    st.tuples(st.just("ask"), st.lists(asks, min_size=1, max_size=3)),
    st.tuples(st.just("ask"), st.lists(asks, min_size=1, max_size=3)),
    st.tuples(st.just("end"), st.integers(0, 5), st.integers(1, 6), st.sampled_from([GOOD, BAD])),
    st.tuples(st.just("end"), st.integers(0, 5), st.integers(1, 6), st.just(GOOD)),
    st.tuples(st.just("outage"), st.sampled_from(NAMES), st.sampled_from(TENANTS)),
    st.tuples(st.just("429"), st.sampled_from(NAMES), st.sampled_from(TENANTS)),
    st.tuples(st.just("probes"), st.sampled_from([GOOD, GOOD, BAD, VOID])),
    st.tuples(st.just("wait"), st.sampled_from(WAITS)),
    st.tuples(st.just("wait"), st.sampled_from(WAITS)),
    st.tuples(st.just("panic"), st.sampled_from(NAMES), st.sampled_from([None, 3 * SECOND])),
    st.tuples(st.just("end panic"), st.sampled_from(NAMES)),
)


class Firm:
    """Two upstreams that cost money, a feature of each, and a process that calls them."""

    def __init__(self, engine: Engine, clock: Clock, model: Model) -> None:
        self.engine, self.clock, self.model = engine, clock, model
        self.features = FeatureCalls(engine)
        self.lots: list[Ask] = []
        self.probes: list[tuple[str, Ask]] = []
        self.turns = 0

    async def open(self) -> None:
        settings = {name: made.settings() for name, made in self.model.options.items()}
        totals = total_settings(self.model.money.totals)
        await resilience.declare(self.engine, {**settings, TOTALS: totals})
        declared = {
            name: {"upstreams": [name], "when_open": state, "critical": True}
            for name, state in WHEN_OPEN.items()
        }
        await self.features.declare(declared, {})

    async def do(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("ask", wanted):
                await self.turn(asks=[self.ask(*one) for one in wanted])
            case ("end", at, number, how) if self.lots:
                await self.end(self.lots[-1 - at % len(self.lots)], number, how)
            case ("outage", name, tenant):
                await self.turn([Report(name, tenant, 5, 5)])
            case ("429", name, tenant):
                await self.turn([Report(name, tenant, wait_us=4 * SECOND)])
            case ("probes", how):
                await self.end_probes(how)
            case ("wait", us):
                self.clock.now += us
            case ("panic", name, us):
                await upstreams.panic(self.engine, name, "as planned", "ana", us)
                self.model.panics[name] = self.clock.now + us if us else 0
            case ("end panic", name):
                await upstreams.end_panic(self.engine, name, "ana")
                self.model.panics.pop(name, None)
            case _:
                pass
        await self.check()

    def ask(self, names: tuple[str, ...], tenant: str, number: int, advance: int) -> Ask:
        made = f"p{next(NUMBERS)}", advance, [CALL] * len(names), 15 * SECOND
        self.lots.append(Ask(names, tenant, number, *made))
        return self.lots[-1]

    async def end(self, ask: Ask, number: int, how: int) -> None:
        """Calls of a grant that have not ended, unless their holder is taken for dead."""
        lot = self.model.money.lots.get(ask.stem)
        is_alive = lot is not None and lot.ends_at > self.clock.now
        ended = min(number, lot.left) if lot and is_alive else 0
        costs: list[Any] = []
        for name in ask.upstreams:
            costs += (name, CALL * ended if how == GOOD else 0)
        failed = ended if how == BAD else 0
        told = [Report(name, ask.tenant, ended, failed) for name in ask.upstreams]
        await self.turn(told, [Settled(ask.stem, ended, ask.tenant, "task", costs)])

    async def end_probes(self, how: int) -> None:
        ended, self.probes = self.probes, []
        told = [Report(n, ask.tenant, probes=[p, how]) for p, ask in ended for n in ask.upstreams]
        await self.turn(told)

    async def turn(
        self,
        reports: list[Report] | None = None,
        settled: list[Settled] | None = None,
        asks: list[Ask] | None = None,
    ) -> None:
        """Every call is sent twice, as if its reply had been lost."""
        self.turns += 1
        now, told = self.clock.now, (reports or [], settled or [], asks or [])
        call = self.engine, "gate", f"{self.turns:012x}", told[0], told[2], told[1]
        expected = self.model.turn(*told, now)
        for answer in (await resilience.admit(*call), await resilience.admit(*call)):
            assert answer.turned == expected.turned
            for got, meant in zip(answer.grants, expected.grants, strict=True):
                assert got._replace(wait_us=0) == meant._replace(wait_us=0)
                assert got.wait_us == pytest.approx(meant.wait_us, abs=2)
        for ask, grant in zip(told[2], expected.grants, strict=True):
            if grant.is_probe:
                self.probes += [(f"{ask.stem}:{i + 1}", ask) for i in range(grant.number)]

    async def check(self) -> None:
        now, money = self.clock.now, self.model.money
        for name, tenant in itertools.product(NAMES, TENANTS):
            for one in money.drawn(name, tenant):
                period, _ = period_of(now, one.budget.per)
                used = money.spent[period, one.scope] + money.reserved(one.scope)
                assert used <= one.limit
        seen = await self.features.look()
        expected = {name: self.model.feature(name, now) for name in NAMES}
        assert {one.name: one.state for one in seen.features} == expected


@searching(150, 5000)
@given(
    made=st.sampled_from(BUDGETS).flatmap(
        lambda first: st.sampled_from(BUDGETS).flatmap(
            lambda second: st.tuples(options(first), options(second))
        )
    ),
    total=st.sampled_from(TOTAL),
    steps=st.lists(STEPS, min_size=5, max_size=50),
)
def test_what_refuses_a_call_and_what_a_feature_shows_follow_from_all_of_it(
    valkey: Server,
    made: tuple[UpstreamOptions, UpstreamOptions],
    total: tuple[Budget, ...],
    steps: list[tuple[Any, ...]],
) -> None:
    async def play() -> None:
        wire, clock = Wire(Address.parse(valkey.url)), Clock()
        engine = Engine(wire, namespace=f"firm{next(NUMBERS)}", clock=clock, patience_s=60)
        options = dict(zip(NAMES, made, strict=True))
        budgets = {name: one.budgets for name, one in options.items()}
        model = Model(budget_model.Model(budgets, total), CALL)
        model.options.update(options)
        firm = Firm(engine, clock, model)
        try:
            await firm.open()
            for step in steps:
                await firm.do(step)
        finally:
            with valkey.client() as client:
                client.flushall()
            await wire.close()

    asyncio.run(play())
