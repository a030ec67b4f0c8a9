"""Explains one job: looks for it, asks for its gates, and reads what else keeps it.

A job in one shard costs two script calls; an upstream, a leader, a desk record or a flow that it
waits for costs a few more. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from faena.engine import Engine
from faena.engine.calls import upstreams
from faena.engine.calls.deadletter import DeskCalls
from faena.engine.calls.flows import FlowCalls
from faena.engine.gates import Waiting
from faena.engine.scripts import Look
from faena.errors import FaenaError
from faena.inspection.ended import DeskNote, past_of
from faena.inspection.explanation import Explanation, explanation_of, with_upstreams
from faena.inspection.flow_position import position_of
from faena.inspection.gate import awaited_upstreams
from faena.inspection.instant import instant
from faena.inspection.job_view import read_job
from faena.inspection.past import PastJobs
from faena.inspection.reason import Detail, Reason
from faena.job import JobView
from faena.sharding.consistent_read import travelling
from faena.sharding.router import Routers
from faena.states import State
from faena.values.ids import made_at_us

_TRIES: Final = 3
"""A job may change its state between two calls."""
_DEPTH: Final = 3
"""How far jobs that wait for others are followed."""
_FOLLOWED: Final = 3
"""How many are followed, where a job waits for several."""

Found = tuple[str, Look | None]
"""A shard, and what it knows of a job."""


class Explainer:
    """Explains jobs of any queue."""

    def __init__(self, engine: Engine, routers: Routers, past: PastJobs) -> None:
        self._engine = engine
        self._routers = routers
        self._past = past

    async def find(self, queue: str, job_id: str, lane: str | None) -> Found:
        """The shard that has a job and what it knows of it, which is nothing where none has."""

        async def look(shard: str) -> Found:
            (found,) = await self._engine.look(shard, [job_id])
            return shard, found

        return await self._routers.of(queue).first(
            look, is_found=lambda answer: answer[1] is not None, lane=lane
        )

    async def explain(
        self, queue: str, job_id: str, lane: str | None = None, depth: int = _DEPTH
    ) -> Explanation:
        """Why a job is where it is; jobs that it waits for are followed so deep."""
        shard, look, waiting = await self._ask(queue, job_id, lane)
        told = explanation_of(queue, job_id, waiting)
        if look is None or told.state is None:
            return await self._elsewhere(replace(told, state=None), lane, depth)
        if look.state != waiting.state:  # it goes on faster than it can be looked at
            return told
        view = read_job(queue, job_id, look)
        told = _with_facts(told, view, _mark(look))
        if not told.is_waiting:
            return replace(told, past=past_of(view, await self._desk(shard, view)))
        return await self._waiting(told, waiting, lane, depth)

    async def _ask(
        self, queue: str, job_id: str, lane: str | None
    ) -> tuple[str, Look | None, Waiting]:
        """What its shard says, where possible of one state."""
        tries = 0
        while True:
            shard, look = await self.find(queue, job_id, lane)
            waiting = await self._engine.explain(shard, job_id)
            tries += 1
            if waiting.state == (look.state if look else "") or tries == _TRIES:
                return shard, look, waiting

    async def _waiting(
        self, told: Explanation, found: Waiting, lane: str | None, depth: int
    ) -> Explanation:
        if names := awaited_upstreams(told.gates):
            views = await upstreams.views(self._engine, names, told.tenant or "")
            told = with_upstreams(told, views)
        leader = found.facts.get("leader")
        if leader and depth:
            told = replace(
                told, waits_for=(await self.explain(told.queue, leader, lane, depth - 1),)
            )
        return told

    async def _desk(self, shard: str, view: JobView) -> DeskNote | None:
        """What the desk knows of a dead job."""
        if view.state is not State.DEAD:
            return None
        record = (await DeskCalls(self._engine).records(shard, [view.id])).get(view.id)
        if record is None:
            return None
        due = await self._engine.command("ZSCORE", shard, "desk_due", view.id)
        _, reason, by, _ = record.r or ("", None, None, 0.0)
        return DeskNote(
            status=record.s,
            retry_at=int(float(due)) if due else None,
            retried_as=record.reached,
            reason=reason,
            by=by,
        )

    # -- jobs that no shard has -------------------------------------------------------------------

    async def _elsewhere(self, told: Explanation, lane: str | None, depth: int) -> Explanation:
        moving = await self._moving(told)
        if moving is not None:
            return moving
        past = self._past.of(told.queue)
        view = await past.job(told.queue, told.id, lane) if past else None
        if view is not None:
            known = _with_facts(replace(told, state=view.state), view, {})
            return replace(known, past=past_of(view), source="history")
        position = await position_of(FlowCalls(self._engine), told.queue, told.id)
        if position is not None:
            followed = await self._follow(position.awaited, depth)
            return replace(told, beside=(position.reason,), waits_for=followed, source="flow")
        if (rows := self._past.rows) is not None:
            row = await rows.row(told.queue, told.id)
            if row is not None:
                return replace(told, beside=(row,), source="outbox")
        return replace(told, beside=(_unknown(told),))

    async def _follow(
        self, awaited: Sequence[tuple[str, str]], depth: int
    ) -> tuple[Explanation, ...]:
        """The jobs that it waits for; not those of queues that cannot be read."""
        found: list[Explanation] = []
        for queue, job in awaited[:_FOLLOWED] if depth else ():
            try:
                found.append(await self.explain(queue, job, None, depth - 1))
            except FaenaError:  # another program's, which this user may not read
                continue
        return tuple(found)

    async def _moving(self, told: Explanation) -> Explanation | None:
        """A job that has left one shard and has not arrived at another."""
        names = await self._routers.of(told.queue).names()
        for shard in names if len(names) > 1 else ():
            for one in await travelling(self._engine, shard, [told.id]):
                if one.position.id == told.id and one.look is not None:
                    view = read_job(told.queue, told.id, one.look)
                    reason = Reason(code="moving", words=f"it is on its way from shard {shard}")
                    known = _with_facts(replace(told, state=view.state), view, {})
                    past = None if known.is_waiting else past_of(view)
                    return replace(known, past=past, beside=(reason,), source="broker")
        return None


def _with_facts(told: Explanation, view: JobView, mark: Mapping[str, Any]) -> Explanation:
    last = view.errors[-1] if view.errors else None
    expires = mark.get("e")
    return replace(
        told,
        task=view.task or None,
        tenant=view.tenant,
        attempts_made=view.attempts_made,
        error=f"{last.name}: {last.message}".split("\n")[0] if last else None,
        expires_at=int(expires) if isinstance(expires, int | float) else None,
    )


def _mark(look: Look) -> Mapping[str, Any]:
    mark: Any = msgspec.msgpack.decode(look.mark) if look.mark else {}
    return mark if isinstance(mark, dict) else {}


def _unknown(told: Explanation) -> Reason:
    made_at = made_at_us(told.id)
    details: dict[str, Detail] = {"made_at": made_at}
    made = f"; its id was made at {instant(made_at)}" if made_at and made_at < told.at else ""
    words = (
        f"queue {told.queue} has no job {told.id}: it never existed, or it has ended and was "
        f"removed{made}"
    )
    return Reason(code="unknown", words=words, details=details)
