"""The retention that a program declares for the tables in its PostgreSQL."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from faena.app import Faena
from faena.errors import ArgumentError, ConfigError, FaenaError, nearest, shown
from faena.pg.archive.archiver import Report
from faena.pg.archive.catalogue import State, Wanted, known_tables, read_entries
from faena.pg.archive.check import Check, Checked
from faena.pg.archive.policy import Aggregate, Archive, Policy, Then, policy
from faena.pg.archive.protection import lower_protection
from faena.pg.archive.restore import Restoration, Restored
from faena.pg.archive.run import Archived, Run
from faena.pg.archive.schedule import Daily
from faena.pg.archive.store import ObjectStore, open_store
from faena.pg.archive.term import FOREVER, Given, Term, is_shorter, read_term
from faena.pg.archive.view import (
    ArchiveView,
    LeavingView,
    RetentionView,
    archive_view,
    leaving_views,
    retention_view,
)
from faena.pg.failure import is_unreachable
from faena.pg.partition.catalog import Table, find_table
from faena.pg.partition.interval import Every, check_instants
from faena.pg.partition.name import Name, read_name
from faena.pg.partition.registry import Partitioned
from faena.pg.partition.table import PartitionedTable
from faena.values.duration import Duration, to_s
from faena.values.keywords import known_keywords

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres

LEASE: Final = "1m"
"""After so long without a sign of life, another process takes over."""


class KnownStores:
    """The stores of a program, by address: that of the catalogue has no credentials in it."""

    def __init__(self, directory: Path) -> None:
        self._default = directory / "archives"
        self._archives: list[Archive] = [Archive()]
        self._known: dict[Archive, ObjectStore] = {}

    def add(self, archive: Archive) -> None:
        """Know where a policy archives to; the environment is read later."""
        self._archives.append(archive)

    def of(self, archive: Archive) -> ObjectStore:
        """The store of a policy."""
        if archive not in self._known:
            self._known[archive] = open_store(archive.to, default=self._default)
        return self._known[archive]

    def at(self, url: str) -> ObjectStore:
        """The store that the catalogue names."""
        for one in map(self.of, self._archives):
            if one.url == url:
                return one
        return open_store(url)


class Retained(Partitioned):
    """The part of a PostgreSQL that knows how long rows are kept."""

    def __init__(self, app: Faena) -> None:
        super().__init__(app)
        self.retentions: dict[str, Policy] = {}
        self.stores = KnownStores(Path(app.directory))

    @known_keywords("retain")
    def retain(
        self,
        table: str,
        *,
        keep: Given,
        by: str | None = None,
        legal: Given | None = None,
        tenant: str | None = None,
        then: Then | None = None,
        aggregate: Aggregate | None = None,
        every: Every = "day",
    ) -> Policy:
        """Declare how long rows of a table are kept, and what happens then; opens no connection.

        `keep` is a term such as "90d", "6mo" or "2y", or FOREVER; `legal` the least that a law
        demands. `by` is the column that tells how old a row is, `tenant` the column of the tenant;
        both are those of `pg.partitioned` unless given. `then` is `Archive()`, "delete" or
        "detach". `aggregate` computes something from rows as they are deleted. Rows of a table
        without partitions leave in whole periods of `every`. The app gets a daily job.
        """
        known = self.partitioned_tables.get(table)
        _check_by(known, by)
        at, whose = (known.declared.by, known.declared.tenant) if known else ("created_at", None)
        given = {"keep": keep, "legal": legal, "then": then, "aggregate": aggregate, "every": every}
        given |= {"by": at if by is None else by, "tenant": whose if tenant is None else tenant}
        made = policy(table, given)
        if str(made.table) in self.retentions:
            raise ConfigError(
                f"retention of {made.table} is declared twice", field="table", value=table
            )
        self.retentions[str(made.table)] = made
        if isinstance(made.then, Archive):
            self.stores.add(made.then)
        Daily.of(self.app).join(self)
        return made

    def retention(self, table: str) -> Policy:
        """A declared policy by its table."""
        found = self.retentions.get(table)
        if found is None:
            raise ConfigError(
                f"table must be one that is declared with pg.retain, got {shown(table)}; "
                f"{nearest(table, self.retentions)}",
                field="table",
                value=table,
            )
        return found

    # -- runs -------------------------------------------------------------------------------------

    def _run(self, policy: Policy, at: datetime | None, lease: Duration = LEASE) -> Run:
        if at is not None and at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        lease_s = to_s("lease", lease)
        return Run(cast("Postgres", self), policy, self.stores, lease_s=lease_s, at=at)

    async def archive(
        self,
        table: str | None = None,
        *,
        report: Report | None = None,
        at: datetime | None = None,
        lease: Duration = LEASE,
    ) -> list[Archived]:
        """Move the rows that are old enough, of one table or of all.

        One table that fails keeps no other from it: see `problem`. `at` is the current time, by
        default the server's, and never later than that. May be interrupted at any moment and run
        again.
        """
        chosen = [self.retention(table)] if table else list(self.retentions.values())
        done: list[Archived] = []
        for one in chosen:
            run = self._run(one, at, lease)
            try:
                done.append(await run.run(report))
            except FaenaError as error:
                if is_unreachable(error):
                    raise
                done.append(run.failed(str(error)))
        return done

    async def retention_views(self, *, at: datetime | None = None) -> list[RetentionView]:
        """Each policy: what waits for the next run, what was archived, what is wrong."""
        pg = self._connected()
        return [
            await retention_view(pg, one, self._run(one, at)) for one in self.retentions.values()
        ]

    async def leaving(self, table: str, *, at: datetime | None = None) -> list[LeavingView]:
        """What the next run would move, with estimated numbers of rows; changes nothing."""
        policy = self.retention(table)
        return await leaving_views(policy, self._run(policy, at))

    async def lower_protection(self, table: str, to: Given | None) -> str:
        """Allow what the recorded legal minimum of a table forbids; returns schema.table.

        It is raised again by a program that declares more.
        """
        term = None if to is None else read_term("to", to)
        async with self._connected().transaction("archive") as connection:
            found = await find_table(connection, read_name(table))
            await _refuse_higher(connection, found, term)
            await lower_protection(connection, found, term)
        return str(found)

    def _connected(self) -> Postgres:
        return cast("Postgres", self)

    # -- archives ---------------------------------------------------------------------------------

    async def _wanted(self, table: str, given: dict[str, Any]) -> Wanted:
        """The table of a policy by its name; of one that is gone, schema.table."""
        check_instants(given.get("since"), given.get("until"))
        async with self._connected().transaction("archive") as connection:
            try:
                name = str(await find_table(connection, read_name(table)))
            except ArgumentError:
                read = read_name(table)
                name = str(Name(read.schema or "public", read.table))
            known = await known_tables(connection, name)
        if table not in self.retentions and name not in known:
            raise ArgumentError(
                f"table must be one that has a retention or archives, got {shown(table)}; "
                f"{nearest(table, {*self.retentions, *known})}",
                field="table",
                value=table,
            )
        return Wanted(name, **given)

    async def _retention_of(self, name: str) -> Policy | None:
        """The policy of schema.table, however the program has written it."""
        async with self._connected().transaction("archive") as connection:
            for one in self.retentions.values():
                with suppress(ArgumentError):
                    if str(await find_table(connection, one.table)) == name:
                        return one
        return None

    async def archives(
        self,
        table: str,
        *,
        tenant: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        states: tuple[State, ...] = ("archived",),
    ) -> list[ArchiveView]:
        """The objects of a table, of one tenant, with rows between two instants."""
        given = {"tenant": tenant, "since": since, "until": until, "states": states}
        wanted = await self._wanted(table, given)
        async with self._connected().transaction("archive") as connection:
            return [archive_view(one) for one in await read_entries(connection, wanted)]

    async def verify_archives(self, table: str, *, tenant: str | None = None) -> Checked:
        """Read all objects back and compare them with the catalogue."""
        wanted = await self._wanted(table, {"tenant": tenant})
        found = await Check(self._connected(), self.stores).run(wanted)
        if tenant is not None and not (found.objects or found.problems):
            raise ArgumentError(
                f"tenant must be one that has archives of {wanted.table}, got {shown(tenant)}",
                field="tenant",
                value=tenant,
            )
        return found

    async def restore(
        self,
        table: str,
        *,
        into: str | None = None,
        tenant: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Restored:
        """Bring rows back: whole objects, into the table or into another of the same shape.

        Rows that are there already are left as they are. Rows that are restored into their own
        table are no longer in the archive.
        """
        wanted = await self._wanted(table, {"tenant": tenant, "since": since, "until": until})
        target = policy(into or table, {**_ANY, "by": "created_at"})
        known = await self._retention_of(wanted.table)
        cutoff = None if known is None else await self._run(known, None).cutoff()
        return await Restoration(self._connected(), self.stores, target, cutoff).run(wanted)


async def _refuse_higher(
    connection: Connection, table: Table, to: Term | Literal["forever"] | None
) -> None:
    rows = await connection.execute(
        "SELECT legal FROM faena.retentions WHERE table_name = %s"
        " OR %s::oid = ANY(relations) AND home = 'faena.retentions'::regclass",
        [str(table), table.oid],
    )
    for (legal,) in await rows.fetchall():
        known = None if legal is None else read_term("legal", legal)
        if to is not None and (known is None or is_shorter(known, to)):
            raise ArgumentError(
                f"to must not be longer than the recorded {known or 'protection, which is none'}, "
                f"got {to}: declare `pg.retain(…, legal=…)` to raise it",
                field="to",
                value=str(to),
            )


def _check_by(known: PartitionedTable | None, by: str | None) -> None:
    """Rows leave with their partitions, so the same column must decide."""
    if known is not None and by not in {None, known.declared.by}:
        raise ConfigError(
            f"by of {known.name} must be {known.declared.by}, the column of its partitions, got "
            f"{shown(by)}",
            field="by",
            value=by,
        )


_ANY: Final[dict[str, Any]] = {
    "keep": FOREVER,
    "legal": None,
    "tenant": None,
    "then": None,
    "aggregate": None,
    "every": "day",
}
