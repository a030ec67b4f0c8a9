"""Every operation of the engine, in any order, with every reply lost, doubled or late: the server
must hold exactly what a small model holds, after each step.

One example is one queue on the session's server, driven by three workers and two producers that
follow the rules of real ones: a caller has one call in flight and repeats it until it is answered.
Old leases are settled again at any time, copies of old requests arrive late, and the clock jumps,
also backwards. After each step all keys are compared with the model and audited.
"""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    precondition,
    rule,
)

from faena.engine.scripts import Settlement, Turn
from faena.engine.settings import declaration
from faena.options import QueueOptions
from faena.outcomes import Outcome
from tests._support.faulty_wire import Fault
from tests._support.rig import SECOND
from tests._support.search import run_machine, searching
from tests._support.valkey import Server
from tests.properties import desk
from tests.properties.driver import Driver, Step
from tests.properties.lane_strategies import (
    bounds,
    lane_changes,
    lane_outcomes,
    lane_specs,
    lanes,
    lasting,
    mortal_specs,
    overrides,
    without_chains,
    without_lanes,
)
from tests.properties.model import FINISHED, WAITING
from tests.properties.queue_driver import QUEUE
from tests.properties.queue_machine import QueueMachine
from tests.properties.strategies import IDS, changes, faults, queue_options

producers = st.sampled_from(["p1", "p2"])
workers = st.sampled_from(["w1", "w2", "w3"])
reasons = st.sampled_from(["pause", "rate_limited"])


BLOBS = [b"paid", b"charged"]


class EngineMachine(QueueMachine[Driver]):
    """Producers, workers and operators; hot operations have several rules, to come up often."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(self.server, f"machine{next(self.numbers)}")

    @initialize(
        options=queue_options(),
        given=st.one_of(st.none(), bounds, bounds),
        batch=st.lists(mortal_specs(), max_size=6),
    )
    def begin(
        self, options: QueueOptions, given: dict[str, str] | None, batch: list[bytes]
    ) -> None:
        """With lanes and bounds of tenants, or without any."""
        self.has_lanes = given is not None
        self.driver.declare(declaration(options) | (given or {}))
        if batch:
            self.enqueue_new_ids(batch, "p1", "none")

    # -- time -------------------------------------------------------------------------------------

    @rule(us=st.sampled_from([1, 1000, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND]))
    def time_passes(self, us: int) -> None:
        self.driver.go(us)

    @rule(us=st.sampled_from([31 * SECOND, 31 * SECOND, 700 * SECOND, 90_000 * SECOND, -SECOND]))
    def the_clock_jumps(self, us: int) -> None:
        self.driver.go(us)

    @precondition(lambda self: self.driver.world.edges())
    @rule(data=st.data(), offset=st.sampled_from([-1, 0]))
    def time_goes_to_an_edge(self, data: st.DataObject, offset: int) -> None:
        world = self.driver.world
        self.driver.go(data.draw(st.sampled_from(world.edges())) + offset - world.now)

    # -- producers --------------------------------------------------------------------------------

    @rule(batch=st.lists(mortal_specs(), min_size=1, max_size=5), who=producers, fault=faults)
    def enqueue_new(self, batch: list[bytes], who: str, fault: Fault) -> None:
        self.enqueue_new_ids(batch, who, fault)

    def enqueue_new_ids(self, batch: list[bytes], who: str, fault: Fault) -> None:
        unused = [job for job in IDS if job not in self.driver.world.jobs]
        if unused:
            self.enqueue(list(zip(unused, batch, strict=False)), who, fault)

    @rule(pair=st.tuples(*[mortal_specs(mode="last")] * 2), outcome=lane_outcomes, fault=faults)
    def let_one_follow_another(
        self, pair: tuple[bytes, bytes], outcome: Outcome, fault: Fault
    ) -> None:
        """The first runs while the second comes; however it ends, it may end only later."""
        self.enqueue_new_ids(list(pair[:1]), "p1", "none")
        claimed = self.claim_some("w1", 5)
        self.enqueue_new_ids(list(pair[1:]), "p2", fault)
        settled = [Settlement(*lease, outcome) for lease in claimed]
        self.exchange("w1", Turn(self.driver.next_call(), 0, settled), "none")

    @rule(
        batch=st.lists(st.tuples(st.sampled_from(IDS[:8]), mortal_specs()), min_size=1, max_size=5),
        who=producers,
        fault=faults,
    )
    def enqueue_any_ids(self, batch: list[tuple[str, bytes]], who: str, fault: Fault) -> None:
        self.enqueue(batch, who, fault)

    def enqueue(self, batch: list[tuple[str, bytes]], who: str, fault: Fault) -> None:
        if not self.has_lanes:
            batch = [(job, without_lanes(spec)) for job, spec in batch]
        if who not in self.driver.unanswered:
            self.driver.enqueue(who, batch, fault)

    # -- workers ----------------------------------------------------------------------------------

    @rule(who=workers, want=st.integers(1, 5), fault=faults)
    def claim(self, who: str, want: int, fault: Fault) -> None:
        self.exchange(who, Turn(self.driver.next_call(), want), fault)

    @rule(who=workers, want=st.integers(1, 5), outcome=lane_outcomes, fault=faults)
    def run_jobs(self, who: str, want: int, outcome: Outcome, fault: Fault) -> None:
        """Claim, and settle what was claimed in the next call."""
        settled = [Settlement(*pair, outcome) for pair in self.claim_some(who, want)]
        self.exchange(who, Turn(self.driver.next_call(), want, settled), fault)

    @rule(
        batch=st.lists(lane_specs(), min_size=4, max_size=8),
        wants=st.tuples(st.integers(1, 5), st.integers(1, 5)),
        outcome=lane_outcomes,
        fault=faults,
    )
    def let_tenants_take_turns(
        self, batch: list[bytes], wants: tuple[int, int], outcome: Outcome, fault: Fault
    ) -> None:
        """Many jobs come; two workers claim, one ends what it has, and claims again."""
        for reason in ("pause", "rate_limited"):
            self.driver.ask("release", desk.release, "none", reason)
        self.enqueue_new_ids(batch, "p1", "none")
        settled = [Settlement(*pair, outcome) for pair in self.claim_some("w1", wants[0])]
        self.claim_some("w2", wants[1])
        self.exchange("w1", Turn(self.driver.next_call(), wants[1], settled), fault)

    @rule(
        batch=st.lists(lane_specs(), min_size=3, max_size=8),
        chain=st.sampled_from([b"", b" chain=q", b" chain=q"]),
        want=st.integers(1, 5),
        fault=faults,
    )
    def let_jobs_expire(self, batch: list[bytes], chain: bytes, want: int, fault: Fault) -> None:
        """Many come, in one order or in several; all but the last are too late."""
        for reason in ("pause", "rate_limited"):
            self.driver.ask("release", desk.release, "none", reason)
        one_order = [spec[:3] + chain + without_chains(spec)[3:] for spec in batch]
        jobs = [lasting(spec, SECOND) for spec in one_order[:-1]]
        self.enqueue_new_ids([*jobs, one_order[-1]], "p1", "none")
        self.driver.go(SECOND)
        self.exchange("w1", Turn(self.driver.next_call(), want), fault)

    @rule(want=st.integers(1, 5), us=st.sampled_from([2 * SECOND, 30 * SECOND]))
    def a_worker_freezes_before_it_hears_what_it_claimed(self, want: int, us: int) -> None:
        self.exchange("w1", Turn(self.driver.next_call(), want), "vanished")
        self.driver.go(us)
        self.exchange("w2", Turn(self.driver.next_call(), 1), "none")
        self.driver.call("w1", self.driver.unanswered["w1"], "none")

    @rule(data=st.data(), who=workers, fault=faults)
    def settle(self, data: st.DataObject, who: str, fault: Fault) -> None:
        settled = self.some_settlements(data)
        self.exchange(who, Turn(self.driver.next_call(), 0, settled), fault)

    @rule(data=st.data(), who=workers, want=st.integers(0, 5), is_sweep=st.booleans(), fault=faults)
    def settle_and_claim(
        self, data: st.DataObject, who: str, want: int, is_sweep: bool, fault: Fault
    ) -> None:
        settled = self.some_settlements(data)
        self.exchange(who, Turn(self.driver.next_call(), want, settled, None, is_sweep), fault)

    @precondition(lambda self: self.driver.leases)
    @rule(data=st.data(), lines=st.lists(st.sampled_from("xy"), max_size=2), fault=faults)
    def renew_or_note(self, data: st.DataObject, lines: list[str], fault: Fault) -> None:
        driver, pairs = self.driver, self.some_leases(data)
        if data.draw(st.booleans()) or not pairs:
            driver.ask("renew", desk.renew, fault, pairs)
            return
        job, lease = pairs[0]
        step = Step(
            "note",
            lambda: driver.engine.note(QUEUE, job, lease, progress=b"50", lines=lines),
            lambda: None if desk.note(driver.world, job, lease, b"50", lines) else "lease lost",
        )
        driver.do(step, fault)

    @rule()
    def an_idle_worker_wakes(self) -> None:
        driver = self.driver
        popped = driver.wait(driver.wire.call("ZPOPMIN", driver.engine.wake_key(QUEUE)))
        assert bool(popped) == driver.world.is_awake
        driver.world.is_awake = False

    @precondition(lambda self: self.driver.late)
    @rule(data=st.data())
    def an_old_request_arrives(self, data: st.DataObject) -> None:
        late = self.driver.late
        self.driver.deliver(*late.pop(data.draw(st.integers(0, len(late) - 1))))

    # -- operators --------------------------------------------------------------------------------

    @rule(
        data=st.data(),
        verb=st.sampled_from(["cancel", "cancel", "rerun", "promote", "change", "await"]),
        fault=faults,
    )
    def operate_on_jobs(self, data: st.DataObject, verb: str, fault: Fault) -> None:
        driver = self.driver
        known = st.sampled_from(sorted({*driver.world.jobs, IDS[-1]}))
        if verb == "change":
            self.change(data, data.draw(known), fault)
        elif verb == "await":
            driver.ask("await_job", desk.await_job, fault, data.draw(known))
        else:
            ids = data.draw(st.lists(known, min_size=1, max_size=4))
            driver.ask(verb, getattr(desk, verb), fault, ids)

    def change(self, data: st.DataObject, job: str, fault: Fault) -> None:
        driver = self.driver
        delay = data.draw(st.sampled_from([None, 0, SECOND, 20 * SECOND]))
        priority = data.draw(st.sampled_from([None, 1, 10, 99]))
        step = Step(
            "change",
            lambda: driver.engine.change(QUEUE, job, delay_us=delay, priority=priority),
            lambda: desk.change(driver.world, job, delay, priority),
        )
        driver.do(step, fault)

    @rule(
        data=st.data(),
        verb=st.sampled_from(["hold", "release", "release", "clean", "clean", "configure", "idem"]),
        fault=faults,
    )
    def operate_on_the_queue(self, data: st.DataObject, verb: str, fault: Fault) -> None:
        getattr(self, verb)(data, fault)

    def hold(self, data: st.DataObject, fault: Fault) -> None:
        reason, duration = data.draw(reasons), data.draw(st.sampled_from([None, 1, SECOND]))
        self.driver.ask("hold", desk.hold, fault, reason, duration, "ops")

    def release(self, data: st.DataObject, fault: Fault) -> None:
        self.driver.ask("release", desk.release, fault, data.draw(reasons))

    def clean(self, data: st.DataObject, fault: Fault) -> None:
        state = data.draw(st.sampled_from([*WAITING, *FINISHED]))
        age, size = data.draw(st.sampled_from([0, SECOND])), data.draw(st.integers(1, 4))
        self.driver.ask("clean", desk.clean, fault, state, age, size)

    def idem(self, data: st.DataObject, fault: Fault) -> None:
        driver, verbs = self.driver, ["begin", "extend", "complete", "fail", "clear"]
        drawn = {"verb": verbs, "owner": "ab", "token": ["", "s", "t"], "blob": BLOBS}
        said = {name: data.draw(st.sampled_from(some)) for name, some in drawn.items()}
        step = Step(
            "idem",
            lambda: driver.engine.idem(QUEUE, **said, hash="key", ttl_ms=600_000),
            lambda: desk.idem(driver.world, **said),
        )
        driver.do(step, fault)

    def configure(self, data: st.DataObject, fault: Fault) -> None:
        edits = data.draw(st.one_of(changes, lane_changes))

        async def send() -> None:
            await self.driver.engine.configure(QUEUE, edits)

        step = Step("configure", send, lambda: desk.configure(self.driver.world, edits))
        self.driver.do(step, fault)

    @rule(lane=lanes, given=overrides(), lasts=st.sampled_from([None, SECOND]), fault=faults)
    def decide_for_a_tenant(
        self, lane: str, given: dict[str, str], lasts: int | None, fault: Fault
    ) -> None:
        driver = self.driver

        async def send() -> object:
            told = await driver.engine.tenant(QUEUE, lane, given, by="ops", duration_us=lasts)
            return told[:4]

        step = Step("tenant", send, lambda: desk.tenant(driver.world, lane, given, "ops", lasts))
        driver.do(step, fault)

    @precondition(lambda self: len(self.driver.world.jobs) > 12)
    @rule()
    def drain(self) -> None:
        """All that waits goes, in slices, until nothing more comes up behind it."""
        for state in ("delayed", "blocked", "ready"):
            while self.driver.ask("clean", desk.clean, "none", state, 0, 2) == 2:
                pass

    @precondition(lambda self: len(self.driver.world.jobs) > 12)
    @rule(force=st.booleans())
    def obliterate(self, force: bool) -> None:
        """Requests of before that arrive later would be about another queue: none are left."""
        self.driver.late.clear()
        self.driver.obliterate(force=force)

    # -- after each step --------------------------------------------------------------------------

    @invariant()
    def the_server_agrees_with_the_model(self) -> None:
        self.driver.check()

    def teardown(self) -> None:
        self.driver.close()

    def exchange(self, who: str, turn: Turn, fault: Fault) -> None:
        if who not in self.driver.unanswered:
            self.driver.exchange(who, turn, fault)

    def claim_some(self, who: str, want: int) -> list[tuple[str, str]]:
        call = self.driver.next_call()
        self.exchange(who, Turn(call, want), "none")
        return [pair for pair in self.driver.leases if pair[1] == call]

    def some_leases(self, data: st.DataObject) -> list[tuple[str, str]]:
        if not self.driver.leases:
            return []
        newest_first = st.sampled_from(self.driver.leases[::-1])
        return data.draw(st.lists(newest_first, unique=True, min_size=1, max_size=4))

    def some_settlements(self, data: st.DataObject) -> list[Settlement]:
        return [Settlement(*pair, data.draw(lane_outcomes)) for pair in self.some_leases(data)]


@pytest.mark.parametrize("part", range(8))
def test_the_engine_agrees_with_the_model(valkey: Server, part: int) -> None:
    """In parts, so that they run beside each other."""
    run_machine(EngineMachine, valkey, part, searching(10, stateful_step_count=50))
