"""Follows events: one event for each transition of a job.

    async for event in app.events("mail", since="now"):
        print(event.name, event.job)

Every shard of a queue has a stream with one entry for each batch of changes; about the last
`events_kept` entries are kept. A reader reads all shards in parallel, also shards that are added
later. It knows how many entries a stream ever had, so it can report how many it has missed.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import time
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from faena.engine import Engine
from faena.engine.calls.resilience import SHARD
from faena.engine.keys import Keys
from faena.engine.scripts import texts
from faena.engine.wire.tail import Tail
from faena.errors import ConfigError, StoreError, as_text, nearest, shown
from faena.sharding.consistent_read import in_sight
from faena.sharding.router import Routers
from faena.telemetry.cursor import CHUNK, START, Cursor, Mark, mark_at
from faena.telemetry.kinds import NAMES, OF_JOBS, OF_REASONS
from faena.tenancy.lanes import tenant_of
from faena.values.shards import queue_of
from faena.values.view import View

_BLOCK_S: Final = 2.0
_LOOK_S: Final = 1.0
"""Between two looks for new shards."""
_PAUSE_S: Final = 0.2
_BRIEFED: Final = 200

_log = logging.getLogger("faena.events")


class Event(View, frozen=True, kw_only=True):
    """A record of one thing that happened."""

    also = ("cursor",)
    apart = ("position",)

    name: str
    """What happened: see the table in docs/events.md."""
    at: int
    """When it happened, in the server's microseconds."""
    queue: str
    """Empty for what belongs to none: upstreams and features."""
    job: str | None = None
    """The job, if it is about one."""
    value: str | None = None
    """Otherwise the flow, group, schedule, upstream, feature, level, or details of an alert."""
    reason: str | None = None
    """Why, if it is about an upstream or a feature and that is known."""
    worker: str | None = None
    """The worker whose call caused it, if any."""
    by: str | None = None
    """Who did it, if it was done by hand and a name was given."""
    task: str | None = None
    """With `details`: the job's task; None if the job was removed."""
    tenant: str | None = None
    """With `details`: the job's tenant. Of an upstream: whose calls it is about, if not all."""
    missed: int | None = None
    """For a gap: how many batches of events are lost; None if unknown."""
    position: Cursor

    @property
    def cursor(self) -> str:
        """A string for `since=` that continues after this event."""
        return base64.urlsafe_b64encode(_encode(self.position)).decode().rstrip("=")


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Cursor).decode

Since = str | datetime


def read_since(since: Any) -> Cursor | str | datetime:
    """Check `since`: now, start, an instant, or a cursor."""
    if isinstance(since, datetime):
        if since.tzinfo is None:
            raise _no_since(since, "a datetime must have a time zone")
        try:
            return since.astimezone(UTC)
        except (OverflowError, ValueError):
            raise _no_since(since, "a datetime must be representable in UTC") from None
    if as_text(since) in {"now", "start"}:
        return str(since)
    try:
        padding = "=" * (-len(since) % 4)
        return _decode(base64.b64decode(since + padding, altchars=b"-_", validate=True))
    except (binascii.Error, msgspec.MsgspecError, TypeError, ValueError):
        raise _no_since(since, "it is not the cursor of an event") from None


def _no_since(since: Any, why: str) -> ConfigError:
    return ConfigError(
        f"since must be 'now', 'start', a datetime or the cursor of an event, "
        f"got {shown(since)}: {why}",
        field="since",
        value=since,
    )


def read_kinds(kinds: Any) -> frozenset[str]:
    """Check names of events; None: all."""
    if kinds is None:
        return frozenset(NAMES)
    given = [kinds] if isinstance(kinds, str) or not isinstance(kinds, Iterable) else list(kinds)
    for name in given:
        if name not in NAMES:
            raise ConfigError(
                f"kind must be a known event name, got {shown(name)}; {_hint(name)}",
                field="kinds",
                value=name,
            )
    return frozenset(given) | {"gap"}


def _hint(name: str) -> str:
    if name == "failed":
        return "a failed attempt is 'retried', the last one 'dead'"
    return nearest(name, NAMES)


async def follow(
    connect: Callable[[], Awaitable[tuple[Engine, Routers]]],
    queues: Sequence[str],
    since: Cursor | str | datetime,
    *,
    kinds: frozenset[str],
    has_details: bool,
    has_upstreams: bool = False,
) -> AsyncGenerator[Event]:
    """Events from a position on, until the app is closed; continues after outages."""
    engine, routers = await connect()
    beside = (SHARD,) if has_upstreams else ()
    reader = Reader(engine, routers, queues, beside, kinds=kinds, has_details=has_details)
    await reader.begin(since)
    tail = engine.wire.tail()
    try:
        while not engine.wire.is_closed:
            is_idle = True
            for shard in reader.shards():
                for event in await _steadily(partial(reader.read, shard)):
                    is_idle = False
                    yield event
            for event in await _steadily(reader.look_for_shards):
                yield event
            if is_idle:
                await _wait(tail, reader)
    finally:
        await tail.close()


async def _steadily(read: Callable[[], Awaitable[list[Event]]]) -> list[Event]:
    try:
        return await read()
    except StoreError as error:
        _log.warning("could not read events, trying again: %s", error)
        await asyncio.sleep(_PAUSE_S)
        return []


async def _wait(tail: Tail, reader: Reader) -> None:
    """Wait until there may be new entries; after a failed wait, the next read shows the error."""
    try:
        await tail.wait(reader.positions(), _BLOCK_S)
    except StoreError as error:
        _log.debug("waiting for events was interrupted: %s", error)
        await asyncio.sleep(_PAUSE_S)


class Reader:
    """Reads the events of some queues, from all of their shards."""

    def __init__(
        self,
        engine: Engine,
        routers: Routers,
        queues: Sequence[str],
        beside: Sequence[str] = (),
        *,
        kinds: frozenset[str],
        has_details: bool,
    ) -> None:
        """`beside` are shards that belong to no queue."""
        self._engine = engine
        self._routers = routers
        self._queues = queues
        self._beside = beside
        self._kinds = kinds
        self._has_details = has_details
        self._marks: dict[str, Mark] = {}
        self._reachable: set[str] = set()
        """Shards whose `arrivals` can be stored from here, which creates their events."""
        self._looked_at = 0.0

    def shards(self) -> list[str]:
        """The shards that it reads."""
        return list(self._marks)

    def positions(self) -> dict[str, str]:
        """Stream key → position; those of `arrivals` start from the beginning."""
        keys = {shard: Keys(self._engine.namespace, shard) for shard in self._marks}
        positions = {keys[shard]("events"): mark.id for shard, mark in self._marks.items()}
        return positions | {
            keys[shard]("arrivals"): START for shard in keys if shard in self._reachable
        }

    # -- where ----------------------------------------------------------------------------------

    async def begin(self, since: Cursor | str | datetime) -> None:
        """Set the positions to read from."""
        for shard in await self._in_sight():
            self._marks[shard] = await self._first_mark(shard, since)
        if isinstance(since, Cursor) and since.shard in self._marks:
            mark = self._marks[since.shard]
            self._marks[since.shard] = replace(mark, begun=since.entry, taken=since.taken)
        self._looked_at = time.monotonic()

    async def _in_sight(self) -> list[str]:
        sights = [await in_sight(self._routers.of(queue)) for queue in self._queues]
        return [*(shard for sight in sights for shard in sight.shards), *self._beside]

    async def _first_mark(self, shard: str, since: Cursor | str | datetime) -> Mark:
        match since:
            case "now":
                added, _, _, last, *_ = await self._engine.ask("events", shard, most=0)
                return Mark(last.decode(), added)
            case str():
                return Mark(START, None)
            case datetime():
                return mark_at(since.astimezone(UTC).timestamp() * 1000)
            case Cursor():
                known = {queue_of(one) for one in since.marks}
                later = Mark() if queue_of(shard) in known else mark_at(since.at_ms)
                return since.marks.get(shard, later)

    async def look_for_shards(self) -> list[Event]:
        """Now and then, add new shards from their start; returns a gap for each removed shard.

        It is unknown which events its stream still had.
        """
        if time.monotonic() - self._looked_at < _LOOK_S:
            return []
        now = set(await self._in_sight())
        self._looked_at = time.monotonic()
        gone = [shard for shard in self._marks if shard not in now]
        for shard in gone:
            del self._marks[shard]
        self._marks = {**{shard: Mark() for shard in sorted(now)}, **self._marks}
        return [_gap(shard, self._marks, None, []) for shard in gone]

    # -- what -----------------------------------------------------------------------------------

    async def read(self, shard: str) -> list[Event]:
        """The events of the next entries of one stream; advances when all details were read."""
        mark = self._marks[shard]
        can_arrive = shard not in self._beside and await self._engine.take_in(shard)
        (self._reachable.add if can_arrive else self._reachable.discard)(shard)
        reply = await self._engine.ask("events", shard, after=mark.id, most=CHUNK)
        added, kept, first, _, is_taken, entries = reply
        trimmed, events = added - kept, list[Event]()
        if mark.is_lost(trimmed, is_there=is_taken == 1):
            self._marks[shard] = Mark(START, trimmed)
            return [_gap(shard, self._marks, None, entries)]
        missed = mark.missed(trimmed, first.decode())
        number = trimmed if missed != 0 else mark.counted(added, trimmed, len(entries))
        marks = {**self._marks, shard: replace(mark, number=number)}
        if missed != 0:
            events.append(_gap(shard, marks, missed, entries))
        for entry, flat in entries:
            number = None if number is None else number + 1
            after = Mark(entry.decode(), number)
            events += self._unfold(shard, marks, after, flat)
            marks = {**marks, shard: after}
        told = await self._detailed(shard, events)
        self._marks[shard] = marks[shard]
        return told

    def _unfold(
        self, shard: str, before: dict[str, Mark], after: Mark, flat: Sequence[bytes]
    ) -> list[Event]:
        """The events of one entry, without those that were read before."""
        (_, at), (role, who), *told = _fields(flat)
        is_apart = shard in self._beside
        subjects = told if is_apart else list(_subjects(told))
        at_ms = int(after.id.partition("-")[0])
        skip = before[shard].taken if before[shard].begun == after.id else 0
        events: list[Event] = []
        for taken, (name, subject) in enumerate(subjects, start=1):
            if taken <= skip or name not in self._kinds:
                continue
            position = Cursor(before, at_ms, shard, after.id, taken)
            if taken == len(subjects):
                position = Cursor({**before, shard: after}, at_ms)
            is_job = name in OF_JOBS and not is_apart
            about, tenant, reason = _apart(subject) if is_apart else (subject, None, None)
            events.append(
                Event(
                    name=name,
                    at=int(float(at)),
                    queue="" if is_apart else queue_of(shard),
                    job=about if is_job else None,
                    value=None if is_job else about,
                    tenant=tenant,
                    reason=reason,
                    worker=who or None if role == "worker" else None,
                    by=who or None if role == "by" else None,
                    position=position,
                )
            )
        return events

    async def _detailed(self, shard: str, events: list[Event]) -> list[Event]:
        if not self._has_details or shard in self._beside:
            return events
        jobs = list(dict.fromkeys(event.job for event in events if event.job))
        briefs: dict[str, tuple[str | None, str | None]] = {}
        for start in range(0, len(jobs), _BRIEFED):
            part = jobs[start : start + _BRIEFED]
            words = texts(await self._engine.ask("briefs", shard, *part))
            for job, task, lane in zip(part, words[::2], words[1::2], strict=True):
                briefs[job] = task or None, tenant_of(lane) if lane else None
        return [_briefed(event, briefs) for event in events]


def _gap(
    shard: str, marks: Mapping[str, Mark], missed: int | None, entries: Sequence[Any]
) -> Event:
    at = int(_fields(entries[0][1])[0][1]) if entries else time.time_ns() // 1000
    position, queue = Cursor(dict(marks), at // 1000), "" if shard == SHARD else queue_of(shard)
    return Event(name="gap", at=at, queue=queue, missed=missed, position=position)


def _briefed(event: Event, briefs: Mapping[str, tuple[str | None, str | None]]) -> Event:
    task, tenant = briefs.get(event.job or "", (None, None))
    return replace(event, task=task, tenant=tenant)


def _fields(flat: Sequence[bytes]) -> list[tuple[str, str]]:
    words = texts(flat)
    return list(zip(words[::2], words[1::2], strict=True))


def _apart(subject: str) -> tuple[str, str | None, str | None]:
    """What an event of no queue is about, for which tenant, and why."""
    scope, _, reason = subject.partition("\n")
    about, _, tenant = scope.partition("/@")
    return about, tenant or None, reason or None


def _subjects(told: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for name, named in told:
        for subject in [named] if name in OF_REASONS else named.split(" "):
            yield name, subject
