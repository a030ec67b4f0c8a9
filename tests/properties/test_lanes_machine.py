"""Lanes, chains and tenants' bounds under any interleaving: after every call all promises hold.

Unlike the engine's machine this one has no model: it looks at what is on the server (`promises.py`)
and at what became of it since the call before (`watch.py`). At the end of each example every bound
is lifted, and all jobs that are left must come up.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    precondition,
    rule,
)

from faena.engine.scripts import Settlement, Turn
from faena.outcomes import Outcome
from tests._support.faulty_wire import Fault
from tests._support.rig import SECOND
from tests._support.search import run_machine, searching
from tests._support.valkey import Server
from tests.properties.lane_driver import LaneDriver
from tests.properties.lane_strategies import (
    lane_changes,
    lane_outcomes,
    lane_settings,
    lane_specs,
    lanes,
    overrides,
    unmodelled_changes,
)
from tests.properties.model import FINISHED, WAITING
from tests.properties.queue_machine import QueueMachine
from tests.properties.strategies import IDS, faults

producers = st.sampled_from(["p1", "p2"])
workers = st.sampled_from(["w1", "w2"])


class LanesMachine(QueueMachine[LaneDriver]):
    """Producers, workers and operators on a queue with lanes."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = LaneDriver(self.server, f"lanes{next(self.numbers)}")

    @initialize(declared=lane_settings(), batch=st.lists(lane_specs(), max_size=8))
    def begin(self, declared: dict[str, str], batch: list[bytes]) -> None:
        self.declared = declared
        self.driver.declare(declared)
        if batch:
            self.driver.enqueue("p1", list(zip(IDS, batch, strict=False)), "none")

    # -- time -------------------------------------------------------------------------------------

    @rule(us=st.sampled_from([1, 1000, SECOND, 5 * SECOND, 31 * SECOND, -SECOND]))
    def time_passes(self, us: int) -> None:
        self.driver.clock.now += us

    @precondition(lambda self: self.driver.edges())
    @rule(data=st.data(), offset=st.sampled_from([-1, 0]))
    def time_goes_to_an_edge(self, data: st.DataObject, offset: int) -> None:
        self.driver.clock.now = data.draw(st.sampled_from(self.driver.edges())) + offset

    # -- producers --------------------------------------------------------------------------------

    @rule(batch=st.lists(lane_specs(), min_size=1, max_size=6), who=producers, fault=faults)
    def enqueue(self, batch: list[bytes], who: str, fault: Fault) -> None:
        self.enqueue_new(batch, who, fault)

    def enqueue_new(self, batch: list[bytes], who: str, fault: Fault) -> None:
        unused = [job for job in IDS if job not in self.driver.sight.jobs]
        if who not in self.driver.unanswered and unused:
            self.driver.enqueue(who, list(zip(unused, batch, strict=False)), fault)

    @rule(
        batch=st.lists(st.tuples(st.sampled_from(IDS[:6]), lane_specs()), min_size=1, max_size=4),
        who=producers,
        fault=faults,
    )
    def enqueue_any_ids(self, batch: list[tuple[str, bytes]], who: str, fault: Fault) -> None:
        if who not in self.driver.unanswered:
            self.driver.enqueue(who, batch, fault)

    @rule(pair=st.tuples(*[lane_specs(mode="last")] * 2), outcome=lane_outcomes, fault=faults)
    def let_one_follow_another(
        self, pair: tuple[bytes, bytes], outcome: Outcome, fault: Fault
    ) -> None:
        """The first runs while the second comes; however it ends, it may end only later."""
        self.enqueue_new([pair[0]], "p1", "none")
        call = self.driver.next_call()
        self.exchange("w1", Turn(call, 6), "none")
        self.enqueue_new([pair[1]], "p2", fault)
        settled = [Settlement(*pair, outcome) for pair in self.driver.leases if pair[1] == call]
        self.exchange("w1", Turn(self.driver.next_call(), 0, settled), "none")

    # -- workers ----------------------------------------------------------------------------------

    @rule(who=workers, want=st.integers(1, 6), is_sweep=st.booleans(), fault=faults)
    def claim(self, who: str, want: int, is_sweep: bool, fault: Fault) -> None:
        self.exchange(who, Turn(self.driver.next_call(), want, (), None, is_sweep), fault)

    @rule(who=workers, want=st.integers(1, 6), outcome=lane_outcomes, fault=faults)
    def run_jobs(self, who: str, want: int, outcome: Outcome, fault: Fault) -> None:
        """Claim, and settle what was claimed in the next call."""
        call = self.driver.next_call()
        self.exchange(who, Turn(call, want), "none")
        settled = [Settlement(*pair, outcome) for pair in self.driver.leases if pair[1] == call]
        self.exchange(who, Turn(self.driver.next_call(), want, settled), fault)

    @precondition(lambda self: self.driver.leases)
    @rule(data=st.data(), who=workers, want=st.integers(0, 4), fault=faults)
    def settle(self, data: st.DataObject, who: str, want: int, fault: Fault) -> None:
        newest_first = st.sampled_from(self.driver.leases[::-1])
        pairs = data.draw(st.lists(newest_first, unique=True, min_size=1, max_size=4))
        settled = [Settlement(*pair, data.draw(lane_outcomes)) for pair in pairs]
        self.exchange(who, Turn(self.driver.next_call(), want, settled), fault)

    @precondition(lambda self: self.driver.late)
    @rule(data=st.data())
    def an_old_request_arrives(self, data: st.DataObject) -> None:
        late = self.driver.late
        self.driver.deliver(late.pop(data.draw(st.integers(0, len(late) - 1))))

    # -- operators --------------------------------------------------------------------------------

    @rule(
        data=st.data(),
        verb=st.sampled_from(["cancel", "cancel", "rerun", "promote", "change"]),
        fault=faults,
    )
    def operate_on_jobs(self, data: st.DataObject, verb: str, fault: Fault) -> None:
        known = st.sampled_from(sorted({*self.driver.sight.jobs, IDS[-1]}))
        if verb == "change":
            delay = data.draw(st.sampled_from([None, 0, SECOND, 20 * SECOND]))
            priority = data.draw(st.sampled_from([None, 1, 99]))
            job = data.draw(known)
            self.driver.ask("change", fault, job, delay_us=delay, priority=priority)
        else:
            ids = data.draw(st.lists(known, min_size=1, max_size=4))
            self.driver.ask(verb, fault, ids)

    @rule(lane=lanes, given=overrides(), lasts=st.sampled_from([None, 1, SECOND]), fault=faults)
    def decide_for_a_tenant(
        self, lane: str, given: dict[str, str], lasts: int | None, fault: Fault
    ) -> None:
        self.driver.ask("tenant", fault, lane, given, by="ops", duration_us=lasts)

    @rule(lane=lanes, given=overrides(), want=st.integers(1, 6), is_sweep=st.booleans())
    def what_was_decided_for_a_tenant_ends(
        self, lane: str, given: dict[str, str], want: int, is_sweep: bool
    ) -> None:
        """While it counts the lane may be parked; afterwards nothing of it may be left."""
        self.driver.ask("tenant", "none", lane, given, by="ops", duration_us=SECOND)
        self.exchange("w1", Turn(self.driver.next_call(), want), "none")
        self.driver.clock.now += SECOND
        self.exchange("w2", Turn(self.driver.next_call(), want, (), None, is_sweep), "none")

    @rule(edits=st.one_of(lane_changes, unmodelled_changes), fault=faults)
    def configure(self, edits: dict[str, str], fault: Fault) -> None:
        self.driver.ask("configure", fault, edits)

    @rule(is_held=st.booleans(), duration=st.sampled_from([None, SECOND]))
    def hold(self, is_held: bool, duration: int | None) -> None:
        args: tuple[Any, ...] = ("pause", duration, "ops") if is_held else ("pause",)
        self.driver.ask("hold" if is_held else "release", "none", *args)

    @rule(
        state=st.sampled_from([*WAITING, *WAITING, *FINISHED]), size=st.integers(1, 4), fault=faults
    )
    def clean(self, state: str, size: int, fault: Fault) -> None:
        self.driver.ask("clean", fault, state, 0, size)

    @precondition(lambda self: len(self.driver.sight.jobs) > 12)
    @rule()
    def obliterate(self) -> None:
        self.driver.obliterate()
        self.driver.declare(self.declared)
        self.driver.look()

    # -- the end ----------------------------------------------------------------------------------

    def exchange(self, who: str, turn: Turn, fault: Fault) -> None:
        if who not in self.driver.unanswered:
            self.driver.exchange(who, turn, fault)

    def teardown(self) -> None:
        try:
            self.driver.finish()
        finally:
            self.driver.close()


@pytest.mark.parametrize("part", range(4))
def test_lanes_and_chains_keep_their_promises(valkey: Server, part: int) -> None:
    """In parts, so that they run beside each other."""
    run_machine(LanesMachine, valkey, part, searching(12, stateful_step_count=40))
