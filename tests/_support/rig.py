"""One queue on a real server with a clock that only tests move.

A rig speaks to the engine in the shortest words a test of a script needs, and remembers a dump so
that a test can say what one call changed, key by key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faena.engine import Engine, Wire
from faena.engine.envelope import seal
from faena.engine.scripts import Answer, Exchanged, Settlement, Turn
from faena.engine.settings import declaration
from faena.options import QueueOptions, Retain
from faena.outcomes import ErrorRecord, Outcome
from tests._support.dump import Dump, changes, sound_dump

T0 = 1_700_000_000_000_000
"""The instant every rig starts at: of the size that real instants have."""

SECOND = 1_000_000
STEP = 300 * SECOND
"""The default age step: what one step of priority is worth."""

LEASE = 30 * SECOND
BOOM = ErrorRecord(name="Boom", message="it broke")
BOOM_JSON = '{"name":"Boom","message":"it broke"}'
KEEP_NONE = Retain(completed_count=0, dead_count=0, cancelled_count=0)


class Clock:
    """Microseconds that stand still until told."""

    def __init__(self, now: int = T0) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def go(self, seconds: float) -> int:
        self.now += round(seconds * SECOND)
        return self.now


class Rig:
    """A queue, its engine and its clock."""

    def __init__(self, wire: Wire, namespace: str, queue: str = "q") -> None:
        self.clock = Clock()
        self.engine = Engine(wire, namespace=namespace, clock=self.clock, patience_s=60)
        self.queue = queue
        self._calls = 0
        self._seen = Dump()
        self.declare_as()

    def declare_as(self, **options: Any) -> None:
        """What the queue is declared with at its next call."""
        self.engine.know(self.queue, declaration(QueueOptions(**options)))

    async def declare(self, **options: Any) -> None:
        self.declare_as(**options)
        await self.engine.declare(self.queue)

    async def edit(self, **settings: object) -> None:
        """Change settings at run time."""
        await self.engine.configure(
            self.queue, {name: str(value) for name, value in settings.items()}
        )

    def next_call(self) -> str:
        self._calls += 1
        return f"call{self._calls:04d}"

    async def add(
        self,
        *ids: str,
        priority: int = 10,
        body: bytes = b"{}",
        caller: str = "producer",
        call: str | None = None,
        **facts: object,
    ) -> list[Answer]:
        """Enqueue jobs that share an envelope and a body."""
        jobs = [(job, seal(priority, facts, body)) for job in ids]
        return await self.engine.enqueue(self.queue, caller, call or self.next_call(), jobs)

    async def turn(
        self,
        want: int = 0,
        *settled: tuple[str, str, Outcome],
        worker: str = "worker",
        call: str | None = None,
        samples: Mapping[str, Any] | None = None,
        is_sweep: bool = False,
        about: str = "",
    ) -> Exchanged:
        """One exchange; the worker's name is its caller's too."""
        endings = [Settlement(*ending) for ending in settled]
        turn = Turn(call or self.next_call(), want, endings, samples, is_sweep, about=about)
        return await self.engine.exchange(self.queue, worker, worker, turn)

    async def claim(self, want: int = 1, *, worker: str = "worker") -> str:
        """Claim that many, which must be there; returns the lease they share."""
        call = self.next_call()
        exchanged = await self.turn(want, worker=worker, call=call)
        assert len(exchanged.claimed) == want, exchanged
        return call

    async def run(self, job: str, outcome: Outcome, **facts: Any) -> None:
        """Enqueue a job into an otherwise empty queue, claim it and settle it."""
        await self.add(job, **facts)
        lease = await self.claim()
        await self.turn(0, (job, lease, outcome))

    async def dump(self) -> Dump:
        return await sound_dump(self.engine, self.queue)

    async def remember(self) -> None:
        """Take the dump that `changed` compares with."""
        self._seen = await self.dump()

    async def changed(self) -> dict[str, Any]:
        """What has changed since `remember`, without records of calls, events and counters."""
        return changes(self._seen, await self.dump())

    async def is_untouched(self) -> bool:
        """Whether nothing at all has changed since `remember`."""
        return await self.dump() == self._seen

    async def states(self) -> dict[str, str]:
        """Every job's state."""
        taken = await self.dump()
        return {job: state for state in STATES for job, _ in taken.get(state, [])}

    async def counters(self) -> dict[str, int]:
        """The counters of every minute together."""
        total: dict[str, int] = {}
        for name, minute in (await self.dump()).items():
            if name.startswith("stats:"):
                counters = (one for one in minute.items() if isinstance(one[1], int))
                for counter, number in counters:
                    total[counter] = total.get(counter, 0) + number
        return total

    async def events(self) -> list[dict[str, str]]:
        """What the batches told, without instants; a field told twice is joined."""
        told: list[dict[str, str]] = []
        for entry in (await self.dump()).get("events", []):
            joined: dict[str, str] = {}
            for name, value in entry:
                joined[name] = f"{joined[name]} {value}" if name in joined else value
            joined.pop("at")
            told.append(joined)
        return told

    async def obliterate(self) -> None:
        while await self.engine.obliterate(self.queue, 1000, force=True) != "DONE":
            pass


STATES = ("ready", "delayed", "blocked", "running", "completed", "dead", "cancelled")


def score(stamp: int, priority: int = 10, attempts: int = 0, boost: int = 2) -> float:
    """The place of a ready job under the default age step."""
    return float(stamp + (priority - boost * attempts) * STEP)
