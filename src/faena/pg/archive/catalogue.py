"""`faena.archives`: one row for each object, and the state that says where its rows are.

    writing    → verified    the object was read back and is what was exported
    verified   → archived    the rows were deleted, in the same transaction
    writing, verified → discarded    rows have changed, or the archiver died: exported again
    archived   → restored    the rows are in the table again, in the same transaction
    archived   → erased      the object was removed for good, on request of its tenant

Only `archived` objects count as archives: rows of all others are in the table, or erased. Objects
of one tenant are found by (table, tenant); those with `tenant_column` None hold rows of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import msgspec

from faena.pg.archive.content import Summary
from faena.pg.archive.manifest import Manifest
from faena.pg.partition.catalog import in_utc

if TYPE_CHECKING:
    from faena.pg.postgres import Connection

State: TypeAlias = Literal["writing", "verified", "archived", "discarded", "restored", "erased"]

_READ: Final = """
    SELECT id, table_name, tenant_column, tenant, start_at, end_at, first_at, last_at, store, key,
           rows, raw_bytes, size, sha256, digest::text, schema_digest, last_key, state,
           created_at, changed_at, key_columns
    FROM faena.archives
    WHERE table_name = %(table)s AND state = ANY(%(states)s) AND id > %(after)s
      AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
      AND (%(since)s::timestamptz IS NULL OR last_at >= %(since)s)
      AND (%(until)s::timestamptz IS NULL OR first_at < %(until)s)
      AND (%(period)s::timestamptz IS NULL OR start_at = %(period)s)
    ORDER BY id LIMIT %(limit)s
"""
_ADD: Final = """
    INSERT INTO faena.archives (table_name, tenant_column, tenant, start_at, end_at, first_at,
        last_at, store, key, rows, raw_bytes, size, sha256, digest, schema_digest, last_key, state,
        key_columns)
    SELECT one.table, tenant_column, tenant, start, "end", first, last, %s, key, rows, raw_bytes,
        size, sha256, digest, schema_digest, last_key, 'writing', %s
    FROM jsonb_to_recordset(%s) AS one("table" text, tenant_column text,
        tenant text, start timestamptz, "end" timestamptz, first timestamptz, last timestamptz,
        key text, rows bigint, raw_bytes bigint, size bigint, sha256 text, digest numeric,
        schema_digest text, last_key text[], number bigint)
    ORDER BY number RETURNING id
"""


class Entry(NamedTuple):
    """A row of faena.archives."""

    id: int
    table: str
    """`schema.table`"""
    tenant_column: str | None
    tenant: str | None
    start: datetime
    """The period of its rows: a partition's, or a day, a week, a month."""
    end: datetime
    """The first instant after the period."""
    first_at: datetime
    """The time of its oldest row."""
    last_at: datetime
    """The time of its newest row."""
    store: str
    """For `open_store`, together with what the program says about that store."""
    key: str
    """Of the object; `manifest_key` gives that of its manifest."""
    rows: int
    raw_bytes: int
    size: int
    sha256: str
    digest: str
    schema_digest: str
    last_key: list[str | None]
    """Tenant, time and primary key of its last row: an interrupted export continues there."""
    state: State
    created_at: datetime
    changed_at: datetime
    key_columns: list[str] | None
    """Of which columns `last_key` is."""

    @property
    def by(self) -> str | None:
        """The column that `first_at` and `last_at` are of; None: unknown."""
        place = 0 if self.tenant_column is None else 1
        return next(iter((self.key_columns or [])[place:]), None)

    @property
    def summary(self) -> Summary:
        """For comparisons."""
        return Summary(self.rows, int(self.digest))


class Wanted(NamedTuple):
    """Which entries to read; None is any."""

    table: str
    tenant: str | None = None
    since: datetime | None = None
    """Objects with rows at or after this instant …"""
    until: datetime | None = None
    """… and before this one."""
    states: tuple[State, ...] = ("archived",)
    period: datetime | None = None
    """The start of the period."""


async def read_entries(
    connection: Connection, wanted: Wanted, *, after: int = 0, limit: int | None = None
) -> list[Entry]:
    """Entries in order of their ids, from the one after `after`."""
    await in_utc(connection)
    given = {**wanted._asdict(), "states": list(wanted.states), "after": after, "limit": limit}
    found = await connection.execute(_READ, given)
    return [Entry(*row) for row in await found.fetchall()]


async def add_entries(
    connection: Connection,
    store: str,
    added: Sequence[tuple[Manifest, Sequence[str | None]]],
    order: Sequence[str],
) -> list[int]:
    """New ones in state `writing`, each with the key of its last row, in the order of some columns;
    returns their ids."""
    await in_utc(connection)
    given = [
        {**msgspec.to_builtins(one), "last_key": last, "number": number}
        for number, (one, last) in enumerate(added)
    ]
    found = await connection.execute(_ADD, [store, [*order], msgspec.json.encode(given).decode()])
    return [row[0] for row in await found.fetchall()]


async def known_tables(connection: Connection, table: str) -> set[str]:
    """All tables with a recorded retention, and `table` itself if it has archives."""
    found = await connection.execute(
        "SELECT table_name FROM faena.retentions UNION ALL"
        " (SELECT table_name FROM faena.archives WHERE table_name = %s LIMIT 1)",
        [table],
    )
    return {row[0] for row in await found.fetchall()}


async def change_state(
    connection: Connection, ids: Sequence[int], to: State, *, of: Sequence[State]
) -> int:
    """Move entries that are in one of some states to another; returns how many there were."""
    found = await connection.execute(
        "UPDATE faena.archives SET state = %s, changed_at = now()"
        " WHERE id = ANY(%s) AND state = ANY(%s)",
        [to, list(ids), list(of)],
    )
    return found.rowcount


async def change_period(
    connection: Connection, table: str, start: datetime | None, to: State, of: Sequence[State]
) -> int:
    """The same for all entries of a period, or of a table; returns how many there were."""
    found = await connection.execute(
        "UPDATE faena.archives SET state = %s, changed_at = now() WHERE table_name = %s"
        " AND state = ANY(%s) AND (%s::timestamptz IS NULL OR start_at = %s)",
        [to, table, list(of), start, start],
    )
    return found.rowcount
