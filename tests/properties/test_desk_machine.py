"""The dead-letter desk under any interleaving: it always agrees with the dead jobs.

The machine of lanes, with jobs that die more often and operators who deal with them. After every
step the desk is compared with the dead jobs (`dead_index.py`): records, sets, groups, what is due,
and that of a dead job at most one other was made, of the same bytes.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from faena.engine.calls.deadletter import Decision, DeskCalls, RedriveFilter, RedriveRecord
from faena.engine.scripts import Settlement, Turn
from faena.inspection.audit import audit
from faena.outcomes import Buried, DeathNote, ErrorRecord
from tests._support.desk_rig import new_redrive
from tests._support.faulty_wire import Fault
from tests._support.rig import SECOND
from tests._support.search import run_machine, searching
from tests._support.valkey import Server
from tests.properties.queue_driver import QUEUE
from tests.properties.strategies import faults
from tests.properties.test_lanes_machine import LanesMachine

notes = st.builds(
    DeathNote,
    task=st.sampled_from(["send", "bill", ""]),
    tenant=st.sampled_from(["", "a"]),
    name=st.sampled_from(["Boom", "E1"]),
    code=st.sampled_from(["", "E1"]),
    fingerprint=st.sampled_from(["f0", "f1"]),
    retry_us=st.sampled_from([0, SECOND]),
    most=st.just(1),
)


class DeskMachine(LanesMachine):
    """Operators at the desk, beside everybody else."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = DeskCalls(self.driver.engine)
        self._fresh = itertools.count()
        self._steps = itertools.count(10_000)

    def fresh(self, number: int) -> list[str]:
        return [f"n{next(self._fresh):03d}" for _ in range(number)]

    def some(self, data: st.DataObject) -> list[str]:
        known = sorted({*self.driver.sight.hash("desk"), *self.driver.sight.jobs, "nobody"})
        return data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=4))

    @rule(want=st.integers(1, 6), note=st.one_of(st.none(), notes), fault=faults)
    def let_some_die(self, want: int, note: DeathNote | None, fault: Fault) -> None:
        call = self.driver.next_call()
        self.exchange("w1", Turn(call, want), "none")
        error = ErrorRecord(name="Boom", message="it broke")
        settled = [
            Settlement(*pair, Buried(error, note=note))
            for pair in self.driver.leases
            if pair[1] == call
        ]
        self.exchange("w1", Turn(self.driver.next_call(), 0, settled), fault)

    @precondition(lambda self: self.driver.sight.hash("desk"))
    @rule(data=st.data(), action=st.sampled_from(["retry", "auto"]), fault=faults)
    def retry_as_new(self, data: st.DataObject, action: str, fault: Fault) -> None:
        ids = self.some(data)
        jobs = list(zip(ids, self.fresh(len(ids)), strict=True))
        why = Decision(action, "", "ana")
        self.driver.do(lambda: self.desk.retry_as_new(QUEUE, why, 5, jobs), fault)

    @precondition(lambda self: self.driver.sight.hash("desk"))
    @rule(data=st.data(), status=st.sampled_from(["discarded", "resolved"]), fault=faults)
    def dismiss(self, data: st.DataObject, status: str, fault: Fault) -> None:
        ids = self.some(data)
        why = Decision("manual", "", "ana")
        self.driver.do(lambda: self.desk.dismiss(QUEUE, status, why, ids), fault)

    @precondition(lambda self: self.driver.sight.hash("desk"))
    @rule(data=st.data(), fault=faults)
    def run_dead_again(self, data: st.DataObject, fault: Fault) -> None:
        """Under its own id only what is pending: no decision is taken back."""
        decided = self.decided()
        self.driver.ask("rerun", fault, self.some(data))
        assert self.decided() == decided

    def decided(self) -> dict[str, Any]:
        desk = self.driver.sight.hash("desk")
        return {job: record for job, record in desk.items() if record["s"] != "pending"}

    @rule(
        verb=st.sampled_from(["begin", "stop", "resume", "rewind", "go"]),
        canary=st.integers(0, 2),
        failures=st.sampled_from([None, 0]),
        fault=faults,
    )
    def tell_a_redrive(self, verb: str, canary: int, failures: int | None, fault: Fault) -> None:
        record: RedriveRecord | None = None
        if verb == "begin":
            record = new_redrive(
                canary=canary, failures=failures, filter=RedriveFilter(task="send")
            )
        self.driver.do(lambda: self.desk.redrives(QUEUE, verb, "r", record), fault)

    @rule(most=st.integers(0, 3), fault=faults)
    def advance_a_redrive(self, most: int, fault: Fault) -> None:
        ids, call = self.fresh(most), ("driver", str(next(self._steps)))
        self.driver.do(lambda: self.desk.redrive(QUEUE, "r", call, 5, ids), fault)

    def teardown(self) -> None:
        if not self.driver.is_broken:
            assert self.driver.wait(audit(self.driver.engine, QUEUE)) == []
        super().teardown()


@pytest.mark.parametrize("part", range(4))
def test_the_desk_agrees_with_the_dead(valkey: Server, part: int) -> None:
    # to shrink forty steps takes longer than a suite may
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    options = searching(12, stateful_step_count=40, phases=phases)
    run_machine(DeskMachine, valkey, part, options)
