"""Finds ends of jobs, newest first, page by page.

A page begins behind the last row of the one before, by instant, id and queue, so a row that is
stored meanwhile moves none of the others. Without `since`, all partitions are read, the newest
first, until the page is full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from faena.engine.calls.history import STATES
from faena.errors import ConfigError, nearest, shown
from faena.options.fields import derive
from faena.pg.history.store import instant
from faena.pg.history.view import PastJob, PastPage
from faena.pg.postgres import Connection
from faena.values.cursor import read_cursor, write_cursor
from faena.values.keywords import known_fields
from faena.values.numbers import check_whole

COLUMNS: Final = (
    "id, queue, state, finished_at, task, tenant, key, priority, attempts, losses, enqueued_at, "
    'started_at, wait_us, run_us, worker, error, code, message, origin, retry_of, flow, "group", '
    "payload, result"
)
_EPOCH: Final = instant(0)
_MOST: Final = 1000


@known_fields("search")
@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What to look for; all of it must hold."""

    id: str | None = None
    queue: Any = None
    """A queue, or its name."""
    task: str | None = None
    tenant: str | None = None
    """Only jobs of this tenant."""
    state: str | None = None
    """How they ended, such as `dead`."""
    error: str | None = None
    """A part of the error's name, code or message, in capitals or not."""
    since: datetime | None = None
    """They ended then or later."""
    until: datetime | None = None
    """They ended before."""
    payload: Mapping[str, Any] | None = None
    """Fields that the payload has with these values, if payloads are kept."""

    def __post_init__(self) -> None:
        derive(self, "queue", getattr(self.queue, "name", self.queue))
        for name in ("id", "queue", "task", "tenant", "error"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or "\0" in value):
                raise ConfigError(
                    f"{name} must be a text without NUL, got {shown(value)}",
                    field=name,
                    value=value,
                )
        _check_state(self.state)
        for name in ("since", "until"):
            _check_instant(name, getattr(self, name))
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise ConfigError(
                f"since must be before until, got {self.since.isoformat()} and "
                f"{self.until.isoformat()}",
                field="since",
                value=self.since,
            )
        if self.payload is not None and not isinstance(self.payload, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - a user's
            raise ConfigError(
                f"payload must be fields and their values, got {shown(self.payload)}",
                field="payload",
                value=self.payload,
            )

    def conditions(self) -> tuple[list[str], list[Any]]:
        """As SQL, with its parameters."""
        words: list[str] = []
        values: list[Any] = []
        for name in ("id", "queue", "task", "tenant", "state"):
            if (value := getattr(self, name)) is not None:
                words.append(f"h.{name} = %s")
                values.append(value)
        for name, compared in (("since", ">="), ("until", "<")):
            if (at := getattr(self, name)) is not None:
                words.append(f"h.finished_at {compared} %s")
                values.append(at)
        if self.error is not None:
            words.append("(h.error ILIKE %s OR h.code ILIKE %s OR h.message ILIKE %s)")
            values += [_containing(self.error)] * 3
        if self.payload is not None:
            words.append("h.payload @> %s::jsonb")
            values.append(msgspec.json.encode(self.payload).decode())
        return words, values


def _check_state(state: Any) -> None:
    if state is not None and state not in STATES:
        raise ConfigError(
            f"state must be one that jobs end in, got {shown(state)}; {nearest(state, STATES)}",
            field="state",
            value=state,
        )


def _check_instant(name: str, at: Any) -> None:
    if at is not None and not (isinstance(at, datetime) and at.tzinfo is not None):
        raise ConfigError(
            f"{name} must be a datetime with a time zone, got {shown(at)}", field=name, value=at
        )


def _containing(text: str) -> str:
    for special in "\\%_":
        text = text.replace(special, f"\\{special}")
    return f"%{text}%"


async def find(
    connection: Connection, search: Search, *, limit: int, cursor: str | None
) -> PastPage:
    """One page."""
    check_whole("limit", limit, least=1, most=_MOST)
    words, values = search.conditions()
    if cursor is not None:
        reached = read_cursor(cursor, search, "a search of the history with the same filters")
        job, _, queue = reached.id.rpartition(" ")
        words.append("(h.finished_at, h.id, h.queue) < (%s, %s, %s)")
        values += [instant(int(reached.score)), job, queue]
    where = f"WHERE {' AND '.join(words)}" if words else ""
    found = await connection.execute(
        f"SELECT {COLUMNS} FROM faena.history h {where} "  # noqa: S608 - constants and parameters
        f"ORDER BY h.finished_at DESC, h.id DESC, h.queue DESC LIMIT %s".encode(),
        [*values, limit + 1],
    )
    jobs = [past_job(row) for row in await found.fetchall()]
    is_over, page = len(jobs) <= limit, jobs[:limit]
    last = None if is_over else page[-1]
    return PastPage(
        jobs=tuple(page),
        cursor=last
        and write_cursor(search, str(to_us(last.finished_at)), f"{last.id} {last.queue}"),
    )


def past_job(row: tuple[Any, ...]) -> PastJob:
    """A row of COLUMNS."""
    told = dict(zip(COLUMNS.replace('"', "").split(", "), row, strict=True))
    wait_us, run_us = told.pop("wait_us"), told.pop("run_us")
    return PastJob(**told, wait_s=_seconds(wait_us), run_s=_seconds(run_us))


def _seconds(us: int | None) -> float | None:
    return None if us is None else us / 1e6


def to_us(at: datetime) -> int:
    """Whole microseconds since 1970."""
    past = at - _EPOCH
    return (past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds
