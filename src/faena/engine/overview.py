"""A queue at one instant, as the script `overview` tells it of one shard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faena.engine.scripts import pairs, text_pairs
from faena.values.view import View


class Hold(View, frozen=True):
    """Why a queue is not served."""

    reason: str
    until: int | None
    """Server microseconds; None until it is released."""
    by: str
    since: int


class WorkerView(View, frozen=True):
    """A worker that was heard of lately."""

    name: str
    since: int | None = None
    """Server microseconds of its first call; None, as the rest, while it has said nothing."""
    host: str | None = None
    pid: int | None = None
    version: str | None = None
    listed_until: int | None = None
    """When it is taken for gone unless it is heard of before: of a worker that was killed, this
    instant stays where it is."""


class Overview(View, frozen=True):
    """A queue at one instant."""

    queue: str
    at: int
    counts: dict[str, int]
    """Jobs per state; `dead` are those that nobody has dealt with."""
    dealt_with: dict[str, int]
    """Dead jobs that were retried, discarded or resolved; they stay until retention ends."""
    holds: tuple[Hold, ...]
    settings: dict[str, str]
    """As the server keeps them; `queue.settings()` has them in the words of `app.queue()`."""
    workers: tuple[WorkerView, ...]
    enqueued: int
    """Jobs taken in since the queue exists."""
    removed: int
    """Jobs that retention, cleaning or replacement took out."""

    @property
    def live(self) -> int:
        """Jobs that wait or run."""
        return sum(self.counts[state] for state in ("ready", "delayed", "blocked", "running"))


def read_overview(shard: str, reply: Sequence[Any]) -> Overview:
    """What the script has answered for a shard."""
    now, counts, holds, conf, clock, workers, dealt, about = reply
    totals, said = pairs(clock), pairs(about)
    return Overview(
        queue=shard,
        at=now,
        counts=pairs(counts),
        dealt_with=pairs(dealt),
        holds=tuple(_hold(name, text) for name, text in pairs(holds).items()),
        settings=text_pairs(conf),
        workers=tuple(
            _worker(name, said.get(name), int(float(until)))
            for name, until in pairs(workers).items()
        ),
        enqueued=int(totals.get("enqueued", 0)),
        removed=int(totals.get("removed", 0)),
    )


def _hold(reason: str, text: bytes) -> Hold:
    until, by, since = text.decode().split(" ")
    return Hold(reason=reason, until=int(until) or None, by=by, since=int(since))


def _worker(name: str, said: bytes | None, listed_until: int) -> WorkerView:
    """What a worker has said of itself, if it has."""
    if not said:
        return WorkerView(name, listed_until=listed_until)
    since, pid, version, _, host = said.decode().split(" ", 4)
    return WorkerView(name, int(since), host, int(pid), version, listed_until)
