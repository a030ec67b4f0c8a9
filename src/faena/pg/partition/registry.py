"""The partitioned tables that a program declares in its PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, cast

from faena.app import Faena
from faena.errors import ConfigError, FaenaError, StoreUnavailable, nearest, shown
from faena.options.fields import check_is
from faena.pg.conversion.conversion import Conversion
from faena.pg.partition.declaration import Columns, declaration
from faena.pg.partition.interval import Every
from faena.pg.partition.name import read_name
from faena.pg.partition.table import PartitionedTable
from faena.pg.partition.upkeep import Upkeep
from faena.pg.partition.view import TableView
from faena.values.keywords import known_keywords

if TYPE_CHECKING:
    from faena.pg.postgres import Postgres


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensured:
    """What a run over all declared tables did."""

    made: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """New partitions and indexes, by table."""
    problems: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Why a table was left as it is."""


class Partitioned:
    """The part of a PostgreSQL that knows its partitioned tables."""

    def __init__(self, app: Faena) -> None:
        check_is("app", app, Faena)
        self.app = app
        self.partitioned_tables: dict[str, PartitionedTable] = {}

    @known_keywords("partitioned")
    def partitioned(
        self,
        table: str,
        *,
        by: str = "created_at",
        every: Every,
        ahead: int | None = None,
        tenant: str | None = None,
        indexes: Sequence[Columns] = (),
    ) -> PartitionedTable:
        """Declare a table with one partition for each month, week or day; opens no connection.

        `by` is the column that decides. `ahead` is how many periods after the current one have
        partitions: 3 months, 12 weeks or 90 days by default. `tenant` adds an index on
        (tenant, by), `indexes` adds others. The app gets a weekly job that creates partitions.
        """
        declared = declaration(
            table, by=by, every=every, ahead=ahead, tenant=tenant, indexes=indexes
        )
        if str(declared.table) in self.partitioned_tables:
            raise ConfigError(
                f"table {declared.table} is declared twice", field="table", value=table
            )
        Upkeep.of(self.app).join(self)
        made = PartitionedTable(cast("Postgres", self), declared)
        self.partitioned_tables[made.name] = made
        return made

    def partitioned_table(self, name: str) -> PartitionedTable:
        """A declared table by its name."""
        found = self.partitioned_tables.get(name)
        if found is None:
            raise ConfigError(
                f"table must be one that is declared with pg.partitioned, got {shown(name)}; "
                f"{nearest(name, self.partitioned_tables)}",
                field="table",
                value=name,
            )
        return found

    async def partitions(self, *, at: datetime | None = None) -> list[TableView]:
        """The partitions of each declared table, until when they last, and what is wrong."""
        return [await one.view(at=at) for one in self.partitioned_tables.values()]

    async def ensure_partitions(self, *, at: datetime | None = None) -> Ensured:
        """Create what is missing in all declared tables; one that is refused stops no other."""
        found = Ensured()
        for name, table in self.partitioned_tables.items():
            try:
                found.made[name] = await table.ensure(at=at)
            except StoreUnavailable as error:
                if not isinstance(error.__cause__, FaenaError):  # no lock, but the server
                    raise
                found.problems[name] = [str(error)]
            except FaenaError as error:
                found.problems[name] = [str(error)]
        return found

    @known_keywords("convert")
    def convert(
        self,
        table: str,
        *,
        by: str = "created_at",
        every: Every | None = None,
        ahead: int | None = None,
        tenant: str | None = None,
        indexes: Sequence[Columns] = (),
    ) -> Conversion:
        """The conversion of a plain table into a partitioned one; begin it with `run()`.

        A table that is declared with `partitioned` is converted as declared; for others the
        arguments are those of `partitioned`.
        """
        known = self.partitioned_tables.get(table)
        if known is not None and every is None:
            return Conversion(cast("Postgres", self), known.declared.table, known.declared)
        if every is None:
            raise ConfigError(
                f"every must be given for a table that is not declared with pg.partitioned, got "
                f"{shown(table)}; {nearest(table, self.partitioned_tables)}",
                field="every",
            )
        given = declaration(table, by=by, every=every, ahead=ahead, tenant=tenant, indexes=indexes)
        return Conversion(cast("Postgres", self), given.table, given)

    def conversion(self, table: str) -> Conversion:
        """The conversion of a table that was begun, as it was begun."""
        return Conversion(cast("Postgres", self), read_name(table))
