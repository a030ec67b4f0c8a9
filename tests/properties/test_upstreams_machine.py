"""Upstreams under any interleaving of calls, outages, deaths, panics, edits and lost replies.

A model in plain Python says what each call of `admit` must answer. Beside it, whatever both say, no
window of a limit holds more permits than it may, none is given while an upstream is left alone, and
in the end calls are permitted again by nothing but asking when told to.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena import Breaker, Limit
from faena.engine import Address, Engine
from faena.engine.calls import resilience, upstreams
from faena.engine.calls.resilience import (
    BAD,
    GOOD,
    GOOD_FOR_US,
    SHARD,
    VOID,
    Admitted,
    Ask,
    Grant,
    Report,
)
from faena.engine.scripts import texts
from faena.engine.wire.wire import Wire
from faena.errors import InternalError
from faena.resilience.upstream_options import UpstreamOptions
from tests._support.rig import SECOND, Clock
from tests._support.search import searching
from tests._support.valkey import Server
from tests.properties.upstream_model import Model

NUMBERS = itertools.count()
TENANTS = ("", "x", "y")
NAMES = ("afip", "mp")
BREAKERS = (
    Breaker(volume=3, window="5s", open="2s", longest="7s", probes=1, ramp="10s"),
    Breaker(volume=4, window="3s", open="1s", longest="2s", probes=3, ramp="2s", errors=0.3),
    Breaker(volume=2, window="5s", open="2s", ramp="3s", slow=0.5, slow_after="1s", probes=2),
    Breaker(volume=3, window="5s", open="2s", ramp="3s", per="tenant", probes=2),
    Breaker(volume=1, window="1s", open="2s", ramp="3s", per="tenant", errors=1),
)
STACKS: tuple[tuple[str, ...], ...] = (
    (),
    ("3/s",),
    ("4/s", "7/5s"),
    ("300/s",),
    ("250/2s", "900/9s"),
)
WAITS = (1, SECOND // 20, SECOND // 3, SECOND - 1, SECOND, 2 * SECOND, 5 * SECOND, 41 * SECOND)


def options() -> st.SearchStrategy[UpstreamOptions]:
    made = st.builds(
        UpstreamOptions,
        breaker=st.sampled_from(BREAKERS),
        limits=st.sampled_from(STACKS),
        tenant_limits=st.sampled_from(STACKS[:4]),
        timeout=st.just("5s"),
    )
    panicking = st.sampled_from([None, None, 2])
    return st.builds(_panicking, made, panicking)


def _panicking(made: UpstreamOptions, after: int | None) -> UpstreamOptions:
    return made if made.breaker.per == "tenant" else replace(made, panic_after=after)


reports = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from(TENANTS),
    st.integers(0, 5),  # calls
    st.integers(0, 5),  # of which so many failed
    st.integers(0, 5),  # and so many were slow
    st.sampled_from([0, 0, 0, 1, SECOND, 4 * SECOND]),
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from([BAD, GOOD, VOID])), max_size=3),
)
asks = st.tuples(
    st.sampled_from([("afip",), ("mp",), ("afip", "mp")]),
    st.sampled_from(TENANTS),
    st.integers(0, 6),
    st.sampled_from([0, 1, 50]),
)
STEPS = st.one_of(
    st.tuples(st.just("admit"), st.lists(reports, max_size=2), st.lists(asks, max_size=3)),
    st.tuples(st.just("admit"), st.lists(reports, max_size=1), st.lists(asks, min_size=1)),
    st.tuples(st.just("wait"), st.sampled_from(WAITS), st.none()),
    st.tuples(st.just("wait"), st.sampled_from(WAITS), st.none()),
    st.tuples(st.just("outage"), st.sampled_from(NAMES), st.sampled_from(TENANTS)),
    st.tuples(st.just("probes end"), st.integers(1, 3), st.sampled_from([GOOD, GOOD, BAD, VOID])),
    st.tuples(st.just("probes end"), st.just(1), st.just(GOOD)),
    st.tuples(st.just("step back"), st.sampled_from(WAITS[:6]), st.none()),
    st.tuples(st.just("again"), st.integers(0, 1), st.none()),
    st.tuples(st.just("overtaken"), st.integers(0, 1), st.none()),
    st.tuples(st.just("declare"), st.sampled_from(NAMES), options()),
    st.tuples(st.just("panic"), st.sampled_from(NAMES), st.sampled_from([None, SECOND])),
    st.tuples(st.just("end panic"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("sweep"), st.none(), st.none()),
)


class Town:
    """Some upstreams, two processes that call them, and what they should be told."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self.engine, self.clock = engine, clock
        self.model = Model()
        self.probes: list[tuple[str, Ask]] = []
        self.last: dict[str, tuple[int, list[Report], list[Ask], Admitted, int]] = {}
        self.turns = 0
        self.granted: list[tuple[int, Ask, Grant]] = []

    async def do(self, step: str, first: Any, second: Any) -> None:
        match step:
            case "wait":
                self.clock.now += first
            case "step back":
                self.clock.now -= first
                self.granted.clear()  # what the windows promise, they promise of a clock
            case "declare":
                await self.declare(first, second)
            case "panic":
                await upstreams.panic(self.engine, first, "as planned", "ana", second)
                self.model.panics[first] = self.clock.now + second if second else 0
            case "end panic":
                await upstreams.end_panic(self.engine, first, "ana")
                self.model.panics.pop(first, None)
            case "sweep":
                assert (await resilience.sweep(self.engine, NAMES, "0")).cursor == "0"
                flat = texts(await self.engine.command("HGETALL", SHARD, "troubled"))
                troubled = dict(zip(flat[::2], flat[1::2], strict=True))
                assert troubled == self.model.sweep(self.clock.now)
            case "admit":
                sent = [self.report(*one) for one in first]
                await self.admit(sent, [self.ask(*one) for one in second])
            case "outage":
                await self.admit([Report(first, second, 5, 5)], [])
            case "probes end":
                await self.end_probes(first, second)
            case _:
                await self.repeat(step, f"caller{first}")

    async def end_probes(self, number: int, how: int) -> None:
        """Those that were permitted last, each reported for all upstreams of its job."""
        ended, self.probes = self.probes[-number:], self.probes[:-number]
        sent = [
            Report(name, ask.tenant, probes=[permit, how])
            for permit, ask in ended
            for name in ask.upstreams
        ]
        await self.admit(sent, [])

    async def declare(self, name: str, given: UpstreamOptions) -> None:
        self.model.options[name] = given
        self.granted.clear()
        await resilience.declare(self.engine, {name: given.settings()})

    def report(
        self,
        name: str,
        tenant: str,
        calls: int,
        failed: int,
        slow: int,
        wait_us: int,
        ended: list[tuple[int, int]],
    ) -> Report:
        """Of probes, some that were permitted lately: holders of others are dead, or late."""
        probes = [(self.probes[-1 - at][0], how) for at, how in ended if at < len(self.probes)]
        counts = (calls, min(failed, calls), min(slow, calls))
        return Report(name, tenant, *counts, wait_us, [*itertools.chain(*probes)])

    def ask(self, names: tuple[str, ...], tenant: str, number: int, advance: int) -> Ask:
        return Ask(names, tenant, number, f"p{next(NUMBERS)}", advance)

    async def admit(self, reports: list[Report], asks: list[Ask]) -> Admitted:
        self.turns += 1
        caller, now = f"caller{self.turns % 2}", self.clock.now
        answer = await self.send(caller, self.turns, reports, asks)
        expected = self.model.admit(reports, asks, now)
        assert answer.turned == expected.turned
        for ask, got, meant in zip(asks, answer.grants, expected.grants, strict=True):
            assert got._replace(wait_us=0) == meant._replace(wait_us=0), ask
            assert got.wait_us == pytest.approx(meant.wait_us, abs=2), ask
            self.granted.append((now, ask, got))
            numbers = range(1, got.number + 1) if got.is_probe else ()
            self.probes += [(f"{ask.stem}:{number}", ask) for number in numbers]
        self.check_windows(now)
        self.last[caller] = (self.turns, reports, asks, answer, now)
        return answer

    async def send(
        self, caller: str, turn: int, reports: list[Report], asks: list[Ask]
    ) -> Admitted:
        return await resilience.admit(self.engine, caller, f"{turn:016x}", reports, asks)

    async def repeat(self, step: str, caller: str) -> None:
        """The reply of a call was lost; or the call itself arrives when nobody waits for it."""
        if caller not in self.last:
            return
        turn, reports, asks, before, at = self.last[caller]
        if step == "overtaken":
            with pytest.raises(InternalError, match="later call"):
                await self.send(caller, turn - 1, reports, asks)
            return
        answer = await self.send(caller, turn, reports, asks)
        assert answer.turned == before.turned
        for again, first in zip(answer.grants, before.grants, strict=True):
            assert again._replace(wait_us=0) == first._replace(wait_us=0)
            if first.wait_us:
                assert again.wait_us == max(0, at + first.wait_us - self.clock.now)

    def check_windows(self, now: int) -> None:
        """No stretch of a window's length holds more calls, wherever in it those in advance are."""
        for name, made in self.model.options.items():
            for tenant, limits in (("", made.limits), *((one, made.tenant_limits) for one in "xy")):
                calls = [
                    (at + (GOOD_FOR_US if later else 0), number)
                    for at, ask, grant in self.granted
                    if name in ask.upstreams and tenant in {"", ask.tenant}
                    for later, number in enumerate((grant.number, grant.advance))
                ]
                for limit in limits:
                    assert isinstance(limit, Limit)
                    assert sum(n for at, n in calls if at > now - limit.per_us) <= limit.max

    async def recover(self) -> None:
        """All is well again: whoever asks when it is told to is let through before long."""
        for name in NAMES:
            await upstreams.end_panic(self.engine, name, "ana")
            self.model.panics.pop(name, None)
        for name, tenant in itertools.product(NAMES, TENANTS):
            done: list[Any] = []
            for _ in range(60):
                (grant,) = (
                    await self.admit(
                        _good(name, tenant, done),
                        [ask := Ask([name], tenant, 2, f"p{next(NUMBERS)}")],
                    )
                ).grants
                if grant.number == 2 and not grant.is_probe:
                    break
                done = [f"{ask.stem}:{i + 1}" for i in range(grant.number) if grant.is_probe]
                assert grant.wait_us or done, "nobody could tell when to ask again"
                self.clock.now += 0 if done else max(grant.wait_us, SECOND)
            else:
                raise AssertionError(f"calls of {name} by {tenant!r} are never permitted again")


def _good(name: str, tenant: str, probes: list[str]) -> list[Report]:
    ended = [part for permit in probes for part in (permit, 1)]
    return [Report(name, tenant, probes=ended)]


@searching(300, 20000)
@given(
    first=options(),
    second=options(),
    steps=st.lists(STEPS, min_size=5, max_size=50),
)
def test_calls_are_permitted_as_the_model_has_it(
    valkey: Server,
    first: UpstreamOptions,
    second: UpstreamOptions,
    steps: list[tuple[str, Any, Any]],
) -> None:
    async def play() -> None:
        wire, clock = Wire(Address.parse(valkey.url)), Clock()
        engine = Engine(wire, namespace=f"town{next(NUMBERS)}", clock=clock, patience_s=60)
        town = Town(engine, clock)
        try:
            for name, given in zip(NAMES, (first, second), strict=True):
                await town.declare(name, given)
            for step in steps:
                await town.do(*step)
            await town.recover()
        finally:
            for name in ("upstreams", "troubled", "events"):
                await engine.command("DEL", SHARD, name)
            await wire.close()

    asyncio.run(play())
