"""What programs and people see of retention: policies, what waits, and objects."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from faena.errors import FaenaError, StoreUnavailable
from faena.pg.archive.catalogue import Entry
from faena.pg.archive.policy import Archive, Policy
from faena.pg.archive.run import Run
from faena.pg.partition.catalog import in_utc
from faena.values.view import View

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres

_TOTALS: Final = """
    SELECT coalesce(sum(rows), 0)::bigint, count(*), coalesce(sum(size), 0)::bigint
    FROM faena.archives WHERE table_name = %s AND state = 'archived'
"""
_LAST: Final = """
    SELECT step, rows, problem, started_at, ended_at FROM faena.archive_runs WHERE table_name = %s
"""


class ArchiveView(View, frozen=True, kw_only=True):
    """One object of an archive."""

    id: int
    table: str
    tenant: str | None
    start: datetime
    """The period of its rows."""
    end: datetime
    first_at: datetime
    """The time of its oldest row."""
    last_at: datetime
    rows: int
    size: int
    """In bytes, compressed."""
    sha256: str
    store: str
    key: str
    state: str


class RunView(View, frozen=True, kw_only=True):
    """The last run on a table, or the one that is under way."""

    step: str
    rows: int
    """That have left so far."""
    problem: str | None
    started_at: datetime
    ended_at: datetime | None
    """None while it runs, or if it died."""


class RetentionView(View, frozen=True, kw_only=True):
    """A policy, and how far it is carried out."""

    table: str
    keep: str
    legal: str | None
    """The legal minimum."""
    then: str
    """What happens to older rows: archive, delete, detach or keep."""
    by: str
    tenant: str | None
    cutoff: datetime | None
    """Rows before it leave; None if they are kept for ever."""
    waiting: tuple[str, ...]
    """Partitions, or periods of a table without partitions, that leave with the next run."""
    rows: int
    """In archives."""
    objects: int
    size: int
    """Of all objects in bytes."""
    last_run: RunView | None
    problems: tuple[str, ...]
    """Why rows of this table cannot leave."""


class LeavingView(View, frozen=True, kw_only=True):
    """A partition, or a period of a table without partitions, that leaves with the next run."""

    table: str
    name: str
    """Of the partition, or the period."""
    start: datetime
    end: datetime
    rows: int
    """About how many, as the planner of PostgreSQL thinks."""
    then: str
    """What happens to them: archive, delete or detach."""


def archive_view(entry: Entry) -> ArchiveView:
    """One object as it is shown."""
    names = ArchiveView.__struct_fields__
    return ArchiveView(**{name: getattr(entry, name) for name in names})


async def retention_view(pg: Postgres, policy: Policy, run: Run) -> RetentionView:
    """What is wrong with a table is told as a problem, not raised."""
    problems: tuple[str, ...] = ()
    name, cutoff, waiting = str(policy.table), None, ()
    try:
        source, cutoff, units = await run.plan()
        name = source.name
        waiting = tuple(one.name if source.is_partitioned else str(one.unit) for one in units)
    except StoreUnavailable:
        raise
    except FaenaError as error:
        problems = (str(error),)
    async with pg.transaction("archive") as connection:
        rows, objects, size = await _totals(connection, name)
        last = await _last(connection, name)
    return RetentionView(
        table=str(policy.table),
        keep=str(policy.keep),
        legal=None if policy.legal is None else str(policy.legal),
        then=then_word(policy),
        by=policy.by,
        tenant=policy.tenant,
        cutoff=cutoff,
        waiting=waiting,
        rows=rows,
        objects=objects,
        size=size,
        last_run=last,
        problems=problems,
    )


async def leaving_views(policy: Policy, run: Run) -> list[LeavingView]:
    """What a run would move now; refused as the run would be."""
    source, _, units = await run.plan()
    numbers = await run.estimates(source, units)
    return [
        LeavingView(
            table=str(policy.table),
            name=one.name if source.is_partitioned else str(one.unit),
            start=one.unit.start,
            end=one.unit.end,
            rows=number,
            then=then_word(policy),
        )
        for one, number in zip(units, numbers, strict=True)
    ]


def then_word(policy: Policy) -> str:
    """What happens to older rows."""
    if isinstance(policy.then, Archive):
        return "archive"
    return policy.then or "keep"


async def _totals(connection: Connection, table: str) -> tuple[int, int, int]:
    row = await (await connection.execute(_TOTALS, [table])).fetchone()
    return (0, 0, 0) if row is None else (row[0], row[1], row[2])


async def _last(connection: Connection, table: str) -> RunView | None:
    await in_utc(connection)
    row = await (await connection.execute(_LAST, [table])).fetchone()
    if row is None:
        return None
    step, rows, problem, started_at, ended_at = row
    return RunView(step=step, rows=rows, problem=problem, started_at=started_at, ended_at=ended_at)
