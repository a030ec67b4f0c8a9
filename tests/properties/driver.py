"""Carries one step out twice, on the server and in the model, and compares what they answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from faena.engine.scripts import Exchanged, Turn
from faena.errors import InternalError, LeaseLost, StoreUnavailable
from faena.inspection.audit import audit
from tests._support.dump import BOOKKEEPING, changes, sound_dump
from tests._support.faulty_wire import Copy, Fault
from tests._support.rig import T0
from tests._support.valkey import Server
from tests.properties import desk, intake, turn
from tests.properties.model import World
from tests.properties.queue_driver import QUEUE, QueueDriver

UNSAID = (*BOOKKEEPING, "shares:", "throttled")
"""Keys that the model says nothing of."""

ONCE = ("rerun", "promote", "change")
"""Scripts that remember each call, under a caller of its own, when it has changed something."""


class Step(NamedTuple):
    """One operation: what the engine does and what the model does."""

    script: str
    send: Callable[[], Awaitable[Any]]
    think: Callable[[], Any]


class Driver(QueueDriver):
    """One queue, its model, and the faulty network between."""

    def __init__(self, server: Server, namespace: str) -> None:
        super().__init__(server, namespace)
        self.world = World({}, T0)
        self.settings: dict[str, str] = {}
        self.late: list[tuple[Copy, Step]] = []
        """Copies of requests that are still on their way."""

    def declare(self, settings: dict[str, str]) -> None:
        self.settings = settings
        self.engine.know(QUEUE, settings)
        self.wait(self.engine.declare(QUEUE))
        desk.declare(self.world, settings)

    def go(self, us: int) -> None:
        """Let time pass; a clock set back begins a new time, in which the old one's claims left."""
        self.clock.now += us
        world = self.world
        world.now = self.clock.now
        if us < 0:
            world.limited_since = dict.fromkeys(world.limited_since, len(world.granted))

    # -- steps ------------------------------------------------------------------------------------

    def do(self, step: Step, /, fault: Fault = "none") -> Any:
        """Run a step under a fault; the engine must answer what the model answers."""
        if step.script in ONCE:
            step = step._replace(think=self._once(step.think))
        expected: Any = self.think(step)
        if fault == "lost":
            expected = self.think(step)
        elif fault == "doubled":
            self.think(step)
        elif fault == "vanished":
            expected = "vanished"
        self.wire.fault = fault
        answer = _without_instants(self.wait(_in_words(step.send())))
        if fault == "kept" and self.wire.copy is not None:
            self.late.append((self.wire.copy, step))
        assert answer == expected, f"the model says {expected}, the engine {answer}"
        return answer

    def think(self, step: Step) -> Any:
        answer = step.think()
        self.world.note_laned()
        return answer

    def _once(self, think: Callable[[], Any]) -> Callable[[], Any]:
        answers: list[Any] = []

        def think_once() -> Any:
            if answers:
                return answers[0]
            was_awake, self.world.is_awake = self.world.is_awake, False
            answer = think()
            if self.world.is_awake:  # each of these wakes the workers when it changes anything
                answers.append(answer)
            self.world.is_awake |= was_awake
            return answer

        return think_once

    def ask(self, name: str, think: Callable[..., Any], fault: Fault, *args: Any) -> Any:
        """An operation whose engine method and model take the same arguments."""
        method = getattr(self.engine, name)
        script = {"await_job": "await", "release": "hold"}.get(name, name)
        step = Step(script, lambda: method(QUEUE, *args), lambda: think(self.world, *args))
        return self.do(step, fault)

    def enqueue(self, caller: str, jobs: list[tuple[str, bytes]], fault: Fault) -> None:
        call = self.next_call()
        step = Step(
            "enqueue",
            lambda: self.engine.enqueue(QUEUE, caller, call, jobs),
            lambda: intake.enqueue(self.world, caller, call, jobs),
        )
        self.call(caller, step, fault)

    def exchange(self, worker: str, asked: Turn, fault: Fault) -> None:
        step = Step(
            "exchange",
            lambda: self.engine.exchange(QUEUE, worker, worker, asked),
            lambda: turn.exchange(self.world, worker, worker, asked),
        )
        self.call(worker, step, fault)

    def deliver(self, copy: Copy, step: Step) -> None:
        """A copy of an old request arrives, and nobody hears its answer."""
        self.think(step)
        self.wait(self.wire.deliver(copy, self.clock.now))

    def learn(self, answer: Any) -> None:
        super().learn(answer)
        if getattr(answer, "claimed", ()):
            self._check_limits()

    # -- what must hold after each step -----------------------------------------------------------

    def _check_limits(self) -> None:
        """No window of a limit holds more than its max; only a claim can break that."""
        world = self.world
        for most, per in world.limits:
            since = world.limited_since[per]
            inside = [number for at, number in world.granted[since:] if at > world.now - per]
            assert sum(inside) <= most

    def check(self) -> None:
        """Every key is as the model says, and the audit finds nothing."""
        taken = self.wait(sound_dump(self.engine, QUEUE))
        held = {name: of for name, of in taken.items() if not name.startswith(UNSAID)}
        differing = changes(self.world.dump(), held)
        assert not differing, f"the model says {self.world.dump()}, the server has {differing}"
        calls = {f"call:{caller}": call for caller, (call, _) in self.world.calls.items()}
        records = {name: of[0] for name, of in taken.items() if name.startswith("call:")}
        assert {name: call for name, call in records.items() if call not in ONCE} == calls
        assert self.wait(audit(self.engine, QUEUE)) == []

    def obliterate(self, *, force: bool) -> None:
        answer = "MORE"
        while answer == "MORE":
            answer = self.wait(self.engine.obliterate(QUEUE, 3, force=force))
        assert answer == desk.obliterate(self.world, force=force)
        # The engine would declare the queue again by itself, and a fault would strike that call.
        self.wait(self.engine.declare(QUEUE))
        if answer == "DONE":
            desk.declare(self.world, self.settings)


async def _in_words(sent: Awaitable[Any]) -> Any:
    """Errors that belong to an answer, as words.

    What an exchange tells of jobs that died or expired here is told once, to whoever asks first:
    news, of which the model says nothing.
    """
    try:
        answer = await sent
        return answer._replace(buried=(), expired=()) if isinstance(answer, Exchanged) else answer
    except StoreUnavailable:
        return "vanished"
    except LeaseLost:
        return "lease lost"
    except InternalError:
        return intake.OVERTAKEN


def _without_instants(answer: Any) -> Any:
    """When a job was taken in is not in the model; tests/scripts/test_expiry.py looks at it."""
    if not isinstance(answer, Exchanged):
        return answer
    claimed = [msgspec.structs.replace(one, enqueued_at=0) for one in answer.claimed]
    return answer._replace(claimed=claimed)
