"""What the drivers of one queue have in common: a server, a clock, a network with faults."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable
from typing import Any

from faena.engine import Address, Engine
from tests._support.dump import dump
from tests._support.faulty_wire import Fault, FaultyWire
from tests._support.rig import Clock
from tests._support.transitions import StateWatch
from tests._support.valkey import Server

QUEUE = "q"


class QueueDriver:
    """One queue, and the faulty network to it."""

    def __init__(self, server: Server, namespace: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.wire = FaultyWire(Address.parse(server.url))
        StateWatch(self.wire)
        self.clock = Clock()
        self.engine = Engine(self.wire, namespace=namespace, clock=self.clock, patience_s=60)
        self.leases: list[tuple[str, str]] = []
        """Those that workers were told of, old ones included; the newest come last."""
        self.unanswered: dict[str, Any] = {}
        """The step that a caller was not answered and must ask again."""
        self._calls = itertools.count(1)

    def wait(self, awaited: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(awaited)

    def next_call(self) -> str:
        """Each begins with the one before, so that half a lease cannot pass for a whole one."""
        return "c" * next(self._calls)

    def do(self, step: Any, /, fault: Fault = "none") -> Any:
        """Run a step under a fault; returns its answer, `vanished` where none came."""
        raise NotImplementedError

    def call(self, caller: str, step: Any, fault: Fault) -> Any:
        """A caller that hears nothing repeats this very step before it does anything else."""
        answer = self.do(step, fault)
        if answer == "vanished":
            self.unanswered[caller] = step
        else:
            self.unanswered.pop(caller, None)
            self.learn(answer)
        return answer

    def learn(self, answer: Any) -> None:
        self.leases += [(claim.id, claim.lease) for claim in getattr(answer, "claimed", ())]
        del self.leases[:-16]

    def close(self) -> None:
        self.wait(self._close())
        self.loop.close()

    async def _close(self) -> None:
        while await self.engine.obliterate(QUEUE, 1000, force=True) != "DONE":
            pass
        left = await dump(self.engine, QUEUE)
        await self.wire.call("FLUSHALL")
        await self.wire.close()
        assert set(left) == left.mortal
