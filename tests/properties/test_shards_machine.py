"""Lanes move between shards while everything goes on: after every call all promises hold.

Two relocations may be at work, one call at a time, in any interleaving; each may be abandoned
between any two calls. Their lock is defeated: it saves work, and nothing may depend on it.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
)

from faena.engine.calls import transfer as moving
from faena.engine.calls.lock import Lock
from faena.engine.envelope import seal
from faena.limits import Limit
from faena.options import Order, QueueOptions
from faena.outcomes import Buried, Completed, Limited, Outcome, Released, Retried, Snoozed
from faena.sharding import relocation
from faena.sharding.routing_table import Change
from tests._support.rig import SECOND
from tests._support.search import IS_FULL, run_machine, searching
from tests._support.valkey import Server
from tests.properties.shards_driver import OWN, SHARDS, ShardsDriver
from tests.properties.strategies import ERROR

LANES = ["@a", "@a", "@b", "@b", "@b", "@c", "@e"]
"""Of these @a stays in the first shard, the others go to others as soon as there are more."""
BODY = b'{"of":"a size that makes hashes tables, so that a scan of them has several pages"}'

outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.just(Completed()),
    st.builds(Retried, delay_us=st.sampled_from([0, SECOND, 10 * SECOND]), error=st.just(ERROR)),
    st.builds(Snoozed, delay_us=st.sampled_from([1, 7 * SECOND])),
    st.builds(Buried, error=st.just(ERROR), has_run=st.booleans()),
    st.builds(Limited, st.sampled_from([1, SECOND, 10 * SECOND]), st.just("tenant")),
    st.sampled_from([Released(), Released(priority=50)]),
)
slots = st.integers(0, 1)


@st.composite
def options(draw: st.DrawFn) -> QueueOptions:
    return QueueOptions(
        order=draw(st.sampled_from([Order.TENANT, Order.KEY, Order.NONE])),
        on_failure=draw(st.sampled_from(["block", "block", "pass"])),
        fair=True,
        tenant_limits=draw(st.sampled_from([[], [Limit("2/s"), Limit("3/10s")]])),
        tenant_max_running=draw(st.sampled_from([None, None, 2])),
        max_deliveries=draw(st.sampled_from([2, 5])),
        age_step="1s",
    )


@st.composite
def drafts(draw: st.DrawFn) -> dict[str, object]:
    """A lane, a key; some have a delay or a unique claim."""
    drawn: dict[str, object] = {
        "lane": draw(st.sampled_from(LANES)),
        "key": draw(st.sampled_from("xy")),
    }
    kind = draw(st.integers(0, 7))
    if kind == 0:
        drawn["delay"] = draw(st.sampled_from([SECOND, 7 * SECOND]))
    elif kind == 1:
        drawn["unique"] = f"u{drawn['lane']}"
        drawn["mode"] = draw(st.sampled_from(["waiting", "live", "last", "last"]))
    return drawn


class ShardsMachine(RuleBasedStateMachine):
    """Producers, workers, operators and relocations of one queue."""

    server: Server

    @initialize(
        given=options(),
        batch=st.lists(drafts(), min_size=3, max_size=12),
        before=st.sampled_from([None, Change(own="@a"), Change(shards=2)]),
        change=st.sampled_from(
            [Change(own="@a"), Change(shared="@a"), Change(shards=3), Change(own="@b")]
        ),
        want=st.integers(0, 4),
    )
    def begin(
        self,
        given: QueueOptions,
        batch: list[dict[str, object]],
        before: Change | None,
        change: Change,
        want: int,
    ) -> None:
        self.driver = ShardsDriver(self.server, "shards", given)
        self.order = given.order
        self.ids = itertools.count()
        self.sent: list[tuple[str, bytes]] = []
        if before:
            self.driver.change(before)
            self.driver.work_to_the_end()
        self.enqueue(batch, 0, is_prompt=True)
        self.claim_everywhere(want)
        if change in self.changes():
            self.driver.change(change)

    def changes(self) -> list[Change]:
        table = self.driver.table
        lanes = [Change(**{"shared" if lane in table.own else "own": lane}) for lane in OWN]
        return lanes + [Change(shards=number) for number in range(table.shards + 1, 5)]

    def spec(self, draft: dict[str, object]) -> bytes:
        facts = dict(draft)
        tenant, key = str(facts["lane"])[1:], facts.pop("key")
        if self.order is Order.TENANT:
            facts["chain"] = f"t/{tenant}"
        elif self.order is Order.KEY:
            facts["chain"] = f"k/1/{tenant}/{key}"
        return seal(10, facts, BODY)

    # -- time -------------------------------------------------------------------------------------

    @rule(us=st.sampled_from([1, SECOND, 5 * SECOND, 31 * SECOND]))
    def time_passes(self, us: int) -> None:
        self.driver.clock.now += us

    @precondition(lambda self: self.driver.edges())
    @rule(data=st.data())
    def time_goes_to_an_edge(self, data: st.DataObject) -> None:
        self.driver.clock.now = data.draw(st.sampled_from(self.driver.edges()))

    # -- producers --------------------------------------------------------------------------------

    @rule(
        batch=st.lists(drafts(), min_size=1, max_size=4),
        who=slots,
        is_prompt=st.sampled_from([True, True, False]),
    )
    def enqueue(self, batch: list[dict[str, object]], who: int, is_prompt: bool) -> None:
        jobs = [(f"j{next(self.ids):03d}", self.spec(draft)) for draft in batch]
        self.sent += jobs
        self.driver.write(who, jobs)
        while is_prompt and self.driver.writers[who].letters:
            self.driver.send(who)

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), who=slots)
    def enqueue_again(self, data: st.DataObject, who: int) -> None:
        self.driver.write(who, [data.draw(st.sampled_from(self.sent))])

    @precondition(lambda self: any(one.letters for one in self.driver.writers))
    @rule()
    def send(self) -> None:
        for who, writer in enumerate(self.driver.writers):
            if writer.letters:
                self.driver.send(who)

    @rule(who=slots)
    def a_producer_looks(self, who: int) -> None:
        self.driver.do(self.driver.writers[who].look())

    # -- workers ----------------------------------------------------------------------------------

    @rule(shard=st.sampled_from(SHARDS), want=st.integers(1, 4), is_sweep=st.booleans())
    def claim(self, shard: str, want: int, is_sweep: bool) -> None:
        if shard in self.driver.ledger.view.shards:
            self.driver.exchange(shard, want, [], is_sweep=is_sweep)

    @rule(want=st.integers(1, 4))
    def claim_everywhere(self, want: int) -> None:
        for shard in list(self.driver.ledger.view.shards):
            self.driver.exchange(shard, want, [])

    @precondition(lambda self: self.driver.leases)
    @rule(data=st.data(), outcome=outcomes, want=st.integers(0, 2))
    def settle(self, data: st.DataObject, outcome: Outcome, want: int) -> None:
        lease = data.draw(st.sampled_from(self.driver.leases[::-1]))
        self.driver.settle(lease, outcome, want)

    @precondition(lambda self: self.driver.leases)
    @rule(outcome=outcomes)
    def settle_all(self, outcome: Outcome) -> None:
        leases, self.driver.leases = self.driver.leases, []
        for lease in leases:
            self.driver.settle(lease, outcome)

    # -- operators --------------------------------------------------------------------------------

    @precondition(lambda self: self.driver.ledger.entries)
    @rule(data=st.data(), verb=st.sampled_from(["cancel", "rerun", "rerun", "promote"]))
    def operate(self, data: st.DataObject, verb: str) -> None:
        self.driver.operate(verb, data.draw(st.sampled_from(sorted(self.driver.ledger.entries))))

    # -- relocations ----------------------------------------------------------------------------

    @precondition(lambda self: not self.driver.table.phase)
    @rule(data=st.data())
    def begin_a_change(self, data: st.DataObject) -> None:
        self.driver.change(data.draw(st.sampled_from(self.changes())))

    @rule(slot=slots, calls=st.integers(1, 12), is_doubled=st.sampled_from([False, False, True]))
    def a_steward_works(self, slot: int, calls: int, is_doubled: bool) -> None:
        if self.driver.hired[slot] is None and self.driver.table.phase:
            self.driver.hire(slot)
        for _ in range(calls):
            self.driver.step(slot, is_doubled=is_doubled)

    @precondition(lambda self: self.driver.table.phase)
    @rule(slot=slots)
    def a_steward_works_long(self, slot: int) -> None:
        if self.driver.hired[slot] is None:
            self.driver.hire(slot)
        for _ in range(40):
            self.driver.step(slot)

    @rule(lane=st.sampled_from(OWN), slot=slots, calls=st.integers(5, 30), want=st.integers(1, 3))
    def business_goes_on(self, lane: str, slot: int, calls: int, want: int) -> None:
        """Jobs of a lane that may be moving come and are claimed, while a relocation is at it."""
        self.a_producer_looks(0)
        self.enqueue([{"lane": lane, "key": "x"}] * 2, 0, is_prompt=True)
        self.a_steward_works(slot, calls, is_doubled=False)
        self.claim_everywhere(want)

    @rule(slot=slots)
    def a_steward_is_abandoned(self, slot: int) -> None:
        self.driver.abandon(slot)

    # -- the end ----------------------------------------------------------------------------------

    def teardown(self) -> None:
        if hasattr(self, "driver"):
            try:
                self.driver.finish()
            finally:
                self.driver.close()


async def always(*_: Any) -> bool:
    return True


@pytest.fixture
def _small_and_unlocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches so small that there are many, and no lock."""
    monkeypatch.setattr(Lock, "take", always)
    monkeypatch.setattr(Lock, "drop", always)
    monkeypatch.setattr(moving, "_SCAN", 2)
    monkeypatch.setattr(relocation, "JOBS", 2)
    monkeypatch.setattr(relocation, "LANES", 1)
    monkeypatch.setattr(relocation, "_PAUSE_S", 0)


@pytest.mark.usefixtures("_small_and_unlocked")
@pytest.mark.parametrize("part", range(4))
def test_lanes_keep_their_promises_while_they_move(valkey: Server, part: int) -> None:
    """In parts, so that they run beside each other."""
    options = searching(6, stateful_step_count=40 if IS_FULL else 30)
    run_machine(ShardsMachine, valkey, part, options)
