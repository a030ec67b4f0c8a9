"""Limits by cost under any interleaving of claims, handlers' words, deaths and lost replies.

Small limits are compared with a model that keeps every entry: the same jobs start. Large ones are
kept in buckets, which may give back late: there nothing may ever be granted beyond the limit.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena import Limit
from faena.engine import Address, Engine
from faena.engine.calls.costs import spend
from faena.engine.envelope import seal
from faena.engine.scripts import Settlement, Turn
from faena.engine.settings import declaration
from faena.engine.wire.wire import Wire
from faena.errors import LeaseLost
from faena.options import QueueOptions
from faena.outcomes import Completed, Released
from tests._support.rig import SECOND, Clock
from tests._support.search import searching
from tests._support.valkey import Server

NUMBERS = itertools.count()
STEPS = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 60)),
    st.tuples(st.just("claim"), st.integers(1, 4)),
    st.tuples(st.just("claim twice"), st.integers(1, 4)),
    st.tuples(st.just("spend"), st.integers(0, 90)),
    st.tuples(st.just("complete"), st.just(0)),
    st.tuples(st.just("release"), st.just(0)),
    st.tuples(st.just("wait"), st.sampled_from([1, SECOND // 10, SECOND, 5 * SECOND, 12 * SECOND])),
)


@dataclass
class Model:
    """One window, entry by entry."""

    most: int
    per: int
    entries: list[list[int]] = field(default_factory=list)

    def used(self, now: int) -> int:
        return sum(cost for at, cost in self.entries if at > now - self.per)

    def take(self, costs: list[int], now: int) -> int:
        """How many of these jobs may start, which are reserved together."""
        taken = 0
        for number, cost in enumerate(costs):
            if self.used(now) + taken + cost > self.most:
                return number
            taken += cost
        return len(costs)


class Shop:
    """A queue with one limit, and what its claims should come to."""

    def __init__(self, engine: Engine, clock: Clock, limit: Limit) -> None:
        self.engine = engine
        self.clock = clock
        self.model = Model(limit.max, limit.per_us)
        self.is_exact = limit.max <= 100
        self.costs: dict[str, int] = {}
        self.waiting: list[str] = []
        self.running: dict[str, tuple[str, int, int]] = {}
        """Job → lease, instant of the claim, what counts for it."""
        self.calls = 0

    async def do(self, step: str, number: int) -> None:
        match step:
            case "add":
                job = f"j{len(self.costs):03d}"
                self.costs[job] = number
                self.waiting.append(job)
                spec = seal(10, {"cost": f"tokens:{number}"}, b"{}")
                await self.engine.enqueue("q", "p", self.call(), [(job, spec)])
            case "claim" | "claim twice":
                await self.claim(number, is_twice=step == "claim twice")
            case "wait":
                self.clock.now += number
            case _ if self.running:
                await self.end(next(iter(self.running)), step, number)
            case _:
                pass

    def call(self) -> str:
        self.calls += 1
        return f"c{self.calls:04d}"

    async def claim(self, want: int, *, is_twice: bool) -> None:
        call, now = self.call(), self.clock.now
        expected = self.model.take([self.costs[job] for job in self.waiting[:want]], now)
        exchanged = await self.engine.exchange("q", "w", "w", Turn(call, want))
        if is_twice:
            await self.engine.exchange("q", "w", "w", Turn(call, want))
        claimed = [claim.id for claim in exchanged.claimed]
        if self.is_exact:
            assert claimed == self.waiting[:want][:expected]
        assert claimed == self.waiting[: len(claimed)]
        del self.waiting[: len(claimed)]
        for job in claimed:
            self.running[job] = (call, now, self.costs[job])
            self.model.entries.append([now, self.costs[job]])
        assert not claimed or self.model.used(now) <= self.model.most

    async def end(self, job: str, step: str, number: int) -> None:
        lease, at, counted = self.running[job]
        if step == "spend":
            await spend(self.engine, "q", job, lease, {"tokens": number})
            await spend(self.engine, "q", job, lease, {"tokens": number})
            self.running[job] = (lease, at, number)
            self.put_right(at, number - counted)
            return
        del self.running[job]
        outcome = Completed() if step == "complete" else Released()
        await self.engine.exchange(
            "q", "w", "w", Turn(self.call(), 0, [Settlement(job, lease, outcome)])
        )
        if step == "release":
            self.waiting = sorted([*self.waiting, job])
        with pytest.raises(LeaseLost):
            await spend(self.engine, "q", job, lease, {"tokens": 0})

    def put_right(self, at: int, more: int) -> None:
        if more > 0:
            self.model.entries.append([self.clock.now, more])
            return
        for entry in self.model.entries:
            if entry[0] == at and more < 0:
                back = min(entry[1], -more)
                entry[1], more = entry[1] - back, more + back


@searching(120)
@given(
    limit=st.sampled_from([Limit("100/10s", cost="tokens"), Limit("101/10s", cost="tokens")]),
    costs=st.lists(st.integers(1, 60), min_size=8, max_size=20),
    steps=st.lists(STEPS, min_size=5, max_size=60),
)
def test_no_claim_is_granted_beyond_a_limit_by_cost(
    valkey: Server, limit: Limit, costs: list[int], steps: list[tuple[str, int]]
) -> None:
    async def play() -> None:
        wire, clock = Wire(Address.parse(valkey.url)), Clock()
        engine = Engine(wire, namespace=f"costs{next(NUMBERS)}", clock=clock, patience_s=60)
        engine.know("q", declaration(QueueOptions(limits=[limit], lease="1h")))
        shop = Shop(engine, clock, limit)
        try:
            for step, number in [*(("add", cost) for cost in costs), *steps]:
                await shop.do(step, number)
        finally:
            while await engine.obliterate("q", 1000, force=True) != "DONE":
                pass
            await wire.close()

    asyncio.run(play())
