"""`faena.retrievals`: one row for each request, and its states.

    waiting → ready      its file is whole, and can be downloaded
    waiting → failed     an archive is damaged, or the job died
    ready   → expired    its file was removed
    waiting, ready → erased    the tenant's data were erased, and the file with them

The same request of the same tenant finds the row that waits or is ready. An attempt writes its own
key into the row before it writes its file, so each file that may exist is known; it ends only the
row that still has its token.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from faena.errors import InvalidTransition
from faena.pg.partition.catalog import in_utc
from faena.pg.retrieval.period import Period

if TYPE_CHECKING:
    from faena.pg.pool import Connection

State: TypeAlias = Literal["waiting", "ready", "failed", "expired", "erased"]

_COLUMNS: Final = (
    "id, tenant, table_name, start_at, end_at, state, store, keys, rows, size, sha256, problem, "
    "requested_at, expires_at"
)
_ERASING: Final = "SELECT 1 FROM faena.erasures WHERE tenant = %s AND state = 'waiting'"
_ADD: Final = """
    INSERT INTO faena.retrievals (id, tenant, table_name, start_at, end_at)
    VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (tenant, table_name, start_at, end_at) WHERE state IN ('waiting', 'ready')
    DO UPDATE SET changed_at = faena.retrievals.changed_at
    RETURNING id
"""
_BEGIN: Final = """
    UPDATE faena.retrievals SET token = %s, store = %s, keys = keys || %s::text, changed_at = now()
    WHERE id = %s AND state = 'waiting'
"""
_FINISH: Final = """
    UPDATE faena.retrievals SET state = 'ready', rows = %s, size = %s, sha256 = %s,
        expires_at = %s, changed_at = now()
    WHERE id = %s AND state = 'waiting' AND token = %s
"""


class Record(NamedTuple):
    """A row of faena.retrievals."""

    id: str
    tenant: str
    table: str
    """`schema.table`"""
    start: datetime
    end: datetime
    state: State
    store: str | None
    keys: list[str]
    rows: int | None
    size: int | None
    sha256: str | None
    problem: str | None
    requested_at: datetime
    expires_at: datetime | None

    @property
    def key(self) -> str:
        """Of the file that counts."""
        return self.keys[-1]

    @property
    def period(self) -> Period:
        """The time that it is about."""
        return Period(self.start, self.end)


class Result(NamedTuple):
    """A file that is whole."""

    rows: int
    size: int
    sha256: str
    expires_at: datetime


async def add(connection: Connection, tenant: str, table: str, period: Period) -> str:
    """A new row, or the one of the same request; returns its id."""
    if await (await connection.execute(_ERASING, [tenant])).fetchone() is not None:
        raise InvalidTransition("the tenant's data are being erased: try again later")
    found = await connection.execute(_ADD, [uuid.uuid4().hex, tenant, table, *period])
    row = await found.fetchone()
    return str(row[0] if row else "")


async def read(connection: Connection, id_: str) -> Record | None:
    """One row."""
    await in_utc(connection)
    words = f"SELECT {_COLUMNS} FROM faena.retrievals WHERE id = %s"  # noqa: S608 - constants
    row = await (await connection.execute(words.encode(), [id_])).fetchone()
    return None if row is None else Record(*row)


async def begin(connection: Connection, id_: str, store: str, key: str) -> uuid.UUID | None:
    """Take the row for one attempt, which will write this key; None if nothing is to be done."""
    token = uuid.uuid4()
    found = await connection.execute(_BEGIN, [token, store, key, id_])
    return token if found.rowcount == 1 else None


async def finish(connection: Connection, id_: str, token: uuid.UUID, result: Result) -> bool:
    """Let the file be found; False if another attempt has the row, or the tenant was erased."""
    found = await connection.execute(
        _FINISH, [result.rows, result.size, result.sha256, result.expires_at, id_, token]
    )
    return found.rowcount == 1


async def fail(connection: Connection, id_: str, problem: str) -> None:
    """End a row that waits."""
    await connection.execute(
        "UPDATE faena.retrievals SET state = 'failed', problem = %s, changed_at = now()"
        " WHERE id = %s AND state = 'waiting'",
        [problem, id_],
    )


async def expire(connection: Connection, now: datetime, limit: int) -> None:
    """Nobody can find files that are too old, from this transaction on."""
    await connection.execute(
        "UPDATE faena.retrievals SET state = 'expired', changed_at = now() WHERE id IN (SELECT id"
        " FROM faena.retrievals WHERE state = 'ready' AND expires_at <= %s LIMIT %s)",
        [now, limit],
    )


async def ended(connection: Connection, after: str, limit: int) -> list[Record]:
    """Rows whose files are to be removed, in order of their ids."""
    await in_utc(connection)
    words = (
        f"SELECT {_COLUMNS} FROM faena.retrievals WHERE id > %s"  # noqa: S608 - constants
        " AND state IN ('failed', 'expired', 'erased') ORDER BY id LIMIT %s"
    )
    found = await connection.execute(words.encode(), [after, limit])
    return [Record(*row) for row in await found.fetchall()]


async def forget(connection: Connection, ids: list[str]) -> int:
    """Delete rows that ended a week ago: until then a frozen process may still write a file."""
    found = await connection.execute(
        "DELETE FROM faena.retrievals WHERE id = ANY(%s) AND state IN ('failed', 'expired',"
        " 'erased') AND changed_at < now() - interval '7 days'",
        [ids],
    )
    return found.rowcount
