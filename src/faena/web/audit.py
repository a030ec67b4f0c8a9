"""The audit trail: who changed what, when, from what to what, and how it ended.

Each change is recorded before it is made, and again with its outcome. A change whose process died
in between may or may not have happened, and the trail says so.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from faena.engine import Engine
from faena.engine.calls.access import AccessCalls
from faena.values.view import View
from faena.web.access.caller import Caller

_PAGE: Final = 100
_MOST_READ: Final = 1_000
"""So many are looked through for those that a page is asked for."""
_LOST_S: Final = 3_600
"""After this, a change without an outcome has lost its process."""
_LOST: Final = "unknown: its process died"
_LONGEST: Final = 8_192
"""The most bytes that are kept of what was there before, and after."""


class Record(View, frozen=True, kw_only=True):
    """One change."""

    id: str
    at: float
    """Seconds since 1970."""
    by: str
    role: str
    via: str
    operation: str
    """Its name in the API: `queues.pause`."""
    target: str
    """What was changed: a queue, a job, a tenant …"""
    where: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """The same, by what each is."""
    arguments: dict[str, Any]
    before: Any = None
    after: Any = None
    outcome: str = ""
    """Empty while it is under way; done; or why it was refused."""
    took_ms: float | None = None


class Page(View, frozen=True, kw_only=True):
    """Some records, the newest first."""

    records: tuple[Record, ...]
    cursor: str | None
    """Where the next page begins; None at the end."""
    read: int = 0
    """How many were looked through."""


class Wanted(NamedTuple):
    """Which records are asked for; what is empty is not asked about."""

    who: str = ""
    """A part of who did it, as the next two are."""
    what: str = ""
    """What the operation's name begins with."""
    target: str = ""
    is_done: bool | None = None
    since_ms: int | None = None
    """Milliseconds since 1970."""
    until_ms: int | None = None

    def has(self, record: Record) -> bool:
        """Whether a record is among them."""
        at_ms = record.at * 1000
        return (
            self.who.lower() in record.by.lower()
            and record.operation.startswith(self.what)
            and self.target.lower() in record.target.lower()
            and self.is_done in {None, record.outcome == "done"}
            and (self.since_ms is None or at_ms >= self.since_ms)
            and (self.until_ms is None or at_ms < self.until_ms)
        )


ALL: Final = Wanted()


_pack = msgspec.msgpack.Encoder(enc_hook=str).encode
_read = msgspec.msgpack.Decoder(Record).decode


class Trail:
    """The audit trail of an app."""

    def __init__(self, engine: Engine, new_id: Callable[[], str]) -> None:
        self._calls = AccessCalls(engine)
        self._new_id = new_id

    async def keep(
        self,
        caller: Caller,
        operation: str,
        where: Mapping[str, str],
        arguments: dict[str, Any],
        do: Callable[[], Awaitable[tuple[Any, Any, Any]]],
    ) -> tuple[Any, Record]:
        """Make a change on the record; `do` returns its answer, and what was before and after."""
        record = Record(
            id=self._new_id(),
            at=time.time(),
            by=caller.name,
            role=caller.role.value,
            via=caller.via,
            operation=operation,
            target="/".join(where.values()),
            where=dict(where),
            arguments=_bounded(arguments),
        )
        await self._calls.begin_record(record.id, _pack(record))
        began = time.monotonic()
        try:
            answer, before, after = await do()
        except Exception as error:
            await self._end(record, began, outcome=str(error) or type(error).__name__)
            raise
        done = await self._end(
            record, began, outcome="done", before=_bounded(before), after=_bounded(after)
        )
        return answer, done

    async def _end(self, record: Record, began: float, **found: Any) -> Record:
        took_ms = round((time.monotonic() - began) * 1000, 3)
        ended = msgspec.structs.replace(record, took_ms=took_ms, **found)
        await self._calls.end_record(ended.id, _pack(ended))
        return ended

    async def page(
        self,
        before: str = "+",
        number: int = _PAGE,
        *,
        wanted: Wanted = ALL,
        most: int = _MOST_READ,
    ) -> Page:
        """The newest records, or those before a cursor; changes under way come first.

        Of those that are wanted, at most `number`, among at most `most`.
        """
        under_way = await self._under_way() if before == "+" else []
        found, read, cursor = [one for one in under_way if wanted.has(one)], 0, before
        if before == "+" and wanted.until_ms is not None:
            cursor = f"{wanted.until_ms}-0"
        since = "-" if wanted.since_ms is None else f"{wanted.since_ms}-0"
        while len(found) < number and read < most:
            part = min(number, most - read)
            records = await self._calls.records(cursor, part, since)
            for at, packed in records:
                read, cursor, record = read + 1, at, _read(packed)
                if wanted.has(record):
                    found.append(record)
                if len(found) == number:
                    break
            else:
                if len(records) < part:
                    return Page(records=tuple(found), cursor=None, read=read)
        return Page(records=tuple(found), cursor=cursor, read=read)

    async def last(self, number: int) -> Sequence[Record]:
        """The last changes that have ended."""
        return [_read(one) for _, one in await self._calls.records("+", number)]

    async def _under_way(self) -> list[Record]:
        records = sorted(
            map(_read, await self._calls.open_records()), key=lambda one: one.at, reverse=True
        )
        for one in records:
            if time.time() - one.at > _LOST_S:
                lost = msgspec.structs.replace(one, outcome=_LOST)
                await self._calls.end_record(one.id, _pack(lost))
        return [one for one in records if time.time() - one.at <= _LOST_S]


def _written(value: Any) -> Any:
    """The value as text, by name where it has names."""
    if isinstance(value, dict):
        return {str(name): str(one) for name, one in value.items()}
    return str(value)


def _bounded(value: Any) -> Any:
    """The value, or a word about it where it is too large to keep."""
    try:
        packed = _pack(value)
    except OverflowError:  # a number beyond 64 bits: whatever takes it refuses it
        value = _written(value)
        packed = _pack(value)
    if len(packed) <= _LONGEST:
        return msgspec.msgpack.decode(packed)
    words = f"{len(packed)} bytes, not kept"
    return {"left out": words} if isinstance(value, dict) else words
