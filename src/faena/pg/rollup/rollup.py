"""A declared roll-up: computes one period, or all of a range, and shows how far it is.

A period is deleted and computed again in one transaction, by one process at a time. So it can be
run twice, at once, or be killed anywhere: the rows are those of the last run that committed.

Everything is read on the primary. The rows and their aggregates then have one snapshot; a replica
may lack what was committed last, and nothing would tell which rows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, timedelta
from typing import TYPE_CHECKING, Final

from psycopg import sql

from faena.errors import ArgumentError, StoreRejected, shown
from faena.pg.partition.catalog import in_utc
from faena.pg.partition.interval import Period, check_day, periods
from faena.pg.partition.view import server_time
from faena.pg.rollup.declaration import Declaration
from faena.pg.rollup.target import Target, prepare, removed_day, sealed_before, selected
from faena.pg.rollup.view import RollupProgress, RollupView, view

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres

_ALL_ROWS: Final = "SET LOCAL row_security TO off"
"""Row level security that would hide rows is an error: the sums would lack them."""
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('faena.rollup ' || %s, 0))"
_BEGIN: Final = """
    UPDATE faena.rollups SET backfill_first = %(first)s, backfill_last = %(last)s,
        backfill_next = CASE WHEN backfill_first = %(first)s AND backfill_last = %(last)s
            AND backfill_next IS NOT NULL THEN backfill_next ELSE %(first)s END
    WHERE name = %(name)s RETURNING backfill_next
"""
_ADVANCE: Final = """
    UPDATE faena.rollups SET backfill_next = nullif(greatest(backfill_next, %(next)s), %(end)s)
    WHERE name = %(name)s AND backfill_first = %(first)s AND backfill_last = %(last)s
        AND backfill_next IS NOT NULL
"""
_READS: Final = """
    UPDATE faena.rollups SET source = %(source)s, by_column = %(by)s WHERE name = %(name)s
        AND (source, by_column) IS DISTINCT FROM (%(source)s::text, %(by)s::text)
"""
"""For whoever removes rows."""


class Rollup:
    """One declared roll-up."""

    def __init__(self, pg: Postgres, declared: Declaration) -> None:
        self._pg, self.declared = pg, declared

    @property
    def name(self) -> str:
        """As it was declared."""
        return str(self.declared.name)

    async def run(self, day: date | None = None) -> Period:
        """Compute the period that contains a day, by default the current one, anew."""
        async with self._pg.transaction("rollup") as connection:
            target = await self._prepare(connection)
            wanted = check_day("day", day) if day is not None else await self._today(connection)
            period = self.declared.period(wanted)
            await self._compute(connection, target, period)
        return period

    async def run_recent(self) -> list[Period]:
        """Compute the current period and those before it that may have got late rows."""
        async with self._pg.transaction("rollup") as connection:
            target = await self._prepare(connection)
            recent = [self.declared.period(await self._today(connection))]
            await self._refuse_removed(connection, target, recent[0])
            sealed = await self._sealed(connection, target)
        for _ in range(self.declared.again):
            recent.append(self.declared.period(recent[-1].start - timedelta(days=1)))
        done = [one for one in reversed(recent) if sealed is None or one.start >= sealed]
        for period in done:
            await self.run(period.start)
        return done

    async def backfill(
        self,
        first: date,
        last: date,
        report: Callable[[RollupProgress], None] | None = None,
    ) -> RollupProgress:
        """Compute all periods from the one of `first` to the one of `last`.

        If it was interrupted, the same call goes on where it ended.
        """
        if report is not None and not callable(report):
            raise ArgumentError(
                f"report must be a function that takes the progress, got {shown(report)}",
                field="report",
                value=report,
            )
        whole = self._range(first, last)
        name, pending = await self._begin(whole)
        progress = RollupProgress(whole[-1].start, len(whole) - len(pending), len(whole))
        for period in pending:
            await self._step(name, period, whole)
            progress = RollupProgress(period.start, progress.done + 1, len(whole))
            if report is not None:
                report(progress)
        return progress

    async def seal(self, before: date) -> None:
        """Never compute periods again that begin before a day: their rows may be deleted then.

        A seal is only moved forwards.
        """
        day = check_day("before", before)
        async with self._pg.transaction("rollup") as connection:
            target = await self._prepare(connection)
            await connection.execute(
                "UPDATE faena.rollups SET sealed_before = greatest(sealed_before, %s) "
                "WHERE name = %s",
                [day, str(target.table)],
            )

    async def view(self) -> RollupView:
        """What its table has, how far a back-fill is, and what is wrong."""
        return await view(self._pg, self.declared)

    # -- one period -------------------------------------------------------------------------------

    async def _prepare(self, connection: Connection) -> Target:
        """One process at a time; what it sees includes the run that had the lock before."""
        await connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        await in_utc(connection)
        await connection.execute(_LOCK, [self.declared.name.table])
        target = await prepare(connection, self.declared)
        await connection.execute(_ALL_ROWS)
        reads = {"source": str(target.source), "by": self.declared.by, "name": str(target.table)}
        await connection.execute(_READS, reads)
        return target

    async def _compute(self, connection: Connection, target: Target, period: Period) -> None:
        """Rows may leave between the look at the seal and their sum: so it is looked at again."""
        await self._refuse_sealed(connection, target, period)
        await self._replace(connection, target, period)
        await self._refuse_sealed(connection, target, period)

    async def _replace(self, connection: Connection, target: Target, period: Period) -> None:
        day, of = sql.Literal(period.start), sql.Identifier(self.declared.every)
        await connection.execute(
            sql.SQL("DELETE FROM {} WHERE {} = {}").format(target.table.identifier, of, day)
        )
        query = selected(self.declared, target.source, day, self._within(target, period))
        await connection.execute(
            sql.SQL("INSERT INTO {} {}").format(target.table.identifier, query)
        )
        await connection.execute(
            "UPDATE faena.rollups SET ran_at = clock_timestamp() WHERE name = %s",
            [str(target.table)],
        )

    def _within(self, target: Target, period: Period) -> sql.Composed:
        low, high = self.declared.bounds(period)
        bounds: tuple[date, date] = (low, high)
        if target.type_ == "date":
            bounds = (period.start, period.end)
        elif target.type_ == "timestamp without time zone":
            bounds = (low.replace(tzinfo=None), high.replace(tzinfo=None))
        return sql.SQL("{by} >= {low} AND {by} < {high}").format(
            by=sql.Identifier(self.declared.by),
            low=sql.Literal(bounds[0]),
            high=sql.Literal(bounds[1]),
        )

    async def _today(self, connection: Connection) -> date:
        return self.declared.today((await server_time(connection)).replace(tzinfo=UTC))

    async def _sealed(self, connection: Connection, target: Target) -> date | None:
        """Periods that begin earlier are not computed: they are sealed, or rows of them left."""
        return await sealed_before(connection, self.declared, target.source, target.table)

    async def _refuse_sealed(self, connection: Connection, target: Target, period: Period) -> None:
        await self._refuse_removed(connection, target, period)
        sealed = await self._sealed(connection, target)
        if sealed is not None and period.start < sealed:
            raise StoreRejected(
                f"the {self.declared.every} of {period.start} must not be computed again: {self} "
                f"is sealed before {sealed}, because rows of {target.source} may be gone",
                op="rollup",
            )

    async def _refuse_removed(self, connection: Connection, target: Target, period: Period) -> None:
        gone = await removed_day(connection, self.declared, target.source)
        if gone is not None and period.start < gone:
            raise StoreRejected(
                f"the {self.declared.every} of {period.start} must not be computed again: the "
                f"retention of {target.source} has removed rows of it; compute periods from {gone} "
                f"on, or keep rows for longer than {self} needs them",
                op="rollup",
            )

    # -- a range ----------------------------------------------------------------------------------

    def _range(self, first: date, last: date) -> list[Period]:
        begin, end = check_day("first", first), check_day("last", last)
        if begin > end:
            raise ArgumentError(
                f"first must not be after last, got {begin} and {end}", field="first", value=first
            )
        return [*periods(begin, end, self.declared.every)]

    async def _begin(self, whole: list[Period]) -> tuple[str, list[Period]]:
        """The record of the range, and the periods of it that are still to be computed."""
        async with self._pg.transaction("rollup") as connection:
            target = await self._prepare(connection)
            await self._refuse_sealed(connection, target, whole[0])
            found = await connection.execute(_BEGIN, _marks(str(target.table), whole))
            row = await found.fetchone()
        following = row[0] if row else whole[0].start
        return str(target.table), [one for one in whole if one.start >= following]

    async def _step(self, name: str, period: Period, whole: list[Period]) -> None:
        async with self._pg.transaction("rollup") as connection:
            target = await self._prepare(connection)
            await self._compute(connection, target, period)
            await connection.execute(_ADVANCE, {**_marks(name, whole), "next": period.end})

    def __str__(self) -> str:
        return f"roll-up {self.name}"

    def __repr__(self) -> str:
        return f"<Rollup {self.name} of {self.declared.of} by {self.declared.every}>"


def _marks(name: str, whole: list[Period]) -> dict[str, object]:
    return {
        "name": name,
        "first": whole[0].start,
        "last": whole[-1].start,
        "end": whole[-1].end,
    }
