"""Writes ends of jobs into the table, each once.

The key of a row is the job and the instant of its end, which the broker's script has fixed. So an
entry that is read again, by whomever, adds nothing. What can never have a row (its time has no
partition) becomes a gap, so that nothing waits behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import psycopg
from psycopg import errors as pg_errors

from faena.engine.calls.history import Entry, Gap
from faena.pg.history.option import History
from faena.pg.history.record import row_of, without_json
from faena.pg.postgres import Connection

ERASING: Final = 0x68697374
"""Held by readers together while they write, and alone by who notes an erasure."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_AHEAD: Final = timedelta(days=2)
"""How far the broker's clock may be ahead of PostgreSQL's."""

_REFUSED: Final = (
    psycopg.DataError,
    pg_errors.ProgramLimitExceeded,
    pg_errors.StatementTooComplex,
)
"""What one row can be refused for: no JSON, a number that is too large, too many levels."""

_INSTANTS: Final = ("finished_at", "enqueued_at", "started_at")
_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("id", "queue"), "text"),
    "finished_at": "bigint",
    **dict.fromkeys(("state", "task", "tenant", "key"), "text"),
    **dict.fromkeys(("priority", "attempts", "losses"), "integer"),
    **dict.fromkeys(("enqueued_at", "started_at", "wait_us", "run_us"), "bigint"),
    **dict.fromkeys(("worker", "error", "code", "message", "origin", "retry_of", "flow"), "text"),
    **dict.fromkeys(("group", "payload", "result"), "text"),
}


def _value(name: str) -> str:
    if name in _INSTANTS:
        return f"timestamptz 'epoch' + r.{name} * interval '1 microsecond'"
    return f'r."{name}"::jsonb' if name in {"payload", "result"} else f'r."{name}"'


_INSERT: Final = f"""
    INSERT INTO faena.history ({", ".join(f'"{name}"' for name in _TYPES)})
    SELECT {", ".join(_value(name) for name in _TYPES)}
    FROM json_to_recordset(%s::json)
        AS r({", ".join(f'"{name}" {kind}' for name, kind in _TYPES.items())})
    WHERE NOT EXISTS (
        SELECT FROM faena.history_erasures e
        WHERE e.tenant = sha256(convert_to(r.tenant, 'UTF8'))
          AND {_value("finished_at")} <= e.until)
    ON CONFLICT DO NOTHING
"""  # noqa: S608 - constants
_GAP: Final = """
    INSERT INTO faena.history_gaps (namespace, shard, entry, reason, jobs, since, until)
    VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""
_REACHED: Final = """
    INSERT INTO faena.history_shards AS s (namespace, shard, entry, stored, finished_until)
    VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (namespace, shard) DO UPDATE SET
        entry = excluded.entry, stored = s.stored + excluded.stored,
        finished_until = coalesce(excluded.finished_until, s.finished_until),
        read_at = clock_timestamp()
"""


def instant(us: int) -> datetime:
    """A broker's instant; one that no calendar has is the first or the last that it has."""
    last = datetime.max.replace(tzinfo=UTC) - _EPOCH
    return _EPOCH + max(timedelta(0), min(timedelta(microseconds=min(us, 2**53)), last))


class Store:
    """The tables of the history, for the shards of one namespace."""

    def __init__(self, options: History, namespace: str) -> None:
        self._options, self._namespace = options, namespace

    async def put(self, connection: Connection, shard: str, entries: Sequence[Entry]) -> list[Gap]:
        """Write entries in the caller's transaction; returns new gaps."""
        await connection.execute("SELECT pg_advisory_xact_lock_shared(%s)", [ERASING])
        now = await _now(connection)
        gaps: list[Gap] = []
        rows: list[dict[str, Any]] = []
        for entry in entries:
            stored, strays = self._parted(entry, now)
            rows += stored
            if strays and await self._note(connection, shard, entry.id, "time", _span(strays)):
                gaps.append(_span(strays))
            if entry.gap and await self._note(connection, shard, entry.id, "room", entry.gap):
                gaps.append(entry.gap)
        number = await insert(connection, rows)
        until = instant(max(row["finished_at"] for row in rows)) if rows else None
        reached = [self._namespace, shard, entries[-1].id, number, until]
        await connection.execute(_REACHED.encode(), reached)
        return gaps

    def _parted(
        self, entry: Entry, now: datetime
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Rows that have a place, and those whose time has none."""
        stored: list[dict[str, Any]] = []
        strays: list[dict[str, Any]] = []
        for one in entry.finishings:
            at = instant(one.finished_at)
            has_place = now - self._options.kept() <= at <= now + _AHEAD
            (stored if has_place else strays).append(row_of(one))
        return stored, strays

    async def _note(
        self, connection: Connection, shard: str, entry: str, reason: str, gap: Gap
    ) -> bool:
        given = [self._namespace, shard, entry, reason, gap.jobs]
        found = await connection.execute(
            _GAP.encode(), [*given, instant(gap.since), instant(gap.until)]
        )
        return found.rowcount > 0


async def insert(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int:
    """Write rows that are new; returns how many. One that `jsonb` refuses loses payload and result.

    Raises CheckViolation where a partition is missing.
    """
    if not rows:
        return 0
    try:
        async with connection.transaction():
            return await _insert(connection, rows)
    except _REFUSED:
        if len(rows) == 1:
            return await _insert(connection, [without_json(rows[0])])
    half = len(rows) // 2
    return await insert(connection, rows[:half]) + await insert(connection, rows[half:])


async def _insert(connection: Connection, rows: Iterable[Mapping[str, Any]]) -> int:
    text = msgspec.json.encode([*rows]).decode()
    return (await connection.execute(_INSERT.encode(), [text])).rowcount


async def _now(connection: Connection) -> datetime:
    found = await connection.execute("SELECT clock_timestamp()")
    (now,) = await found.fetchone() or (datetime.now(UTC),)
    return now


def _span(rows: Sequence[Mapping[str, Any]]) -> Gap:
    times = [row["finished_at"] for row in rows]
    return Gap(len(rows), min(times), max(times))
