"""What there is of a partitioned table, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from psycopg import sql

from faena.errors import FaenaError, StoreUnavailable
from faena.pg.partition.catalog import Partition, Table, check_key, find_table, partitions_of
from faena.pg.partition.declaration import Declaration
from faena.pg.partition.interval import Every, ahead_of, period_named, period_of, suffix, utc
from faena.pg.partition.name import partition_name

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres

_DETACHED: Final = """
    SELECT c.relname, c.reltuples::bigint, pg_total_relation_size(c.oid) FROM pg_class c
    WHERE c.relnamespace = to_regnamespace(quote_ident(%s)) AND c.relkind IN ('r', 'p')
      AND NOT c.relispartition AND starts_with(c.relname, %s) ORDER BY c.relname
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One partition, or a table that was one."""

    name: str
    start: datetime | None
    """None without a lower bound."""
    end: datetime | None
    """The first instant outside; None without an upper bound."""
    rows: int | None
    """As ANALYZE has estimated; None before the first one."""
    size: int
    """In bytes, with indexes."""
    is_attached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A declared table."""

    table: str
    by: str
    every: Every
    ahead: int
    partitions: tuple[PartitionView, ...]
    runway: datetime | None
    """Until when partitions exist without a gap, from now; None if there is none for now."""
    problems: tuple[str, ...]


async def view(pg: Postgres, declared: Declaration, at: datetime | None = None) -> TableView:
    """How a declared table is; what is wrong is told as a problem, not raised."""
    try:
        async with pg.transaction("partitions") as connection:
            table = await find_table(connection, declared.table)
            await check_key(connection, table, declared.by)
            known = await partitions_of(connection, table)
            now = utc(at) if at else await server_time(connection)
            detached = await _detached(connection, table, declared)
            stray = [await _stray(connection, one) for one in known if one.is_default]
    except StoreUnavailable:
        raise
    except FaenaError as error:
        return _made(declared, (), None, (str(error),))
    problems = [*_problems(declared, known, now.date()), *stray]
    runway = _runway(known, now)
    return _made(declared, (*map(_shown, known), *detached), runway, tuple(problems))


async def server_time(connection: Connection) -> datetime:
    """In UTC, without a zone, as bounds are."""
    found = await connection.execute("SELECT now() AT TIME ZONE 'UTC'")
    (now,) = await found.fetchone() or (datetime.now(UTC).replace(tzinfo=None),)
    return now


def _made(
    declared: Declaration,
    partitions: tuple[PartitionView, ...],
    runway: datetime | None,
    problems: tuple[str, ...],
) -> TableView:
    return TableView(
        table=str(declared.table),
        by=declared.by,
        every=declared.every,
        ahead=declared.ahead,
        partitions=partitions,
        runway=_zoned(runway),
        problems=problems,
    )


def _shown(one: Partition) -> PartitionView:
    return PartitionView(
        name=one.name,
        start=_zoned(one.low),
        end=_zoned(one.high),
        rows=None if one.rows < 0 else one.rows,
        size=one.size,
        is_attached=not one.is_detaching,
    )


def _zoned(at: datetime | None) -> datetime | None:
    return None if at is None else at.replace(tzinfo=UTC)


async def _detached(
    connection: Connection, table: Table, declared: Declaration
) -> list[PartitionView]:
    """Tables beside it with the name of one of its partitions."""
    sample = partition_name(table.name, period_of(date(2000, 1, 1), declared.every), declared.every)
    stem = sample.removesuffix(suffix(period_of(date(2000, 1, 1), declared.every), declared.every))
    rows = await (await connection.execute(_DETACHED, [table.schema, f"{stem}_"])).fetchall()
    found: list[PartitionView] = []
    for name, estimate, size in rows:
        period = period_named(name, declared.every)
        if period is not None and name == partition_name(table.name, period, declared.every):
            found.append(
                PartitionView(
                    name=name,
                    start=_zoned(period.starts_at),
                    end=_zoned(period.ends_at),
                    rows=None if estimate < 0 else estimate,
                    size=size,
                    is_attached=False,
                )
            )
    return found


def _runway(known: list[Partition], now: datetime) -> datetime | None:
    """Until when each instant from now on has a partition."""
    until: datetime | None = None
    for one in known:
        if one.is_default or one.is_detaching or (one.high is not None and one.high <= now):
            continue
        begins = one.low is None or one.low <= (until or now)
        if not begins:
            break
        if one.high is None:
            return datetime.max  # noqa: DTZ901 - in UTC, as all bounds
        until = one.high
    return until


def _problems(declared: Declaration, known: list[Partition], today: date) -> Iterator[str]:
    wanted = ahead_of(today, declared.every, declared.ahead)
    attached = [one for one in known if not one.is_default and not one.is_detaching]
    missing = [one for one in wanted if not any(part.overlaps(one) for part in attached)]
    if wanted[0] in missing:
        yield f"no partition for now: rows of {wanted[0]} are refused"
    runway = _runway(known, datetime.combine(today, datetime.min.time()))
    least = wanted[declared.least].start
    if runway is None or runway.date() <= least:
        until = "now" if runway is None else str(runway.date())
        yield f"short runway: partitions until {until}, wanted until {wanted[-1].end}"
    yield from _gaps(attached)
    for one in known:
        if one.is_detaching:
            yield f"{one.name} is being detached: detach it again to end that"
        if one.is_default:
            yield f"there is a default partition, {one.name}"


def _gaps(attached: list[Partition]) -> Iterator[str]:
    for before, after in pairwise(attached):
        if before.high is not None and after.low is not None and before.high < after.low:
            yield f"gap: no partition from {before.high.date()} to {after.low.date()}"


async def _stray(connection: Connection, default: Partition) -> str:
    """Rows that no partition is for."""
    found = await connection.execute(
        sql.SQL("SELECT count(*) FROM (SELECT FROM {} LIMIT 1000) AS few").format(
            default.identifier
        )
    )
    row = await found.fetchone()
    number = row[0] if row else 0
    more = " or more" if number == 1000 else ""
    return f"{number}{more} rows beyond the partitions, in {default.name}"
