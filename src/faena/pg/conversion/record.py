"""How far a conversion is, stored in the database with each step it makes."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, LiteralString, NamedTuple, TypeAlias

from psycopg import sql

from faena.errors import InternalError, StoreRejected
from faena.pg.partition.catalog import Table

if TYPE_CHECKING:
    from faena.pg.postgres import Connection

Step: TypeAlias = Literal["preparing", "copying", "copied", "swapped", "finished", "cancelling"]

_READ: Final = """
    SELECT table_name, step, by_column, every, low, high, last_key, copied, total, verified,
           verified_at, triggers, index_names, started_at, changed_at
    FROM faena.conversions WHERE table_name = %s
"""


class Record(NamedTuple):
    """A row of faena.conversions."""

    table: str
    step: Step
    by: str
    every: str
    low: date | None
    """The first day that the twin has partitions for."""
    high: date | None
    """The first day after its last partition."""
    last_key: list[str] | None
    """The primary key up to which rows are copied."""
    copied: int
    total: int
    """Rows of the plain table, estimated at the beginning."""
    verified: list[date]
    """The starts of the periods that were compared and are equal."""
    verified_at: datetime | None
    """When the last comparison of all periods began."""
    triggers: list[dict[str, Any]]
    """Triggers of the plain table that moved with the swap."""
    index_names: list[str]
    """Indexes whose names moved with the swap."""
    started_at: datetime
    changed_at: datetime

    @property
    def reach(self) -> tuple[date, date]:
        """The days for which the twin has partitions."""
        if self.low is None or self.high is None:
            raise InternalError(f"the twin of {self.table} must have partitions")
        return self.low, self.high


async def read_record(connection: Connection, table: str) -> Record | None:
    """The conversion of a table, if one was begun."""
    row = await (await connection.execute(_READ, [table])).fetchone()
    return None if row is None else Record(*row)


async def known_record(connection: Connection, table: str) -> Record:
    """The conversion of a table, which was begun."""
    found = await read_record(connection, table)
    if found is None:
        raise StoreRejected(f"no conversion of {table} was begun, or it is over", op="convert")
    return found


async def open_record(connection: Connection, table: str) -> Record:
    """The conversion of a table, which is before its swap.

    Read in the transaction that changes it: another process may have swapped or cancelled it after
    this one has begun its part.
    """
    found = await known_record(connection, table)
    if found.step in {"swapped", "finished"}:
        raise StoreRejected(f"table {table} is converted already", op="convert")
    if found.step == "cancelling":
        raise StoreRejected(f"the conversion of {table} is being cancelled", op="convert")
    return found


async def add_record(connection: Connection, table: Table, by: str, every: str) -> None:
    """Begin one; the record of a finished conversion of an earlier table gives way."""
    await connection.execute(
        "DELETE FROM faena.conversions WHERE table_name = %s AND step = 'finished'", [str(table)]
    )
    await connection.execute(
        "INSERT INTO faena.conversions (table_name, step, by_column, every, total)"
        " SELECT %s, 'preparing', %s, %s, greatest(reltuples, 0)::bigint"
        " FROM pg_class WHERE oid = %s",
        [str(table), by, every, table.oid],
    )


async def change_record(connection: Connection, table: str, **changes: Any) -> None:
    """Set columns of the record, in the transaction of what they tell."""
    names: list[LiteralString] = list(changes)  # pyright: ignore[reportAssignmentType] - of calls
    setting = sql.SQL(", ").join(
        sql.SQL("{} = {}").format(sql.Identifier(one), sql.Placeholder()) for one in names
    )
    await connection.execute(
        sql.SQL("UPDATE faena.conversions SET {}, changed_at = now() WHERE table_name = {}").format(
            setting, sql.Placeholder()
        ),
        [*changes.values(), table],
    )


async def remove_record(connection: Connection, table: str) -> None:
    """Forget one that was cancelled."""
    await connection.execute("DELETE FROM faena.conversions WHERE table_name = %s", [table])
