"""Stores events for statistics, many at a time and each once."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from psycopg.types.json import Jsonb

from apps.campotech.messages import Analytics
from faena import Job

if TYPE_CHECKING:
    from apps.campotech.system import System

_STORE: Final = """
    INSERT INTO campotech.analytics_events
        (organization_id, kind, data, user_id, session_id, job_id, at)
    VALUES (%s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (job_id) DO NOTHING
"""
_NUL: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
"""The escape, but not a backslash that is followed by `u0000`."""


class Statistics:
    """The queue `analytics`."""

    def __init__(self, system: System) -> None:
        self._pg = system.pg
        queue = system.queues["analytics"]
        self.record = queue.batch(name="record", wait="200ms")(self._record)

    async def _record(self, events: list[Analytics], jobs: list[Job]) -> None:
        """One round trip for all of them; an event that comes again is there already."""
        rows = [_row(event, job) for event, job in zip(events, jobs, strict=True)]
        async with self._pg.transaction("analytics") as connection, connection.cursor() as cursor:
            await cursor.executemany(_STORE, rows)


def _row(event: Analytics, job: Job) -> list[Any]:
    data = Jsonb(event.event_data, dumps=_storable)
    return [
        event.org_id,
        event.event_type,
        data,
        event.user_id,
        event.session_id,
        job.id,
        event.timestamp,
    ]


def _storable(data: object) -> str:
    """As JSON without NUL characters: jsonb has none, and all events of the batch would fail."""
    return _NUL.sub(r"\1", json.dumps(data))
