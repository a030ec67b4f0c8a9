"""Limits of keys under any interleaving of claims, cancellations, deaths, edits and lost replies.

A model keeps every claim of every key. The jobs that start are those that a walk through all ready
jobs in their order would find, each key's no further than its windows have room; none is lost.
Jobs that expire meanwhile are as if they had never been there.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict

from hypothesis import example, given
from hypothesis import strategies as st

from faena import Limit
from faena.engine import Address, Engine
from faena.engine.envelope import Facts, seal
from faena.engine.scripts import Exchanged, Settlement, Turn
from faena.engine.settings import declaration, limits_text
from faena.engine.wire.wire import Wire
from faena.inspection.audit import audit
from faena.options import QueueOptions
from faena.outcomes import Completed, Released
from tests._support.rig import SECOND, Clock
from tests._support.search import searching
from tests._support.valkey import Server

NUMBERS = itertools.count()
STACKS = (
    (Limit("1/s"),),
    (Limit("2/3s"),),
    (Limit("2/s"), Limit("3/5s")),
    (Limit("101/7s"),),
)
KEYS = ("", "x", "y", "z")
STEPS = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 3)),
    st.tuples(st.just("add urgent"), st.integers(1, 3)),
    st.tuples(st.just("add brief"), st.integers(0, 3)),
    st.tuples(st.just("claim"), st.integers(1, 6)),
    st.tuples(st.just("claim twice"), st.integers(1, 6)),
    st.tuples(st.just("look"), st.just(0)),
    st.tuples(st.just("complete"), st.integers(0, 5)),
    st.tuples(st.just("release"), st.integers(0, 5)),
    st.tuples(st.just("cancel"), st.integers(0, 9)),
    st.tuples(st.just("hurry"), st.integers(0, 9)),
    st.tuples(st.just("edit"), st.integers(0, len(STACKS))),
    st.tuples(
        st.just("wait"),
        st.sampled_from([1, SECOND // 3, SECOND - 1, SECOND, 3 * SECOND, 12 * SECOND]),
    ),
)


class Shop:
    """A queue whose keys have limits, and what its claims should come to."""

    def __init__(self, engine: Engine, clock: Clock, stack: tuple[Limit, ...]) -> None:
        self.engine = engine
        self.clock = clock
        self.stack = stack
        self.keys: dict[str, str] = {}
        self.expires: dict[str, int] = {}
        self.gone: set[str] = set()
        self.running: dict[str, str] = {}
        self.claims: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        """Key and length of window → claims; a length that is new begins with none."""
        self.calls = 0

    def call(self) -> str:
        self.calls += 1
        return f"c{self.calls:04d}"

    async def exchange(self, turn: Turn) -> Exchanged:
        exchanged = await self.engine.exchange("q", "w", "w", turn)
        for late in exchanged.expired:
            assert self.is_late(late.id)
            self.gone.add(late.id)
        return exchanged

    def is_late(self, job: str) -> bool:
        return self.expires.get(job, self.clock.now + 1) <= self.clock.now

    async def ready(self) -> list[str]:
        """Those that may still start, in their order."""
        found = await self.engine.command("ZRANGE", "q", "ready", 0, -1)
        return [job for one in found if not self.is_late(job := one.decode())]

    def has_room(self, key: str, more: int) -> bool:
        now = self.clock.now
        return all(
            sum(at > now - one.per_us for at in self.claims[key, one.per_us]) + more < one.max
            for one in self.stack
        )

    def expected(self, ready: list[str], want: int) -> list[str]:
        """Whom a walk through all ready jobs would start."""
        found: list[str] = []
        passed: set[str] = set()
        for job in ready:
            key = self.keys[job]
            taken = sum(self.keys[one] == key for one in found)
            if len(found) == want or key in passed:
                continue
            if not key or self.has_room(key, taken):
                found.append(job)
            else:
                passed.add(key)
        return found

    async def do(self, step: str, number: int) -> None:
        match step:
            case "add" | "add urgent" | "add brief":
                await self.add(KEYS[number], step)
            case "claim" | "claim twice":
                await self.claim(number, is_twice=step == "claim twice")
            case "look":
                await self.exchange(Turn(self.call(), 0))
            case "wait":
                self.clock.now += number
            case "edit":
                self.stack = (*STACKS, ())[number]
                await self.engine.configure("q", {"key_limits": limits_text(self.stack)})
            case "cancel" | "hurry":
                await self.change(step, number)
            case _ if self.running:
                await self.end(sorted(self.running)[number % len(self.running)], step)
            case _:
                pass

    async def add(self, key: str, step: str) -> None:
        job = f"j{len(self.keys):03d}"
        self.keys[job] = key
        facts: Facts = {"lane": "@acme"}
        if key:
            facts["key"] = f"k/4/acme/{key}"
        if step == "add brief":
            facts["lasts"] = 2 * SECOND
            self.expires[job] = self.clock.now + 2 * SECOND
        spec = seal(1 if step == "add urgent" else 10, facts, b"{}")
        await self.engine.enqueue("q", "p", self.call(), [(job, spec)])

    async def claim(self, want: int, *, is_twice: bool = False) -> None:
        call, ready = self.call(), await self.ready()
        expected = self.expected(ready, want)
        exchanged = await self.exchange(Turn(call, want))
        if is_twice:
            await self.exchange(Turn(call, want))
        claimed = [claim.id for claim in exchanged.claimed]
        assert claimed == expected
        for job in claimed:
            self.running[job] = call
            for one in self.stack:
                self.claims[self.keys[job], one.per_us].append(self.clock.now)
        left = len(ready) - len(claimed)
        assert not left or exchanged.more or exchanged.next_at or len(claimed) == want

    async def change(self, step: str, number: int) -> None:
        ready = await self.ready()
        if not ready:
            return
        job = ready[number % len(ready)]
        if step == "hurry":
            await self.engine.change("q", job, priority=5)
            return
        await self.engine.cancel("q", [job])
        self.gone.add(job)

    async def end(self, job: str, step: str) -> None:
        lease = self.running.pop(job)
        if step == "complete":
            self.gone.add(job)
        outcome = Completed() if step == "complete" else Released()
        turn = Turn(self.call(), 0, [Settlement(job, lease, outcome)])
        await self.exchange(turn)

    async def drain(self) -> None:
        """Whatever is left starts in the end, woken by nothing but what the claims say."""
        assert await audit(self.engine, "q") == []
        for _ in range(400):
            await self.claim(50)
            if await self.engine.command("ZCARD", "q", "ready") == 0:
                break
            exchanged = await self.exchange(Turn(self.call(), 0))
            assert exchanged.next_at, "nobody would come back"
            self.clock.now = max(self.clock.now + 1, exchanged.next_at)
        assert await self.engine.command("ZCARD", "q", "ready") == 0
        assert await audit(self.engine, "q") == []
        assert {*self.running} | self.gone == {*self.keys}


@searching(60)
@given(
    stack=st.sampled_from(STACKS[:3]),
    keys=st.lists(st.integers(0, 3), min_size=6, max_size=16),
    steps=st.lists(STEPS, min_size=5, max_size=40),
)
@example(  # one that is set aside goes before another that went back
    stack=STACKS[0],
    keys=[0, 0, 0, 1, 1, 1],
    steps=[("add", 1), ("claim", 6), ("edit", 1), ("claim", 1), ("hurry", 1)],
)
def test_each_key_starts_what_its_windows_have_room_for_and_no_more(
    valkey: Server, stack: tuple[Limit, ...], keys: list[int], steps: list[tuple[str, int]]
) -> None:
    async def play() -> None:
        wire, clock = Wire(Address.parse(valkey.url)), Clock()
        engine = Engine(wire, namespace=f"keys{next(NUMBERS)}", clock=clock, patience_s=60)
        engine.know("q", declaration(QueueOptions(key_limits=stack, lease="1h")))
        shop = Shop(engine, clock, stack)
        try:
            for step, number in [*(("add", key) for key in keys), *steps]:
                await shop.do(step, number)
            await shop.drain()
        finally:
            while await engine.obliterate("q", 1000, force=True) != "DONE":
                pass
            await wire.close()

    asyncio.run(play())
