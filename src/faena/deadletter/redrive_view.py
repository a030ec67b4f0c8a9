"""The state of a redrive, merged from the records in the shards of its queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from faena.engine.calls.deadletter import RedriveRecord
from faena.errors import JobNotFound
from faena.limits import Limit
from faena.values.view import View

UNDER_WAY: Final = ("canary", "running")


class RedriveView(View, frozen=True, kw_only=True):
    """The state of a redrive. Instants are the server's microseconds."""

    id: str
    queue: str
    state: str
    """canary, running, stopped, failed or done."""
    moved: int
    """Dead jobs that were retried."""
    died: int
    """New jobs that have died again."""
    canary: int
    waiting: int = 0
    """Canaries that have not finished yet, as far as is known."""
    rate: str | None
    by: str
    reason: str
    begun_at: int
    ended_at: int | None


Report = Callable[[RedriveView], None]


def view_of(queue: str, redrive: str, records: Sequence[RedriveRecord]) -> RedriveView:
    """Merge the records of one redrive from all shards."""
    first, states = records[0], {record.state for record in records}
    order = ("failed", "stopped", "canary", "running", "done")
    state = next(word for word in order if word in states)
    most, per_us = first.max, first.per_us
    ended = [record.ended_at for record in records if record.ended_at]
    rate = Limit(max=most, per=timedelta(microseconds=per_us)) if most and per_us else None
    return RedriveView(
        id=redrive,
        queue=queue,
        state=state,
        moved=sum(record.moved for record in records),
        died=sum(record.died for record in records),
        canary=first.canary,
        rate=str(rate) if rate else None,
        by=first.by,
        reason=first.reason,
        begun_at=first.at,
        ended_at=max(ended) if ended and state not in UNDER_WAY else None,
    )


def known(records: Sequence[RedriveRecord], queue: str, redrive: str) -> Sequence[RedriveRecord]:
    """The records of a redrive; raises if there are none."""
    if not records:
        raise unknown(queue, redrive)
    return records


def unknown(queue: str, redrive: str) -> JobNotFound:
    """The error for a redrive that no shard knows."""
    return JobNotFound(f"no redrive {redrive} in queue {queue}", op="redrive")
