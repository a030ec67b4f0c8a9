"""Lone jobs left in the stream, in any order with calls of scripts, with answers that are lost and
packets that come twice or late: every job is taken in once, in the order in which they came.

A producer has one call in flight, and repeats it by the script until it is answered. What is over
is not kept, so that nothing but the record of a call can tell that its job was there."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Iterator
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from faena.engine import Address, Engine, Wire
from faena.engine.scripts import CREATED, Settlement, Turn
from faena.engine.settings import declaration
from faena.inspection.audit import audit
from faena.options import QueueOptions, Retain
from faena.outcomes import Completed
from tests._support.search import IS_FULL, run_machine, searching
from tests._support.valkey import Server

QUEUE = "q"
KEPT_NONE = Retain(completed_count=0, cancelled_count=0, dead_count=0)

producers = st.sampled_from(["111111111111", "222222222222"])


class Packet(NamedTuple):
    """One call of a producer, as it goes to the stream."""

    producer: str
    turn: int
    job: str
    line: str

    @property
    def caller(self) -> str:
        return f"{self.producer}0"

    @property
    def call(self) -> str:
        return f"{self.producer}{self.turn:x}"

    @property
    def spec(self) -> bytes:
        return f"{self.line}\n{{}}".encode()


class ArrivalsMachine(RuleBasedStateMachine):
    """Two producers, a worker and an operator."""

    server: Server
    numbers = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.wire = Wire(Address.parse(self.server.url))
        namespace = f"arrivals{next(self.numbers)}"
        self.engine = Engine(self.wire, namespace=namespace, patience_s=60)
        self.turns: dict[str, Iterator[int]] = {}
        self.waiting: list[str] = []
        """Jobs that were accepted and have not started, in order."""
        self.running: list[tuple[str, str]] = []
        self.unanswered: dict[str, Packet] = {}
        self.late: list[Packet] = []
        """Packets of which a copy is still on its way."""
        self.names = itertools.count()

    def wait(self, awaited: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(awaited)

    @initialize(lines=st.sampled_from([["010"], ["010", "010 lane=@a", "010 lane=@b"]]))
    def begin(self, lines: list[str]) -> None:
        self.lines = lines
        self.engine.know(QUEUE, declaration(QueueOptions(retain=KEPT_NONE)))
        self.wait(self.engine.declare(QUEUE))

    def packet(self, producer: str, which: int) -> Packet:
        turn = next(self.turns.setdefault(producer, itertools.count(1)))
        line = self.lines[which % len(self.lines)]
        return Packet(producer, turn, f"j{next(self.names):03d}", line)

    def append(self, packet: Packet) -> bool:
        """Whether the stream was there."""
        fields = packet.job, packet.spec, packet.caller, packet.call
        command = self.engine.command("XADD", QUEUE, "arrivals", "NOMKSTREAM", "*", *fields)
        return self.wait(command) is not None

    def by_script(self, packet: Packet) -> None:
        job = (packet.job, packet.spec)
        call = self.engine.enqueue(QUEUE, packet.caller, packet.call, [job])
        assert self.wait(call) == [CREATED]

    @rule(
        producer=producers, which=st.integers(0, 2), copies=st.integers(1, 3), is_lost=st.booleans()
    )
    def leave(self, producer: str, which: int, copies: int, *, is_lost: bool) -> None:
        if producer in self.unanswered:
            return self.repeat(producer)
        packet = self.packet(producer, which)
        if not self.append(packet):
            self.by_script(packet)
        self.waiting.append(packet.job)
        for _ in range(1, copies):
            self.late.append(packet)
        if is_lost:
            self.unanswered[producer] = packet
        return None

    @rule(producer=producers, which=st.integers(0, 2))
    def enqueue(self, producer: str, which: int) -> None:
        if producer in self.unanswered:
            return self.repeat(producer)
        packet = self.packet(producer, which)
        self.by_script(packet)
        self.waiting.append(packet.job)
        return None

    @precondition(lambda self: self.unanswered)
    @rule(producer=producers)
    def repeat(self, producer: str) -> None:
        if packet := self.unanswered.pop(producer, None):
            self.by_script(packet)

    @precondition(lambda self: self.late)
    @rule(which=st.integers(0))
    def come_late(self, which: int) -> None:
        """A copy of a packet that was answered, or given up, long ago."""
        self.append(self.late.pop(which % len(self.late)))

    @rule(want=st.integers(1, 5))
    def claim(self, want: int) -> None:
        call = f"333333333333{next(self.names) + 1:06x}"
        turn = Turn(call, want, (), None, is_sweep=False)
        got = self.wait(self.engine.exchange(QUEUE, "worker0", "worker", turn)).claimed
        ids = [claim.id for claim in got]
        assert len(ids) == min(want, len(self.waiting))
        if len(self.lines) == 1:
            assert ids == self.waiting[:want]
        assert set(ids) <= set(self.waiting)
        self.waiting = [job for job in self.waiting if job not in ids]
        self.running += [(job, call) for job in ids]

    @precondition(lambda self: self.running)
    @rule(number=st.integers(1, 5))
    def complete(self, number: int) -> None:
        done, self.running = self.running[:number], self.running[number:]
        call = f"333333333333{next(self.names) + 1:06x}"
        settled = [Settlement(*lease, Completed()) for lease in done]
        turn = Turn(call, 0, settled, None, is_sweep=False)
        assert not self.wait(self.engine.exchange(QUEUE, "worker0", "worker", turn)).lost

    @precondition(lambda self: self.waiting)
    @rule(which=st.integers(0))
    def cancel(self, which: int) -> None:
        job = self.waiting.pop(which % len(self.waiting))
        assert self.wait(self.engine.cancel(QUEUE, [job])) == ["cancelled"]

    @rule()
    def shut(self) -> None:
        """An operator edits something."""
        self.wait(self.engine.configure(QUEUE, {"max_running": "1000"}))

    @invariant()
    def all_are_there(self) -> None:
        if not hasattr(self, "lines"):
            return
        counts = self.wait(self.engine.overview(QUEUE)).counts
        assert counts["ready"] == len(self.waiting)
        assert counts["running"] == len(self.running)

    def teardown(self) -> None:
        if hasattr(self, "lines"):
            assert list(self.wait(audit(self.engine, QUEUE))) == []
            while self.wait(self.engine.obliterate(QUEUE, 1000, force=True)) != "DONE":
                pass
        self.wait(self.wire.close())
        self.loop.close()


def test_every_job_is_taken_in_once_and_in_order(valkey: Server) -> None:
    options = searching(60, stateful_step_count=60 if IS_FULL else 30)
    run_machine(ArrivalsMachine, valkey, 0, options)
