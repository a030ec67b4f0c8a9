"""Everything a queue owns on the server, as plain Python.

One script reads it all, so a dump is one instant of the queue. Names are relative to the queue's
prefix: `ready`, `info:a`, `window:60000000`.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from faena.engine import Engine
from faena.engine.keys import Keys
from faena.values.packed import unpack
from tests._support.dead_index import wrong
from tests._support.lua import Lua

READ_ALL = Lua(
    "dump",
    """
    local readers = {
      string = function(name) return redis.call('GET', name) end,
      hash = function(name) return redis.call('HGETALL', name) end,
      zset = function(name) return redis.call('ZRANGE', name, 0, -1, 'WITHSCORES') end,
      set = function(name) return redis.call('SMEMBERS', name) end,
      list = function(name) return redis.call('LRANGE', name, 0, -1) end,
      stream = function(name) return redis.call('XRANGE', name, '-', '+') end,
    }
    local found = {}
    for _, name in ipairs(redis.call('KEYS', KEYS[1] .. '*')) do
      local kind = redis.call('TYPE', name).ok
      local mortal = redis.call('PTTL', name) > 0 and 1 or 0
      found[#found + 1] = { string.sub(name, #KEYS[1] + 1), kind, mortal, readers[kind](name) }
    end
    return found
    """,
)

BOOKKEEPING = ("call:", "stats:", "stats_hour:", "totals", "events", "desk")
"""Not told as a change; that the desk agrees with the dead jobs is checked in every dump."""


class Dump(dict[str, Any]):
    """Contents by key name; `mortal` are the names with a TTL, `types` the server's types.

    `enqueued` is what marks say of when jobs were taken in.
    """

    def __init__(self) -> None:
        super().__init__()
        self.mortal: set[str] = set()
        self.types: dict[str, str] = {}
        self.enqueued: dict[str, int] = {}


async def dump(engine: Engine, queue: str) -> Dump:
    """All keys of a queue, decoded."""
    prefix = Keys(engine.namespace, queue).prefix
    reply = await engine.wire.run(READ_ALL, [prefix], [], patience_s=60)
    return read_dump(reply)


def read_dump(reply: Sequence[Any]) -> Dump:
    """The reply of READ_ALL as a dump."""
    taken = Dump()
    for raw_name, kind, is_mortal, content in sorted(reply, key=lambda row: row[0]):
        name = raw_name.decode()
        taken.types[name] = kind.decode()
        taken[name] = _READERS[kind](name, content)
        if is_mortal:
            taken.mortal.add(name)
    if "conf" in taken:
        _check_digest(taken["conf"], taken["clock"])
        if not taken["clock"]:
            del taken["clock"], taken.types["clock"]
            taken.mortal.discard("clock")
    _set_aside_instants(taken)
    return taken


def _set_aside_instants(taken: Dump) -> None:
    """When jobs were taken in is seldom what a test is about: it stands beside the dump."""
    marks = taken.pop("marks", {})
    taken.enqueued = {job: mark.pop("q") for job, mark in marks.items() if "q" in mark}
    if left := {job: mark for job, mark in marks.items() if mark}:
        taken["marks"] = left


async def sound_dump(engine: Engine, queue: str) -> Dump:
    """A dump of a queue whose dead-letter desk must be in order."""
    taken = await dump(engine, queue)
    assert list(wrong(taken)) == []
    return taken


def _check_digest(conf: dict[str, str], clock: dict[str, Any]) -> None:
    """Scripts keep settings decoded under it: it must stand for all of them."""
    digest = clock.pop("digest")
    lines = "\n".join(sorted(f"{name}={value}" for name, value in conf.items()))
    assert digest == hashlib.sha1(lines.encode()).hexdigest()


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What differs, by key: the new content, or None for a key that is gone; no bookkeeping."""
    names = {*before, *after}
    return {
        name: after.get(name)
        for name in sorted(names)
        if before.get(name) != after.get(name) and not name.startswith(BOOKKEEPING)
    }


def _read_string(name: str, content: bytes) -> Any:
    if name.startswith("call:"):
        call, _, answer = content.partition(b"\n")
        return call.decode(), answer
    if name.startswith(("claims:", "costs:")):
        return _doubles(content)
    if name.startswith("breaker:"):
        return msgspec.msgpack.decode(content)
    return content.decode()


def _doubles(content: bytes) -> list[int]:
    return [int(number) for (number,) in struct.iter_unpack(">d", content)]


def _read_hash(name: str, content: Sequence[bytes]) -> dict[str, Any]:
    decode = _FIELDS.get(name.partition(":")[0], _text)
    return {content[i].decode(): decode(content[i + 1]) for i in range(0, len(content), 2)}


def _read_zset(_: str, content: Sequence[bytes]) -> list[tuple[str, float]]:
    return [(content[i].decode(), float(content[i + 1])) for i in range(0, len(content), 2)]


def _text(content: bytes) -> str:
    """What is packed stays recognisable."""
    return content.decode("utf-8", "backslashreplace")


def _read_set(_: str, content: Sequence[bytes]) -> list[str]:
    return sorted(entry.decode() for entry in content)


def _read_list(_: str, content: Sequence[bytes]) -> list[str]:
    return [entry.decode() for entry in content]


def _read_stream(_: str, content: Sequence[Any]) -> list[list[tuple[str, str]]]:
    """Fields in order, since one entry may name a field twice; entry ids are the server's time."""
    return [
        [(flat[i].decode(), _text(flat[i + 1])) for i in range(0, len(flat), 2)]
        for _, flat in content
    ]


def _mark(packed: bytes) -> dict[str, Any]:
    mark = msgspec.msgpack.decode(packed)
    assert len(mark.pop("z")) == 64
    return mark


def _packed(packed: bytes) -> Any:
    """A record that may be padded."""
    record = msgspec.msgpack.decode(packed)
    if isinstance(record, dict):
        record.pop("z", None)
    return record


def _lease(record: bytes) -> tuple[Any, ...]:
    """Lease, instant, worker, score; then `lane=…` and `chain=…` where the job has them."""
    lease, claimed_at, worker, score, *places = record.decode().split()
    return lease, int(claimed_at), worker, float(score), *places


def _clock(text: bytes) -> int | float | str:
    """A number, or the digest of the settings."""
    return text.decode() if len(text) == 40 else _number(text)


def _counted(text: bytes) -> Any:
    """A counter, or what was measured of a task."""
    return int(text) if text.isdigit() else unpack(text)


def _number(text: bytes) -> int | float:
    return int(text) if text.lstrip(b"-").isdigit() else float(text)


_READERS = {
    b"string": _read_string,
    b"hash": _read_hash,
    b"zset": _read_zset,
    b"set": _read_set,
    b"list": _read_list,
    b"stream": _read_stream,
}
_FIELDS: dict[str, Any] = {
    "clock": _clock,
    "stats": _counted,
    "stats_hour": _counted,
    "totals": _counted,
    "specs": bytes,
    "results": bytes,
    "transfer_out": bytes,
    "marks": _mark,
    "tenants": _mark,
    "leases": _lease,
    "desk": _packed,
    "desk_samples": _packed,
    "redrives": _packed,
    "shares": _doubles,
}
