"""Pages of an organisation's jobs, the newest first.

The table has a part for each month, so a page always names its time: from `since` to `until` or to
the cursor, which is the last row of the page before. No part outside of it is opened, and a page
costs the same however many came before it.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg.rows import class_row

from faena.pg import Connection

PAGE: Final = 50
MOST: Final = 200
_FORM: Final = struct.Struct(">q16s")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_LAST: Final = datetime(9999, 1, 1, tzinfo=UTC)
QUERY: Final = """
    SELECT id, customer_id, assigned_to, status, description, address, scheduled_date, total_cents,
        created_at, updated_at, completed_at
    FROM campotech.jobs
    WHERE organization_id = %(org)s AND created_at >= %(since)s AND created_at <= %(until)s
        AND (created_at, id) < (%(until)s, %(before)s)
    ORDER BY created_at DESC, id DESC LIMIT %(most)s
"""
_HIGHEST: Final = UUID(int=(1 << 128) - 1)


class BadCursor(ValueError):
    """It is none that a page has given."""


class Cursor(NamedTuple):
    """The last row of a page."""

    at: datetime
    id: UUID

    def __str__(self) -> str:
        packed = _FORM.pack((self.at - _EPOCH) // _MICROSECOND, self.id.bytes)
        return base64.urlsafe_b64encode(packed).decode()

    @classmethod
    def read(cls, text: str) -> Cursor:
        """As `str` has written it."""
        try:
            us, name = _FORM.unpack(base64.b64decode(text.encode(), altchars=b"-_", validate=True))
            at = _EPOCH + us * _MICROSECOND
        except (ValueError, binascii.Error, struct.error, OverflowError):
            raise BadCursor("cursor must be one that a page has given") from None
        if not _EPOCH <= at < _LAST:
            raise BadCursor("cursor must be one that a page has given")
        return cls(at, UUID(bytes=name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A job."""

    id: UUID
    customer_id: UUID | None
    assigned_to: UUID | None
    status: str
    description: str
    address: str | None
    scheduled_date: datetime | None
    total_cents: int | None
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None


class Page(NamedTuple):
    """Some jobs, and where the next page begins."""

    jobs: Sequence[Row]
    after: Cursor | None
    """None: this is the last page."""


async def read(
    connection: Connection,
    organization: UUID,
    *,
    since: datetime,
    until: datetime,
    after: Cursor | None = None,
    most: int = PAGE,
) -> Page:
    """The jobs that were made in a time."""
    given = parameters(organization, since=since, until=until, after=after, most=most + 1)
    async with connection.cursor(row_factory=class_row(Row)) as cursor:
        await cursor.execute(QUERY, given)
        rows = await cursor.fetchall()
    if len(rows) <= most:
        return Page(rows, None)
    last = rows[most - 1]
    return Page(rows[:most], Cursor(last.created_at, last.id))


def parameters(
    organization: UUID, *, since: datetime, until: datetime, after: Cursor | None, most: int
) -> dict[str, Any]:
    """As the query names them; a cursor ends the time."""
    end, before = (until, _HIGHEST) if after is None else after
    return {"org": organization, "since": since, "until": end, "before": before, "most": most}
