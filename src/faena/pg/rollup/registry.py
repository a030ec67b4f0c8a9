"""The roll-ups that a program declares in its PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from faena.errors import ConfigError, FaenaError, StoreUnavailable, nearest, shown
from faena.pg.partition.interval import Every
from faena.pg.rollup.declaration import declaration
from faena.pg.rollup.rollup import Rollup
from faena.pg.rollup.upkeep import RollupUpkeep
from faena.pg.rollup.view import RollupView
from faena.values.keywords import known_keywords

if TYPE_CHECKING:
    from faena.app import Faena
    from faena.pg.postgres import Postgres


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledUpPeriods:
    """What a run over all declared roll-ups did."""

    ran: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The first days of the periods that were computed, by roll-up."""
    problems: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Why a roll-up was not run."""


class RolledUp:
    """The part of a PostgreSQL that knows its roll-ups."""

    app: Faena

    def __init__(self) -> None:
        self.declared_rollups: dict[str, Rollup] = {}

    @known_keywords("rollup")
    def rollup(
        self,
        name: str,
        *,
        of: str,
        by: str = "created_at",
        every: Every,
        group: Sequence[str] = (),
        measures: Mapping[str, str],
        tz: str = "UTC",
        again: int | None = None,
    ) -> Rollup:
        """Declare aggregates of a table by day, week or month; opens no connection.

        They are kept in the table `name`, made by the first run: the first day of the period, the
        columns of `group`, and one column for each of `measures`, which are SQL aggregates. Periods
        begin at midnight in `tz`. The app gets a daily job that computes the current period and
        `again` periods before it: 2 days, 1 week or 1 month by default.
        """
        declared = declaration(
            name, of=of, by=by, every=every, group=group, measures=measures, tz=tz, again=again
        )
        if str(declared.name) in self.declared_rollups:
            raise ConfigError(
                f"roll-up {declared.name} is declared twice", field="name", value=name
            )
        RollupUpkeep.of(self.app).join(self)
        made = Rollup(cast("Postgres", self), declared)
        self.declared_rollups[made.name] = made
        return made

    def declared_rollup(self, name: str) -> Rollup:
        """A declared roll-up by its name."""
        found = self.declared_rollups.get(name)
        if found is None:
            raise ConfigError(
                f"roll-up must be one that is declared with pg.rollup, got {shown(name)}; "
                f"{nearest(name, self.declared_rollups)}",
                field="name",
                value=name,
            )
        return found

    async def rollups(self) -> list[RollupView]:
        """Each declared roll-up: what its table has, and what is wrong."""
        return [await one.view() for one in self.declared_rollups.values()]

    async def run_rollups(self) -> RolledUpPeriods:
        """Compute the recent periods of all; one that is refused stops no other."""
        found = RolledUpPeriods()
        for name, one in self.declared_rollups.items():
            try:
                found.ran[name] = [str(period.start) for period in await one.run_recent()]
            except StoreUnavailable:
                raise
            except FaenaError as error:
                found.problems[name] = [str(error)]
        return found
