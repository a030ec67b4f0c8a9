"""Hands rows of the outbox to the broker, and tells what became of each."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final, NamedTuple

import msgspec

from faena.app import Faena
from faena.engine.envelope import NewJob
from faena.errors import ConfigError
from faena.options import EnqueueOptions, telling
from faena.producing.batcher import BATCH_BYTES
from faena.producing.receipt import Receipt
from faena.producing.sealing import Frame
from faena.task import Task

_VALID_US: Final = 45_000_000
"""How long after a sweep of settlements jobs may be sent: the broker remembers jobs that have come
and gone for a minute."""
_SHORTEST_HOLD_S, _LONGEST_HOLD_S = 0.1, 30.0
_UNKNOWN_S: Final = 1.0
_WAITING: Final = frozenset({"overloaded", "late"})
_SETTLED: Final = frozenset({"completed", "dead", "cancelled", "removed"})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_log = logging.getLogger("faena.pg")


class Row(NamedTuple):
    """A job that is to be sent, as `faena.take` returns it."""

    number: int
    queue: str
    id: str
    task: str
    payload: str
    tenant: str | None
    key: str | None
    options: str
    is_kept: bool
    is_more: bool


@dataclass(slots=True)
class Results:
    """What became of rows; those that are in none of the lists wait."""

    kept: list[int] = field(default_factory=list[int])
    """The broker has their jobs; they stay until those are settled."""
    gone: list[int] = field(default_factory=list[int])
    """The broker has their jobs, or has settled them; nobody needs the rows any more."""
    refused: list[tuple[Row, str]] = field(default_factory=list[tuple["Row", str]])
    """The broker never takes them."""
    is_cut: bool = False
    """Whether there was no time for the rest."""

    @property
    def is_any(self) -> bool:
        """Whether something is known of some of them."""
        return bool(self.kept or self.gone or self.refused)


class Taken(NamedTuple):
    """Rows of one transaction, and how long they may be sent."""

    rows: Sequence[Row]
    settled_until_us: int
    """What was settled before this instant of the broker's clock had no row when they were read.
    Not what is known by now: a row that another relay has sent meanwhile may have come and gone."""
    until: float
    """The monotonic clock's; later, the server may have ended the transaction."""


class Dispatch:
    """Knows which queues take no jobs now."""

    def __init__(self, app: Faena, recipient: str) -> None:
        self._app = app
        self._tells = f"o:{recipient}:job:"
        self._held: dict[str, float] = {}
        """Until an instant of the monotonic clock."""

    def is_held(self, queue: str) -> bool:
        """Whether its jobs must wait."""
        return self._held.get(queue, 0.0) > time.monotonic()

    def soonest_s(self, most_s: float) -> float:
        """How long it takes until a queue may take jobs again, and `most_s` at most."""
        now = time.monotonic()
        waits = [until - now for until in self._held.values() if until > now]
        return max(0.0, min([most_s, *waits]))

    async def send(self, taken: Taken) -> Results:
        """Send rows, those of a queue in their order; no more of them once one must wait."""
        results = Results()
        for queue, some in groupby(taken.rows, key=lambda row: row.queue):
            for task, run in _runs(some):
                known = self._app.queues[queue].tasks.get(task)
                if known is None:  # a newer program declares it; later jobs must not overtake it
                    self._hold(queue, _UNKNOWN_S)
                    break
                if not await self._send_run(known, run, taken, results):
                    break
        for row, why in results.refused:
            _log.error("job %s of %s/%s is refused: %s", row.id, row.queue, row.task, why)
        return results

    async def _send_run(
        self, task: Task[Any, Any], rows: list[Row], taken: Taken, results: Results
    ) -> bool:
        """Jobs of one task; whether later ones may follow."""
        frames = _Frames(task, self._tells, taken.settled_until_us + _VALID_US)
        most = task.at_once(has_tenants=any(row.tenant for row in rows))
        for some in _calls(rows, most):
            if results.is_any and time.monotonic() > taken.until:
                results.is_cut = True
                return False
            jobs: list[NewJob] = []
            ready: list[Row] = []
            for row in some:
                frame = frames.of(row)
                if isinstance(frame, str):
                    results.refused.append((row, frame))
                else:
                    jobs.append(frame.fill_given(row.id, row.payload.encode()))
                    ready.append(row)
            if jobs and not self._sort(ready, await task.put_sealed(jobs), results):
                return False
        return True

    def _sort(self, rows: list[Row], receipts: Sequence[Receipt[Any]], results: Results) -> bool:
        may_follow = True
        for row, receipt in zip(rows, receipts, strict=True):
            if receipt.status in _WAITING:
                self._hold(row.queue, receipt.retry_after)
                may_follow = False
            elif receipt.status == "conflict":
                why = f"another job of queue {row.queue} has the id {row.id}"
                results.refused.append((row, why))
            elif row.is_kept and receipt.state not in _SETTLED and _is_told(receipt):
                results.kept.append(row.number)
            else:
                results.gone.append(row.number)
        return may_follow

    def _hold(self, queue: str, wait_s: float) -> None:
        """The queue is full: later jobs of it must not overtake those that were refused."""
        wait_s = max(_SHORTEST_HOLD_S, min(wait_s, _LONGEST_HOLD_S))
        self._held[queue] = time.monotonic() + wait_s


def _is_told(receipt: Receipt[Any]) -> bool:
    """Whether this database will hear of the end: not of a job that another has enqueued."""
    return receipt.status != "duplicate" or receipt.is_member


class _Frames:
    """What jobs of one task have in common, made once for all with the same options."""

    def __init__(self, task: Task[Any, Any], tells: str, by_us: int) -> None:
        self._task, self._tells, self._by_us = task, tells, by_us
        self._made: dict[tuple[str | None, str | None, str], Frame | str] = {}

    def of(self, row: Row) -> Frame | str:
        """The frame, or why the row is refused."""
        which = row.tenant, row.key, row.options
        found = self._made.get(which)
        if found is None:
            try:
                found = self._task.frame(self._options(row))
            except ConfigError as error:
                found = str(error)
            self._made[which] = found
        return found

    def _options(self, row: Row) -> EnqueueOptions:
        given: dict[str, Any] = msgspec.json.decode(row.options)
        for name in ("at", "expires"):
            if name in given:
                given[name] = _EPOCH + timedelta(microseconds=given[name])
        options = EnqueueOptions(tenant=row.tenant, key=row.key, **given)
        return telling(options, self._tells, sent_by_us=self._by_us)


def _runs(rows: Iterator[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Runs of rows of one task: a queue may keep an order over all of its tasks."""
    for task, run in groupby(rows, key=lambda row: row.task):
        yield task, list(run)


def _calls(rows: Sequence[Row], most: int) -> Iterator[Sequence[Row]]:
    """Parts for one call each: one that is refused must not be overtaken by the next call."""
    start = size = 0
    for at, row in enumerate(rows):
        size += len(row.payload)
        if at > start and (at - start == most or size > BATCH_BYTES):
            yield rows[start:at]
            start, size = at, len(row.payload)
    if rows:
        yield rows[start:]
