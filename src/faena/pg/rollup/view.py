"""What a roll-up's table has, how far a back-fill is, and what is wrong."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from psycopg import sql

from faena.errors import ArgumentError, FaenaError
from faena.pg.failure import translated
from faena.pg.partition.catalog import find_table, in_utc
from faena.pg.partition.interval import Every, periods
from faena.pg.rollup.declaration import Declaration
from faena.pg.rollup.target import prepare, sealed_before
from faena.values.view import View

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres

_RECORD: Final = """
    SELECT sealed_before, ran_at, backfill_first, backfill_last, backfill_next
    FROM faena.rollups WHERE name = %s
"""


class RollupProgress(NamedTuple):
    """How far a back-fill is."""

    period: date
    """The first day of the period that was computed last."""
    done: int
    """How many periods of the range are computed."""
    total: int


class RollupView(View, frozen=True, kw_only=True):
    """One roll-up, and what its table has."""

    name: str
    of: str
    every: Every
    group: tuple[str, ...]
    measures: dict[str, str]
    tz: str
    rows: int | None
    """How many rows of aggregates there are; None before the first run."""
    first: date | None
    """The first day of the oldest period that has rows."""
    last: date | None
    """The first day of the newest one."""
    sealed_before: date | None
    """Periods that begin earlier are not computed again: they are sealed, or retention has removed
    rows of them."""
    backfill: RollupProgress | None
    """A back-fill that has not ended."""
    ran_at: datetime | None
    problems: tuple[str, ...]


async def view(pg: Postgres, declared: Declaration) -> RollupView:
    """Look, and change nothing."""
    async with pg.transaction("rollup") as connection:
        await in_utc(connection)
        problems = await _problems(connection, declared)
        rows, first, last, record = await _contents(connection, declared)
    sealed, ran_at, *backfill = record
    return RollupView(
        name=str(declared.name),
        of=str(declared.of),
        every=declared.every,
        group=declared.group,
        measures=dict(declared.measures),
        tz=declared.zone.key,
        rows=rows,
        first=first,
        last=last,
        sealed_before=sealed,
        backfill=_progress(declared, *backfill),
        ran_at=ran_at,
        problems=problems,
    )


async def _problems(connection: Connection, declared: Declaration) -> tuple[str, ...]:
    """What the next run would be refused for."""
    try:
        with translated("rollup"):
            async with connection.transaction(force_rollback=True):
                await prepare(connection, declared)
    except FaenaError as error:
        return (str(error),)
    return ()


async def _contents(connection: Connection, declared: Declaration) -> tuple[Any, ...]:
    try:
        table = await find_table(connection, declared.name)
    except ArgumentError:
        return None, None, None, (None,) * 5
    record = await (await connection.execute(_RECORD, [str(table)])).fetchone()
    if record is None:
        return None, None, None, (None,) * 5
    with suppress(ArgumentError):  # its rows are in a table that is gone: told as a problem
        source = await find_table(connection, declared.of)
        record = await sealed_before(connection, declared, source, table), *record[1:]
    found = await connection.execute(
        sql.SQL("SELECT count(*), min({0}), max({0}) FROM {1}").format(
            sql.Identifier(declared.every), table.identifier
        )
    )
    return *(await found.fetchone() or (0, None, None)), record


def _progress(
    declared: Declaration, first: date | None, last: date | None, following: date | None
) -> RollupProgress | None:
    if first is None or last is None or following is None:
        return None
    whole = [*periods(first, last, declared.every)]
    done = [one for one in whole if one.start < following]
    return RollupProgress((done or whole)[-1 if done else 0].start, len(done), len(whole))
