"""Carries steps out on the server and lets a watch look at the queue after each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from faena.engine.scripts import Exchanged, Settlement, Turn
from faena.errors import InternalError, StoreUnavailable
from faena.outcomes import Completed
from tests._support.dump import dump
from tests._support.faulty_wire import Copy, Fault
from tests._support.rig import SECOND
from tests._support.valkey import Server
from tests.properties.queue_driver import QUEUE, QueueDriver
from tests.properties.sight import Sight
from tests.properties.watch import FULL, Watch

LEFT_BY_LANES = ("lane:", "tail:", "lanes", "heads", "ring", "parked")
"""Keys that must be gone when no job is left."""

Send = Callable[[], Awaitable[Any]]


class LaneDriver(QueueDriver):
    """One queue and the faulty network to it; knows nothing of what should come out."""

    def __init__(self, server: Server, namespace: str) -> None:
        super().__init__(server, namespace)
        self.watch = Watch()
        self.late: list[Copy] = []
        self.is_broken = False

    @property
    def sight(self) -> Sight:
        """The queue as it was after the last step."""
        return self.watch.last

    def declare(self, settings: Mapping[str, str]) -> None:
        self.engine.know(QUEUE, settings)
        self.wait(self.engine.declare(QUEUE))

    def edges(self) -> list[int]:
        """The instants ahead at which something is due, ends or opens."""
        sight = self.sight
        found = [*sight.scores("delayed").values(), *sight.scores("running").values()]
        found += [until for until in sight.scores("parked").values() if until < FULL]
        for control in sight.hash("tenants").values():
            found += [control.get("ends_at", 0), control.get("held_until", 0)]
        return sorted({int(at) for at in found if at > self.clock.now})

    # -- steps ------------------------------------------------------------------------------------

    def do(self, send: Send, /, fault: Fault = "none") -> Any:
        self.wire.fault = fault
        answer = self.wait(_in_words(send()))
        if fault == "kept" and self.wire.copy is not None:
            self.late.append(self.wire.copy)
        self.look()
        return answer

    def ask(self, name: str, fault: Fault, *args: Any, **options: Any) -> Any:
        method = getattr(self.engine, name)
        return self.do(lambda: method(QUEUE, *args, **options), fault)

    def enqueue(self, caller: str, jobs: list[tuple[str, bytes]], fault: Fault) -> None:
        call = self.next_call()
        self.call(caller, lambda: self.engine.enqueue(QUEUE, caller, call, jobs), fault)

    def exchange(self, worker: str, turn: Turn, fault: Fault) -> Exchanged | None:
        answer = self.call(worker, lambda: self.engine.exchange(QUEUE, worker, worker, turn), fault)
        if not isinstance(answer, Exchanged):
            return None
        left = list(self.watch.idle(answer, turn))
        self.is_broken = bool(left)
        assert not left, f"{left} in {self.sight.keys}"
        return answer

    def deliver(self, copy: Copy) -> None:
        """A copy of an old request arrives, and nobody hears its answer."""
        self.wait(self.wire.deliver(copy, self.clock.now))
        self.look()

    def look(self) -> None:
        keys = self.wait(dump(self.engine, QUEUE))
        problems = self.watch.look(self.clock.now, keys)
        self.is_broken = bool(problems)
        assert not problems, f"{problems} in {dict(keys)}"

    # -- the end ----------------------------------------------------------------------------------

    def obliterate(self) -> None:
        """Requests of before that arrive later would be about another queue: none are left."""
        self.late.clear()
        while self.wait(self.engine.obliterate(QUEUE, 3, force=True)) != "DONE":
            pass
        self.watch = Watch()

    def finish(self) -> None:
        """Lift every bound: then each job that is left must come up and can be removed."""
        if self.is_broken:
            return
        for lane in {*self.sight.hash("tenants")}:
            self.ask("tenant", "none", lane, dict.fromkeys(_OVERRIDES, ""), by="ops")
        names = ("limits", "tenant_limits", "max_running", "tenant_max_running")
        self.ask("configure", "none", dict.fromkeys(names, ""))
        self.ask("release", "none", "pause")
        for _ in range(60):
            self.clock.now += 100 * SECOND
            if not self._run_all():
                break
        assert not self.sight.live(), f"no job may be stuck: {self.sight.keys}"
        for state in ("completed", "dead", "cancelled"):
            self.ask("clean", "none", state, 0, 100)
        left = [name for name in self.sight.keys if name.startswith(LEFT_BY_LANES)]
        assert not left, f"{left} outlive their jobs in {self.sight.keys}"

    def _run_all(self) -> int:
        """Claim and complete whatever comes up at this instant; returns how many live on."""
        settled: list[Settlement] = []
        while True:
            turn = Turn(self.next_call(), 10, settled, None, True)
            answer = self.wait(self.engine.exchange(QUEUE, "last", "last", turn))
            settled = [Settlement(claim.id, claim.lease, Completed()) for claim in answer.claimed]
            self.look()
            if not settled:
                return len(self.sight.live())


_OVERRIDES = ("limits", "max_running", "weight", "size", "held_until", "reason")


async def _in_words(sent: Awaitable[Any]) -> Any:
    """Errors that belong to an answer, as words."""
    try:
        return await sent
    except StoreUnavailable:
        return "vanished"
    except InternalError:
        return "overtaken"
