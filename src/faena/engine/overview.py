"""The state of a queue at one instant, read by the script `overview` from one shard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faena.engine.scripts import pairs, text_pairs
from faena.values.view import View

_SLOTS = "slots="
"""Workers of older versions do not tell them."""


class Hold(View, frozen=True):
    """Why a queue is not served."""

    reason: str
    until: int | None
    """Server microseconds; None: until it is released."""
    by: str
    since: int


class WorkerView(View, frozen=True):
    """A worker that called the server lately."""

    name: str
    since: int | None = None
    """Server microseconds of its first call; None, like the rest, until its first sweep."""
    host: str | None = None
    pid: int | None = None
    version: str | None = None
    slots: int | None = None
    """How many jobs of the queue it runs at a time while it has no others."""
    listed_until: int | None = None
    """When it counts as gone unless it calls before; for a killed worker, this instant no longer
    changes."""


class Overview(View, frozen=True):
    """A queue at one instant."""

    queue: str
    at: int
    counts: dict[str, int]
    """Jobs by state; `dead` counts only pending ones."""
    dealt_with: dict[str, int]
    """Dead jobs that were retried, discarded or resolved; retention removes them later."""
    holds: tuple[Hold, ...]
    settings: dict[str, str]
    """As stored on the server; `queue.settings()` returns them as options of `app.queue()`."""
    workers: tuple[WorkerView, ...]
    enqueued: int
    """Jobs accepted since the queue was created."""
    removed: int
    """Jobs removed by retention, cleaning or replacement."""

    @property
    def live(self) -> int:
        """Jobs that are waiting or running."""
        return sum(self.counts[state] for state in ("ready", "delayed", "blocked", "running"))


def read_overview(shard: str, reply: Sequence[Any]) -> Overview:
    """Read the script's answer for a shard."""
    now, counts, holds, conf, clock, workers, dealt, about = reply
    totals = pairs(clock)
    return Overview(
        queue=shard,
        at=now,
        counts=pairs(counts),
        dealt_with=pairs(dealt),
        holds=read_holds(holds, now),
        settings=text_pairs(conf),
        workers=read_workers(workers, about),
        enqueued=int(totals.get("enqueued", 0)),
        removed=int(totals.get("removed", 0)),
    )


def read_holds(flat: Sequence[Any], now: int) -> tuple[Hold, ...]:
    """Holds as the server keeps them: reason, text, reason, text …

    One whose time is over is none, even before a claim has swept it away.
    """
    found = (_hold(name, text) for name, text in pairs(flat).items())
    return tuple(one for one in found if one.until is None or one.until > now)


def read_workers(listed: Sequence[Any], about: Sequence[Any]) -> tuple[WorkerView, ...]:
    """Workers by when they count as gone, and what each says of itself."""
    said = pairs(about)
    return tuple(
        _worker(name, said.get(name), int(float(until))) for name, until in pairs(listed).items()
    )


def _hold(reason: str, text: bytes) -> Hold:
    until, by, since = text.decode().split(" ")
    return Hold(reason=reason, until=int(until) or None, by=by, since=int(since))


def _worker(name: str, said: bytes | None, listed_until: int) -> WorkerView:
    """The view of a worker, from its own description if there is one."""
    if not said:
        return WorkerView(name, listed_until=listed_until)
    since, pid, version, _, rest = said.decode().split(" ", 4)
    slots, _, host = rest.partition(" ") if rest.startswith(_SLOTS) else ("", "", rest)
    number = int(slots.removeprefix(_SLOTS)) if slots else None
    return WorkerView(name, int(since), host, int(pid), version, number, listed_until)
