"""What a program says about a partitioned table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, get_args

from faena.errors import ConfigError, nearest, shown
from faena.pg.partition.interval import AHEAD, Every
from faena.pg.partition.name import Name, check_column, read_name
from faena.values.numbers import check_whole

Columns: TypeAlias = str | Sequence[str]

_MOST: Final[dict[Every, int]] = {"month": 120, "week": 520, "day": 1000}
_SLACK: Final[dict[Every, int]] = {"month": 1, "week": 2, "day": 14}
"""What passes while two weekly runs are missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A table, the column and interval of its partitions, and what each of them has."""

    table: Name
    """The table, `name` or `schema.name`."""
    by: str
    """The column that decides the partition: a date or a timestamp."""
    every: Every
    """The time that one partition covers: month, week (from Monday) or day."""
    ahead: int
    """How many periods after the current one have partitions."""
    tenant: str | None
    """The column of the tenant; with it, there is an index on (tenant, by)."""
    indexes: tuple[tuple[str, ...], ...]
    """Columns of each index that all partitions must have, beside those the table has."""

    @property
    def least(self) -> int:
        """With fewer periods ahead than this, the runway is short."""
        return max(1, self.ahead - _SLACK[self.every])

    def __str__(self) -> str:
        return str(self.table)


def declaration(
    table: Any,
    *,
    by: Any = "created_at",
    every: Any,
    ahead: Any = None,
    tenant: Any = None,
    indexes: Any = (),
) -> Declaration:
    """Check what a program says."""
    name, interval = read_name(table), check_every(every)
    column = check_column("by", by)
    of_tenant = None if tenant is None else check_column("tenant", tenant)
    wanted = [] if of_tenant is None else [(of_tenant, column)]
    wanted += [one for one in _indexes(indexes) if one not in wanted]
    return Declaration(
        table=name,
        by=column,
        every=interval,
        ahead=AHEAD[interval]
        if ahead is None
        else check_whole("ahead", ahead, least=1, most=_MOST[interval]),
        tenant=of_tenant,
        indexes=tuple(wanted),
    )


def check_every(value: Any) -> Every:
    """The name of an interval."""
    valid: tuple[Every, ...] = get_args(Every)
    for one in valid:
        if value == one:
            return one
    raise ConfigError(
        f"every must be month, week or day, got {shown(value)}; {nearest(value, valid)}",
        field="every",
        value=value,
    )


def _indexes(value: Any) -> list[tuple[str, ...]]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigError(
            f"indexes must be a list of columns or of lists of columns, got {shown(value)}",
            field="indexes",
            value=value,
        )
    found: list[tuple[str, ...]] = []
    for one in value:
        columns: Any = [one] if isinstance(one, str) else one
        if not isinstance(columns, list | tuple) or not columns:
            raise ConfigError(
                f"each index must be one or more names of columns, got {shown(one)}",
                field="indexes",
                value=one,
            )
        found.append(tuple(check_column("indexes", column) for column in columns))
    return found
