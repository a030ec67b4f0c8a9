"""What a program says about how long the rows of a table are kept, and what happens then."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, get_args

from faena.errors import ConfigError, nearest, shown
from faena.pg.archive.store import Bucket, read_place
from faena.pg.archive.term import FOREVER, Term, is_shorter, read_term
from faena.pg.partition.interval import Every
from faena.pg.partition.name import Name, check_column, read_name
from faena.values.numbers import check_whole

if TYPE_CHECKING:
    from faena.pg.postgres import Connection

EXPIRED: Final = "faena_expired"
"""The view of the rows that are about to be deleted, for what is computed from them before."""


class Expired(NamedTuple):
    """Rows that are about to be deleted in this transaction; read them from `faena_expired`."""

    table: str
    start: datetime
    """The period that they are from: a partition's, or a day, …"""
    end: datetime
    """… and the first instant after it."""


Aggregate: TypeAlias = "str | Callable[[Connection, Expired], Awaitable[object]]"
"""SQL that reads `faena_expired`, or an async function with the transaction and the period."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """Rows are exported, read back and compared before they are deleted."""

    to: str | Path | Bucket | None = None
    """A directory, `s3://bucket/prefix` or a Bucket. None: FAENA_ARCHIVE_URL, else `archives` in
    the app's directory."""
    rows: int = 20_000
    """The most rows that are exported, compared and deleted together."""
    size: int = 16 << 20
    """The most bytes of lines that are held in memory; one row that is larger is still exported."""

    def __post_init__(self) -> None:
        if self.to is not None:
            read_place(self.to)
        check_whole("rows", self.rows, least=1, most=1_000_000)
        check_whole("size", self.size, least=1 << 10, most=1 << 30)


Then: TypeAlias = Archive | Literal["delete", "detach"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How long the rows of one table are kept."""

    table: Name
    """The table, `name` or `schema.name`."""
    keep: Term | Literal["forever"]
    """How long rows stay in the table, at least."""
    by: str
    """The column that tells how old a row is: a date or a timestamp. NULL is never deleted."""
    legal: Term | Literal["forever"] | None
    """How long a law says they must be kept."""
    tenant: str | None
    """The column of the tenant: each archive holds rows of one."""
    then: Then | None
    """What happens to older rows; None if they are kept for ever."""
    aggregate: Aggregate | None
    """What is computed from rows in the transaction that deletes them."""
    every: Every
    """Of a table without partitions: rows leave in whole months, weeks or days."""

    @property
    def protection(self) -> Term | Literal["forever"] | None:
        """What no later change may go below without an order."""
        return FOREVER if self.keep == FOREVER else self.legal

    @property
    def rows(self) -> int:
        """The most rows of one transaction."""
        return self.then.rows if isinstance(self.then, Archive) else Archive().rows

    def __str__(self) -> str:
        return str(self.table)


def policy(table: Any, given: dict[str, Any]) -> Policy:
    """Check what a program says."""
    keep = read_term("keep", given["keep"])
    legal = None if given["legal"] is None else read_term("legal", given["legal"])
    name = read_name(table)
    if is_shorter(keep, legal):
        raise ConfigError(
            f"keep of {name} must not be shorter than its legal minimum of {legal}, got {keep}",
            field="keep",
            value=given["keep"],
        )
    return Policy(
        table=name,
        keep=keep,
        by=check_column("by", given["by"]),
        legal=legal,
        tenant=None if given["tenant"] is None else check_column("tenant", given["tenant"]),
        then=_then(name, keep, given["then"]),
        aggregate=_aggregate(given["aggregate"], given["then"]),
        every=_every(given["every"]),
    )


def _then(name: Name, keep: Term | str, value: Any) -> Then | None:
    if keep == FOREVER:
        if value is None:
            return None
        raise ConfigError(
            f"then of {name} must not be given with keep=FOREVER, got {shown(value)}",
            field="then",
            value=value,
        )
    if isinstance(value, Archive) or value in {"delete", "detach"}:
        return value
    raise ConfigError(
        f"then of {name} must be Archive(), 'delete' or 'detach', got {shown(value)}",
        field="then",
        value=value,
    )


def _aggregate(value: Any, then: Any) -> Aggregate | None:
    if value is None:
        return None
    is_text = isinstance(value, str) and bool(value.strip())
    if not is_text and not inspect.iscoroutinefunction(value):
        raise ConfigError(
            f"aggregate must be SQL or an async function, got {shown(value)}",
            field="aggregate",
            value=value,
        )
    if then is None or then == "detach":
        raise ConfigError(
            "aggregate must be given only where rows are deleted: with Archive() or 'delete'",
            field="aggregate",
            value=value,
        )
    return value


def _every(value: Any) -> Every:
    valid: tuple[Every, ...] = get_args(Every)
    for one in valid:
        if value == one:
            return one
    raise ConfigError(
        f"every must be month, week or day, got {shown(value)}; {nearest(value, valid)}",
        field="every",
        value=value,
    )
