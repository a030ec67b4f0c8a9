"""The scripts of the dead-letter desk; each is one call to one shard of a queue.

`faena.deadletter` combines them for a whole app.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from faena.engine.calls.together import ask_each
from faena.engine.engine import Engine
from faena.engine.scripts import once, pairs, texts
from faena.engine.wire.wire import Argument

SLICE: Final = 10
"""Dead jobs retried, discarded or resolved in one call, which blocks the server."""

LOOKED: Final = 200
"""Dead jobs that one call for a page reads."""

_encode = msgspec.msgpack.Encoder().encode


class Decision(NamedTuple):
    """The decision on a dead job, with reason and name."""

    action: str
    reason: str
    by: str


class Record(msgspec.Struct, frozen=True, rename={"reached": "to"}):
    """The record of a dead job at the desk; the field names are the script's."""

    s: str
    t: str
    o: str
    e: str
    c: str
    f: str
    reached: str | None = None
    r: tuple[str, str, str, float] | None = None


class Filter(NamedTuple):
    """Which dead jobs to select; '': any."""

    status: str = ""
    task: str = ""
    tenant: str = ""
    error: str = ""
    fingerprint: str = ""
    died_from: int | None = None
    died_to: int | None = None


class Position(NamedTuple):
    """A position in the order of death: before the first with an empty id."""

    score: str = ""
    id: str = ""

    def key(self) -> tuple[float, bytes]:
        """The sort key of positions, as on the server."""
        return float(self.score or 0), self.id.encode()


class Found(NamedTuple):
    """A dead job at its position."""

    position: Position
    record: Record


class Slice(NamedTuple):
    """The dead jobs after a position."""

    reached: Position
    is_over: bool
    found: list[Found]


class Numbers(NamedTuple):
    """One shard's part of the desk."""

    now: int
    statuses: dict[str, int]
    oldest: Position | None
    """Of the pending ones."""
    new: int
    groups: int
    due: int
    due_now: list[str]


class Group(NamedTuple):
    """Dead jobs of one shard with the same kind of error."""

    fingerprint: str
    name: str
    """Of the error, as the two below."""
    code: str | None
    sample: str
    pending: int
    total: int
    first_at: int
    last_at: int
    last_id: str


class RedriveFilter(msgspec.Struct, frozen=True, rename={"fingerprint": "print"}):
    """Which dead jobs a redrive retries; '': any."""

    task: str = ""
    tenant: str = ""
    error: str = ""
    fingerprint: str = ""


class RedriveRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a redrive in one shard; see `redrive_record.lua` for its fields."""

    filter: RedriveFilter
    canary: int = 0
    failures: int | None = None
    max: int | None = None
    per_us: int | None = None
    by: str
    reason: str
    carried: bool = False
    """Whether any worker may drive it."""
    from_at: int | None = None
    until_at: int | None = None
    state: str = ""
    """Empty before the start, like all fields below."""
    at: int = 0
    due_at: int = 0
    moved: int = 0
    died: int = 0
    first: list[str] = []
    ended_at: int | None = None


class Step(NamedTuple):
    """The result of one slice of a redrive."""

    state: str
    moved: int
    wait_us: int
    is_over: bool
    waiting: int
    """Canaries that are not finished."""
    record: RedriveRecord


class DeskCalls:
    """The calls, for any shard."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def page(
        self,
        shard: str,
        wanted: Filter,
        *,
        after: Position,
        is_reverse: bool,
        limit: int,
        looked: int = LOOKED,
    ) -> Slice:
        """Dead jobs after a position, and the last position that was read."""
        named = {"is_reverse": ("", "1")[is_reverse], "looked": looked, "wanted": limit}
        ask = self.engine.ask
        return _read_slice(await ask("desk", shard, **named, **after._asdict(), **wanted._asdict()))

    async def page_of_each(
        self,
        shards: Sequence[str],
        wanted: Filter,
        *,
        after: Position,
        is_reverse: bool,
        limit: int,
    ) -> list[Slice]:
        """The same of many shards."""
        named: dict[str, Argument | None] = {
            "is_reverse": ("", "1")[is_reverse],
            "looked": LOOKED,
            "wanted": limit,
            **after._asdict(),
            **wanted._asdict(),
        }
        return [*map(_read_slice, await ask_each(self.engine, "desk", shards, **named))]

    async def records(self, shard: str, ids: Sequence[str]) -> dict[str, Record]:
        """The desk's records of jobs."""
        packed = await self.engine.command("HMGET", shard, "desk", *ids) if ids else []
        return {job: read_record(one) for job, one in zip(ids, packed, strict=True) if one}

    async def retry_as_new(
        self,
        shard: str,
        decision: Decision,
        priority: int,
        jobs: Sequence[tuple[str, str]],
        *,
        epoch: int = 0,
    ) -> list[str]:
        """Retry (id, new id) pairs; for each OK, or the word that forbids it.

        Raises ShardsChanged, with nothing changed, when the shards are of another epoch.
        """
        flat = [part for pair in jobs for part in pair]
        named = {**once("retry_as_new"), "epoch": epoch or None, "priority": int(priority)}
        ask = self.engine.ask_declared
        return texts(await ask("retry_as_new", shard, *flat, **named, **decision._asdict()))

    async def dismiss(
        self, shard: str, status: str, decision: Decision, ids: Sequence[str]
    ) -> list[str]:
        """Discard or resolve jobs; for each OK, or the word that forbids it."""
        named = {**once("dismiss"), "status": status, **decision._asdict()}
        return texts(await self.engine.ask_declared("dismiss", shard, *ids, **named))

    async def numbers(self, shard: str, *, new_us: int, due: int = 0) -> Numbers:
        """The desk in numbers; `new_us` says which deaths are new."""
        return _read_numbers(await self.engine.ask("desk_stats", shard, new_us=new_us, most=due))

    async def numbers_of_each(self, shards: Sequence[str], *, new_us: int) -> list[Numbers]:
        """The same of many shards."""
        named: dict[str, Argument | None] = {"new_us": new_us, "most": 0}
        return [*map(_read_numbers, await ask_each(self.engine, "desk_stats", shards, **named))]

    async def groups_of_each(self, shards: Sequence[str], limit: int) -> list[list[Group]]:
        """The groups of many shards with the most pending jobs."""
        replies = await ask_each(self.engine, "desk_groups", shards, most=limit)
        return [[_read_group(*row) for row in rows] for rows in replies]

    async def redrives_of_each(self, shards: Sequence[str]) -> list[dict[str, RedriveRecord]]:
        """The redrives of many shards by id."""
        named: dict[str, Argument | None] = {"verb": "list", "id": "", "record": None}
        replies = await ask_each(self.engine, "redrives", shards, **named)
        return [_read_redrives(reply) for reply in replies]

    async def groups(self, shard: str, limit: int) -> list[Group]:
        """The groups with the most pending jobs."""
        rows = await self.engine.ask("desk_groups", shard, most=limit)
        return [_read_group(*row) for row in rows]

    async def alert(self, shard: str, conditions: Mapping[str, str]) -> list[str]:
        """Send alerts, unless sent within the last hour; returns the names of those sent."""
        flat = [part for pair in conditions.items() for part in pair]
        return texts(await self.engine.ask_declared("alert", shard, *flat))

    # -- redrives -------------------------------------------------------------------------------

    async def redrive(
        self,
        shard: str,
        redrive: str,
        call: tuple[str, str],
        priority: int,
        ids: Sequence[str],
        *,
        epoch: int = 0,
    ) -> Step | None:
        """Advance by as many jobs as there are new ids; None for an unknown redrive.

        `call` is the caller's name and the id of this call, which grows from one to the next.
        """
        named = {"caller": call[0], "id_of_call": call[1], "epoch": epoch or None, "id": redrive}
        ask = self.engine.ask_declared
        reply = await ask("redrive", shard, *ids, **named, priority=int(priority))
        if reply == [b"unknown"]:
            return None
        state, moved, wait_us, is_over, waiting, packed = reply
        return Step(state.decode(), moved, wait_us, is_over == 1, waiting, _read_redrive(packed))

    async def redrives(
        self, shard: str, verb: str, redrive: str = "", begun: RedriveRecord | None = None
    ) -> dict[str, RedriveRecord]:
        """Redrives by id: all of them (list), or the one that was changed."""
        record = None if begun is None else _encode(begun)
        named = {"verb": verb, "id": redrive, "record": record}
        return _read_redrives(await self.engine.ask_declared("redrives", shard, **named))


def _read_slice(reply: Sequence[Any]) -> Slice:
    score, job, is_over, flat = reply
    found = [
        Found(Position(flat[i + 1].decode(), flat[i].decode()), read_record(flat[i + 2]))
        for i in range(0, len(flat), 3)
    ]
    return Slice(Position(score.decode(), job.decode()), is_over == 1, found)


def _read_numbers(reply: Sequence[Any]) -> Numbers:
    now, statuses, oldest, new, groups, waiting, due_now = reply
    position = Position(oldest[1].decode(), oldest[0].decode()) if oldest else None
    return Numbers(now, pairs(statuses), position, new, groups, waiting, texts(due_now))


def _read_redrives(reply: Sequence[Any]) -> dict[str, RedriveRecord]:
    return {job: _read_redrive(one) for job, one in pairs(reply).items()}


def _read_group(
    fingerprint: bytes,
    pending: int,
    total: int,
    packed: bytes,
    first_at: bytes,
    last_at: bytes,
    last_id: bytes,
) -> Group:
    name, code, sample = _read_error(packed) if packed else ("", "", "")
    return Group(
        fingerprint=fingerprint.decode(),
        name=name,
        code=code or None,
        sample=sample,
        pending=pending,
        total=total,
        first_at=int(float(first_at or 0)),
        last_at=int(float(last_at or 0)),
        last_id=last_id.decode(),
    )


_read_error = msgspec.msgpack.Decoder(tuple[str, str, str]).decode
read_record = msgspec.msgpack.Decoder(Record).decode
_read_redrive = msgspec.msgpack.Decoder(RedriveRecord).decode
