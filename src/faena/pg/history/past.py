"""The history as the inspector reads it: jobs that the broker does not have any more.

A job is shown once, as it ended last. What was decided about a dead one does not hide its death.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from faena.engine.calls.deadletter import Position
from faena.job import JobView
from faena.outcomes import ErrorRecord
from faena.pg.history.history import JobHistory
from faena.pg.history.search import COLUMNS, past_job, to_us
from faena.pg.history.store import instant
from faena.pg.history.view import PastJob
from faena.pg.postgres import Postgres
from faena.states import State
from faena.tenancy.lanes import tenant_of

_STATES: Final = {
    "completed": State.COMPLETED,
    "dead": State.DEAD,
    "discarded": State.DEAD,
    "resolved": State.DEAD,
    "cancelled": State.CANCELLED,
    "expired": State.CANCELLED,
    "removed": State.CANCELLED,
    "replaced": State.CANCELLED,
}
_NO_ATTEMPT: Final = frozenset({"EXPIRED", "WORKER_LOST"})
"""Codes of errors that no handler has raised."""
_NOTHING: Final = msgspec.Raw(b"null")
_LAST: Final = """
    h.state NOT IN ('discarded', 'resolved') AND NOT EXISTS (
        SELECT FROM faena.history later
        WHERE later.id = h.id AND later.queue = h.queue AND later.finished_at > h.finished_at
          AND later.tenant IS NOT DISTINCT FROM h.tenant
          AND later.state NOT IN ('discarded', 'resolved'))
"""


class PostgresPast:
    """Reads jobs of queues that have a history."""

    def __init__(self, pg: Postgres, history: JobHistory) -> None:
        self._pg, self._history = pg, history

    def covers(self, queue: str) -> bool:
        """Whether jobs of a queue have a history."""
        return self._history.covers(queue)

    async def job(self, queue: str, job_id: str, lane: str | None) -> JobView | None:
        """One job as it ended last; None if it has not, or not in that lane."""
        if not job_id or "\0" in job_id:
            return None
        words, values = "h.queue = %s AND h.id = %s", [queue, job_id]
        if lane is not None:
            words += " AND coalesce(h.tenant, '') = %s"
            values.append(tenant_of(lane) or "")
        found = await self._select(words, values, "DESC", 1)
        return view_of(found[0]) if found else None

    async def page(
        self, queue: str, state: State, limit: int, after: Position, *, is_newest_first: bool
    ) -> list[JobView]:
        """Jobs that ended in a state, behind a position."""
        words = "h.queue = %s AND h.state = ANY(%s)"
        values: list[Any] = [queue, [name for name, one in _STATES.items() if one is state]]
        if after.id:
            words += f" AND (h.finished_at, h.id) {'<' if is_newest_first else '>'} (%s, %s)"
            values += [instant(int(float(after.score))), after.id]
        order = "DESC" if is_newest_first else "ASC"
        return [view_of(one) for one in await self._select(words, values, order, limit)]

    async def _select(
        self, words: str, values: Sequence[Any], order: str, limit: int
    ) -> list[PastJob]:
        async with self._pg.transaction("history") as connection:
            found = await connection.execute(
                f"SELECT {COLUMNS} FROM faena.history h WHERE {words} AND {_LAST} "  # noqa: S608 - constants and parameters
                f"ORDER BY h.finished_at {order}, h.id {order} LIMIT %s".encode(),
                [*values, limit],
            )
            return [past_job(row) for row in await found.fetchall()]


def view_of(one: PastJob) -> JobView:
    """A job of the history in the words of the inspector."""
    finished_at = to_us(one.finished_at)
    error = one.error and ErrorRecord(
        name=one.error,
        message=one.message or "",
        code=one.code,
        attempt=0 if one.code in _NO_ATTEMPT else one.attempts,
        worker=one.worker,
        at=finished_at,
    )
    return JobView(
        id=one.id,
        queue=one.queue,
        state=_STATES[one.state],
        source="history",
        ended=one.state,
        task=one.task,
        payload=_NOTHING if one.payload is None else msgspec.Raw(msgspec.json.encode(one.payload)),
        tenant=one.tenant,
        key=one.key,
        priority=one.priority,
        headers={},
        attempts_made=one.attempts,
        losses=one.losses,
        enqueued_at=_us(one.enqueued_at),
        due_at=None,
        lease_until=None,
        started_at=_us(one.started_at),
        worker=one.worker,
        finished_at=finished_at,
        is_stopping=False,
        result=None if one.result is None else msgspec.json.encode(one.result),
        errors=(error,) if error else (),
        progress=None,
        log=(),
        origin=one.origin,
        retry_of=one.retry_of,
    )


def _us(at: datetime | None) -> int | None:
    return None if at is None else to_us(at)
