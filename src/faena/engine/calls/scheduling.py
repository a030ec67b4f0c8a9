"""The scripts of schedules; each is one call. They do not interpret the records."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, NamedTuple

from faena.engine.calls.survey import Survey
from faena.engine.engine import Engine
from faena.engine.requester import requester
from faena.engine.scripts import MOVED, UNCONFIGURED, once, texts
from faena.errors import ShardsChanged

MOST: Final = 50
"""The most schedules in one read."""


class Stored(NamedTuple):
    """A schedule as stored on the server."""

    name: str
    version: str
    """The version of the record; it changes with every write."""
    record: bytes
    due: int | None
    """The server's microseconds; None if it is paused or over."""


class Due(NamedTuple):
    """The due schedules of a queue."""

    now: int
    next_at: int | None
    """When the next other schedule is due."""
    due: list[Stored]
    missing: list[str]


class Change(NamedTuple):
    """A record that replaces the one that was read."""

    expected: str
    version: str
    record: bytes
    due: int | None

    @classmethod
    def of(cls, expected: str, record: bytes, due: int | None) -> Change:
        """Make a change with a new version, by which it can be recognised."""
        return cls(expected, secrets.token_hex(8), record, due)


class Firing(NamedTuple):
    """A job for an instant, and the missed instants before it."""

    name: str
    instant: int
    id: str
    spec: bytes = b""
    """Empty: no job."""
    missed: Sequence[str] = ()
    number: int = 0
    """How many were missed; not all of them may be named."""


class Fired(NamedTuple):
    """The outcome: CREATED, DUPLICATE, SKIPPED, NOTHING, OVERLOADED, STALE or TAKEN."""

    outcome: str
    retry_us: int = 0


async def read_due(engine: Engine, queue: str, declared: Sequence[str], skip: int = 0) -> Due:
    """The schedules due now, after the first `skip`, and the declared ones that are missing."""
    reply = await engine.ask("due", queue, *declared, verb="due", skip=skip, most=MOST)
    now, next_at, found, missing = reply
    rows = [_stored(*found[i : i + 3]) for i in range(0, len(found), 3)]
    return Due(int(now), _instant(next_at), rows, texts(missing))


async def read(engine: Engine, queue: str, names: Sequence[str]) -> tuple[int, dict[str, Stored]]:
    """The server's time, and those of the named schedules that exist."""
    now, *rows = await engine.ask("due", queue, *names, verb="read")
    found = {
        name: _stored(name.encode(), rows[2 * i + 1], rows[2 * i])
        for i, name in enumerate(names)
        if rows[2 * i]
    }
    return int(now), found


async def names_at(engine: Engine, queue: str) -> AsyncIterator[list[str]]:
    """The names of all schedules of a queue, a page at a time."""
    async for page in Survey(engine, queue).ids("schedules", is_hash=True):
        yield page


async def write(engine: Engine, queue: str, name: str, change: Change) -> bool:
    """Write a record, or remove it if it is empty; False if it has changed since it was read."""
    named = {"name": name, "by": requester(), **change._asdict()}
    return bool(await engine.ask("schedule", queue, **named) == b"OK")


async def fire(
    engine: Engine,
    shard: str,
    firing: Firing,
    change: Change | None,
    *,
    epoch: int,
    is_known: bool = True,
) -> Fired:
    """Store the job, and write the record if it is in this shard too.

    Raises ShardsChanged, with nothing done, when the job no longer belongs here. A shard that is
    not `is_known` among the queue's is not declared again.
    """
    named = {
        **once("fire"),
        **firing._asdict(),
        **(change._asdict() if change else {}),
        "missed": " ".join(firing.missed),
        "epoch": epoch or None,
    }
    ask = engine.ask_declared if is_known else engine.ask
    outcome, *rest = await ask("fire", shard, **named)
    if outcome in {MOVED, UNCONFIGURED}:
        raise ShardsChanged("the shard of the schedule's job no longer exists", op="fire")
    return Fired(outcome.decode(), *(int(number) for number in rest))


async def forget(engine: Engine, shard: str, name: str) -> None:
    """Forget the fired instants of a removed schedule in a shard."""
    await engine.command("HDEL", shard, "fired", name)


def _stored(name: bytes, due: bytes, packed: bytes) -> Stored:
    version, _, record = packed.partition(b"\n")
    return Stored(name.decode(), version.decode(), record, _instant(due))


def _instant(text: Any) -> int | None:
    return int(float(text)) if text else None
