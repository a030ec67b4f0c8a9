"""Dead jobs for tests of the dead-letter desk, and its calls in the shortest words."""

from __future__ import annotations

from typing import Any

from faena.engine.calls.deadletter import (
    Decision,
    DeskCalls,
    Filter,
    Found,
    Position,
    RedriveFilter,
    RedriveRecord,
    Step,
)
from faena.engine.scripts import Settlement, Turn
from faena.outcomes import Buried, DeathNote, ErrorRecord
from tests._support.rig import Rig

WHY = Decision("retry", "mended", "ana")
HIGH = 5


def note(**facts: Any) -> DeathNote:
    """The note of a job that died of a kind of error."""
    given = {"task": "send", "name": "Boom", "fingerprint": "f00", "sample": "it broke"}
    return DeathNote(**(given | facts))


def new_redrive(**facts: Any) -> RedriveRecord:
    """What a redrive begins with."""
    return RedriveRecord(**{"filter": RedriveFilter(), "by": "ana", "reason": "mended"} | facts)


class DeskRig:
    """The desk of a rig's queue."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.calls = DeskCalls(rig.engine)
        self._ids = 0
        self._steps = 0

    async def bury(self, *jobs: str, has_run: bool = True, facts: Any = None, **of: Any) -> None:
        """Enqueue jobs and let them die, all at this instant."""
        await self.rig.add(*jobs, **(facts or {}))
        await self.end(*jobs, has_run=has_run, **of)

    async def end(self, *jobs: str, has_run: bool = True, **of: Any) -> None:
        """Claim everything that is ready and bury these."""
        call = self.rig.next_call()
        claimed = await self.rig.turn(1000, call=call)
        assert {one.id for one in claimed.claimed} >= set(jobs)
        told = note(**of)
        error = ErrorRecord(name=told.name, message="it broke", code=told.code or None)
        endings = [Settlement(job, call, Buried(error, has_run, told)) for job in jobs]
        turn = Turn(self.rig.next_call(), 0, endings)
        await self.rig.engine.exchange(self.rig.queue, "worker", "worker", turn)

    async def page(
        self, *, after: Position | None = None, newest: bool = False, **wanted: Any
    ) -> list[str]:
        """The ids that one look finds."""
        found = await self.look(after=after, newest=newest, **wanted)
        return [one.position.id for one in found]

    async def look(
        self, *, after: Position | None = None, newest: bool = False, **wanted: Any
    ) -> list[Found]:
        part = await self.calls.page(
            self.rig.queue,
            Filter(**wanted),
            after=after or Position(),
            is_reverse=newest,
            limit=200,
        )
        return part.found

    async def retry_as_new(self, *jobs: str, action: str = "retry", epoch: int = 0) -> list[str]:
        """Retry jobs; a job `a` becomes `a2`, and that one `a22`."""
        pairs = [(job, f"{job}2") for job in jobs]
        why = WHY._replace(action=action)
        return await self.calls.retry_as_new(self.rig.queue, why, HIGH, pairs, epoch=epoch)

    async def dismiss(self, status: str, *jobs: str) -> list[str]:
        action = "discard" if status == "discarded" else "manual"
        why = WHY._replace(action=action)
        return await self.calls.dismiss(self.rig.queue, status, why, jobs)

    async def step(self, redrive: str = "r", most: int = 50, *, again: bool = False) -> Step:
        """One slice of a redrive; `again` sends the last call once more."""
        self._steps += not again
        ids = [f"new{self._ids + number}" for number in range(most)]
        call = ("driver", f"call{self._steps:08d}")
        step = await self.calls.redrive(self.rig.queue, redrive, call, HIGH, ids)
        assert step is not None
        self._ids += step.moved if not again else 0
        return step
