"""The history of a shard: jobs that have ended, in a stream until a reader has stored them.

Scripts append what they end (`history_record.lua`), in the same step. A reader takes entries in
their order, stores them where it likes, and strikes them off by their ids. An entry that is read
twice is the same both times: a job that ended at an instant ended once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from faena.engine.engine import Engine
from faena.engine.envelope import has_own_id, is_chained, spec_in
from faena.values.ids import made_at_us
from faena.values.packed import unpack
from faena.values.shards import queue_of

READ_AT_ONCE: Final = 40
"""Entries in one read; each has at most a quarter of a megabyte, or one job."""

STATES: Final = (
    "completed",
    "dead",
    "cancelled",
    "expired",
    "removed",
    "replaced",
    "discarded",
    "resolved",
)
"""How a job can end; the last two are decisions about a dead one."""

_STREAM: Final = "history"
_STATS: Final = "history_stats"
_GAP: Final = "gap"
_LEASE_WORDS: Final = 4
_TEXT: Final = r'"(?:[^"\\]|\\.)*"'
_FRONT: Final = re.compile(
    rf'\{{"task":(?P<task>{_TEXT})(?:,"tenant":(?P<tenant>{_TEXT}))?(?:,"key":(?P<key>{_TEXT}))?'
)
_LANE: Final = re.compile(r"\A[^\n]* lane=@(\S+)")
_NAME: Final = re.compile(rf'\A\{{"name":({_TEXT})')
_MESSAGE: Final = re.compile(r',"message":("(?:[^"\\]|\\.)*)')
_CODE: Final = re.compile(rf',"code":({_TEXT})')
_TELLS: Final = re.compile(r"\A([fg]):([^:]+):([^:]+):")
_EXPIRED: Final = "EXPIRED"


class Finishing(msgspec.Struct, frozen=True, kw_only=True):
    """One end of one job; a job that is run again has another. Instants are microseconds."""

    id: str
    queue: str
    state: str
    """One of STATES."""
    finished_at: int
    task: str
    tenant: str | None
    key: str | None
    priority: int
    attempts: int
    """Those that count: failed ones, and the one that completed it."""
    losses: int
    enqueued_at: int | None
    started_at: int | None
    """When its last attempt began."""
    worker: str | None
    error: str | None
    """The name of what it failed with last."""
    code: str | None
    message: str | None
    origin: str
    retry_of: str | None
    flow: str | None
    """`queue/id` of the flow it is a node of."""
    group: str | None
    payload: bytes | None
    result: bytes | None


class Gap(NamedTuple):
    """Jobs that ended while the stream had no room."""

    jobs: int
    since: int
    until: int


class Entry(NamedTuple):
    """What one call has ended, or a gap; neither if it cannot be read."""

    id: str
    finishings: Sequence[Finishing] = ()
    gap: Gap | None = None


class Backlog(NamedTuple):
    """What waits for a reader at one shard."""

    entries: int
    bytes: int
    lost: int
    """Jobs that found no room, and are in no gap yet."""
    oldest_s: float | None
    """The age of the oldest entry, in seconds."""


class HistoryCalls:
    """The calls, for any shard."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def read(self, shard: str, most: int = READ_AT_ONCE) -> list[Entry]:
        """The oldest entries of a shard."""
        found = await self._engine.command("XRANGE", shard, _STREAM, "-", "+", "COUNT", most)
        return [read_entry(queue_of(shard), entry.decode(), fields) for entry, fields in found]

    async def is_any(self, shard: str) -> bool:
        """Whether something waits."""
        return bool(await self._engine.command("XLEN", shard, _STREAM))

    async def done(self, shard: str, entries: Sequence[str]) -> int:
        """Strike off entries; returns how many are left."""
        return int(await self._engine.ask("history_done", shard, *entries))

    async def backlog(self, shard: str) -> Backlog:
        """How much waits."""
        command = self._engine.command
        first = await command("XRANGE", shard, _STREAM, "-", "+", "COUNT", 1)
        number = await command("XLEN", shard, _STREAM)
        size, lost = await command("HMGET", shard, _STATS, "bytes", "lost")
        age_s = await self._age_s(shard, first[0][0]) if first else None
        return Backlog(int(number), int(size or 0), int(lost or 0), age_s)

    async def _age_s(self, shard: str, entry: bytes) -> float:
        """By the clock of the server that wrote it."""
        key = self._engine.wake_key(shard)
        now, us = await self._engine.wire.call("TIME", key=key, patience_s=5.0)
        written_s = int(entry.partition(b"-")[0]) / 1000
        return max(0.0, int(now) + int(us) / 1e6 - written_s)

    async def note_late(self, shard: str, *, is_late: bool) -> bool:
        """Note whether a shard's history is late; returns whether that is new."""
        if is_late:
            return bool(await self._engine.command("HSETNX", shard, _STATS, "late", 1))
        return bool(await self._engine.command("HDEL", shard, _STATS, "late"))


def read_entry(queue: str, entry: str, fields: Sequence[bytes]) -> Entry:
    """An entry as its script packed it; one that cannot be read is a gap."""
    try:
        _, at, state, *rest = unpack(fields[3])
        if state == _GAP:
            since, jobs = rest
            return Entry(entry, gap=Gap(int(jobs), int(since), int(at)))
        step, jobs = rest
        ended = _Ended(queue, STATES[STATES.index(state)], int(at), int(step))
        return Entry(entry, [_read_job(ended, one) for one in jobs])
    except (ValueError, TypeError, IndexError):
        return Entry(entry, gap=_unreadable(entry, fields))


def _unreadable(entry: str, fields: Sequence[bytes]) -> Gap:
    at = int(entry.partition("-")[0]) * 1000
    number = fields[1] if len(fields) > 1 else b""
    return Gap(int(number) if number.isdigit() else 1, at, at)


def _read_job(ended: _Ended, packed: Sequence[Any]) -> Finishing:
    """A job; where something else has been written into its keys, only that it ended."""
    try:
        return _finishing(ended, *packed)
    except (ValueError, TypeError, AttributeError):
        return _finishing(ended, str(packed[0]), "", False, False, False, False)


class _Ended(NamedTuple):
    """What jobs of an entry have in common."""

    queue: str
    state: str
    at: int
    step: int


def _finishing(
    ended: _Ended,
    job: str,
    spec: str,
    lease: str | bool,
    mark: Mapping[str, Any] | bool,
    error: str | bool,
    result: str | bool,
) -> Finishing:
    marked = mark if isinstance(mark, Mapping) else {}
    name, code, message = _read_error(error if isinstance(error, str) else "")
    is_expired = ended.state == "cancelled" and code == _EXPIRED
    started_at, worker, score = _read_lease(lease if isinstance(lease, str) else "")
    kind, told = _told(marked.get("w"))
    sealed = spec.encode()
    whole = spec_in(sealed)
    return Finishing(
        id=job,
        queue=ended.queue,
        state="expired" if is_expired else ended.state,
        finished_at=ended.at,
        **_read_front(spec),
        priority=_priority(spec, marked),
        attempts=int(marked.get("a", 0)) + (ended.state == "completed"),
        losses=int(marked.get("l", 0)),
        enqueued_at=_enqueued_at(ended, job, sealed, marked, score),
        started_at=started_at,
        worker=worker,
        error=name,
        code=code,
        message=message,
        origin=marked.get("o") or job,
        retry_of=marked.get("b"),
        flow=told if kind == "f" else None,
        group=told if kind == "g" else None,
        payload=bytes(whole.payload) if whole and '"payload":' in spec else None,
        result=result.encode() if isinstance(result, str) else None,
    )


def _read_front(spec: str) -> dict[str, Any]:
    """Task, tenant and key: a producer writes them first."""
    _, _, body = spec.partition("\n")
    found = _FRONT.match(body)
    lane = _LANE.match(spec)
    told = {name: _unquoted(text) for name, text in (found.groupdict() if found else {}).items()}
    tenant = told.get("tenant") or (lane[1] if lane else None)
    return {"task": told.get("task") or "", "tenant": tenant, "key": told.get("key")}


def _unquoted(text: str | None) -> str | None:
    """A text of JSON; one that was cut ends where it can be read."""
    if text is None:
        return None
    try:
        return str(msgspec.json.decode(text))
    except (msgspec.MsgspecError, UnicodeError):
        return text.strip('"')


def _read_error(error: str) -> tuple[str | None, str | None, str | None]:
    """Name, code and message of an error's JSON, of which the end may be missing."""
    found = _NAME.match(error)
    if found is None:
        return None, None, None
    message, code = _MESSAGE.search(error), _CODE.search(error)
    text = _unquoted(f'{message[1]}"') if message else None
    return _unquoted(found[1]), _unquoted(code[1]) if code else None, text


def _read_lease(record: str) -> tuple[int | None, str | None, float | None]:
    """When it was claimed, by whom, and from which position; of a job that waited, the last."""
    words = record.split()
    if len(words) < _LEASE_WORDS:
        return None, None, None
    _, started, worker, score, *_ = words
    place = float(score)
    return (None, None, place) if started == "-" else (int(started), worker, place)


def _priority(spec: str, mark: Mapping[str, Any]) -> int:
    changed = mark.get("p")
    return int(changed) if changed else int(spec[:3]) if spec[:3].isdigit() else 0


def _enqueued_at(
    ended: _Ended, job: str, spec: bytes, mark: Mapping[str, Any], score: float | None
) -> int | None:
    """As `enqueued_at.lua`: of a job that has kept its place, the place tells."""
    if "q" in mark:
        return int(mark["q"])
    if score is not None and len(spec) > _LEASE_WORDS:
        worth = 0 if is_chained(spec + b"\n") else _priority(spec.decode(), mark) * ended.step
        came_at = int(score - worth)
        if 0 < came_at <= ended.at:
            return came_at
    return None if has_own_id(spec) else made_at_us(job)


def _told(tells: Any) -> tuple[str, str | None]:
    """Whether it tells a flow or a group of its end, and which."""
    found = _TELLS.match(tells) if isinstance(tells, str) else None
    return (found[1], f"{found[2]}/{found[3]}") if found else ("", None)
