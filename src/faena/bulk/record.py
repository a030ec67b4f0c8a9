"""What is kept of a bulk action: its plan, which never changes, and its progress."""

from __future__ import annotations

from typing import Final

import msgspec

from faena.engine.calls.bulk import BulkRecord
from faena.inspection.job_query import JobQuery
from faena.inspection.searcher import Hit, Place
from faena.values.view import View

_MOST_SHOWN: Final = 20
"""Refused jobs that are remembered by name."""


class Item(msgspec.Struct, frozen=True, array_like=True):
    """A job that is to be changed, as it was found."""

    queue: str
    shard: str
    id: str
    state: str
    score: str
    enqueued_at: int | None = None

    @classmethod
    def of(cls, hit: Hit) -> Item:
        """A job that a search has found."""
        job = hit.job
        return cls(job.queue, hit.shard, job.id, job.state.value, hit.score, job.enqueued_at)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is done, to which jobs, for whom."""

    action: str
    query: JobQuery | None = None
    """None: the jobs were chosen one by one."""
    by: str
    reason: str
    total: int = 0
    """Jobs to be looked at, as it began: about."""


class Progress(msgspec.Struct, kw_only=True):
    """How far it has come."""

    place: Place | None = None
    """Where the search goes on; None: nothing is left to be found."""
    pending: list[Item] = []
    """Jobs whose turn it is."""
    is_sent: bool = False
    """Whether some of these may have been changed already."""
    looked: int = 0
    done: int = 0
    refused: dict[str, int] = {}
    """Why not → how many."""
    shown: list[tuple[str, str, str]] = []
    """Queue, id and why not of the first ones that were refused."""

    def count(self, item: Item, refused: str | None) -> None:
        """One more is over."""
        if refused is None:
            self.done += 1
            return
        self.refused = {**self.refused, refused: self.refused.get(refused, 0) + 1}
        if len(self.shown) < _MOST_SHOWN:
            self.shown = [*self.shown, (item.queue, item.id, refused)]


class BulkView(View, frozen=True, kw_only=True):
    """A bulk action as a reader sees it. Instants are the server's microseconds."""

    id: str
    action: str
    query: str | None
    """None: the jobs were chosen one by one."""
    by: str
    reason: str
    state: str
    """running, stopped or done."""
    at: int
    ended_at: int | None
    total: int
    """Jobs to be looked at, as it began: about."""
    looked: int
    pending: int
    """Jobs that were found, and are not over yet."""
    done: int
    refused: dict[str, int]
    """Why not → how many."""
    shown: tuple[tuple[str, str, str], ...]
    """Queue, id and why not of the first ones that were refused."""


write = msgspec.json.Encoder().encode
_read_plan = msgspec.json.Decoder(Plan).decode
_read_progress = msgspec.json.Decoder(Progress).decode


def plan_of(record: BulkRecord) -> Plan:
    """Its plan."""
    return _read_plan(record.plan)


def progress_of(record: BulkRecord) -> Progress:
    """Its progress."""
    return _read_progress(record.progress)


def view_of(ident: str, record: BulkRecord) -> BulkView:
    """A record for a reader."""
    plan, progress = plan_of(record), progress_of(record)
    return BulkView(
        id=ident,
        action=plan.action,
        query=None if plan.query is None else str(plan.query),
        by=plan.by,
        reason=plan.reason,
        state=record.state,
        at=int(record.at),
        ended_at=None if record.ended_at is None else int(record.ended_at),
        total=plan.total,
        looked=progress.looked,
        pending=len(progress.pending),
        done=progress.done,
        refused=progress.refused,
        shown=tuple(progress.shown),
    )
