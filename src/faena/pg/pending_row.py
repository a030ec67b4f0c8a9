"""Why a job is still a row of the outbox, for who asks where it is."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Final, Protocol

from faena.errors import FaenaError
from faena.inspection.reason import Detail, Reason
from faena.pg.pool import ReadConnection

_LOOK: Final = b"""
    SELECT created_at, sent_at, refused FROM faena.outbox WHERE queue = %s AND id = %s
"""


class _Reads(Protocol):
    """The database."""

    def transaction(self, op: str | None = None) -> AbstractAsyncContextManager[ReadConnection]: ...


class PendingRows:
    """Reads rows of jobs that the broker does not have."""

    def __init__(self, pg: _Reads) -> None:
        self._pg = pg

    async def row(self, queue: str, job_id: str) -> Reason | None:
        """Why a job is there; None if it is not, or if the database cannot be asked."""
        if "\0" in job_id:
            return None
        try:
            async with self._pg.transaction("explain") as connection:
                found = await connection.execute(_LOOK, [queue, job_id])
                row = await found.fetchone()
        except FaenaError:
            return None
        return None if row is None else _reason(*row)


def _reason(created_at: datetime, sent_at: datetime | None, refused: str | None) -> Reason:
    since = _told(created_at)
    details: dict[str, Detail] = {"created_at": since, "why": refused}
    if refused is not None:
        words = f"its row in PostgreSQL is from {since}, and the broker refused it: {refused}"
        return Reason(code="outbox_refused", words=words, details=details)
    if sent_at is None:
        words = f"its row in PostgreSQL is from {since}, and has not been sent to the broker"
        return Reason(code="outbox", words=words, details=details)
    words = f"its row in PostgreSQL was sent at {_told(sent_at)}; the broker does not have it"
    return Reason(code="outbox_sent", words=words, details=details)


def _told(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S %Z}"
