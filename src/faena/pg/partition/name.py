"""Names of tables, partitions, indexes and functions, within the 63 bytes that PostgreSQL keeps."""

from __future__ import annotations

import hashlib
from typing import Any, Final, NamedTuple

from psycopg import sql

from faena.errors import ConfigError, shown
from faena.pg.partition.interval import Every, Period, suffix

LONGEST: Final = 63
"""Bytes; PostgreSQL cuts longer names without an error, and two of them may become one."""
_DIGEST: Final = 8


class Name(NamedTuple):
    """A table as the program wrote it; without a schema, the search path finds it."""

    schema: str | None
    table: str

    @property
    def identifier(self) -> sql.Identifier:
        """For SQL."""
        return sql.Identifier(*(one for one in self if one is not None))

    def quoted(self) -> str:
        """As `to_regclass` reads it."""
        parts = [one.replace('"', '""') for one in self if one is not None]
        return ".".join(f'"{one}"' for one in parts)

    def __str__(self) -> str:
        return ".".join(one for one in self if one is not None)


def read_name(value: Any, field: str = "table") -> Name:
    """`table` or `schema.table`; letters are taken as they are, without quotes."""
    parts = value.split(".") if isinstance(value, str) else []
    if len(parts) not in {1, 2} or not all(map(_is_identifier, parts)):
        raise ConfigError(
            f"{field} must be a name such as jobs or shop.jobs, got {shown(value)}",
            field=field,
            value=value,
        )
    return Name(parts[0] if len(parts) == 2 else None, parts[-1])


def check_column(field: str, value: Any) -> str:
    """The name of a column."""
    if isinstance(value, str) and _is_identifier(value):
        return value
    raise ConfigError(
        f"{field} must be the name of a column, got {shown(value)}", field=field, value=value
    )


def _is_identifier(text: str) -> bool:
    return text.isprintable() and bool(text.strip()) and 0 < len(text.encode()) <= LONGEST


def fit(name: str, ending: str = "") -> str:
    """`name` and `ending`; if they are too long, the name is cut and a digest tells it apart."""
    whole = f"{name}{ending}"
    if len(whole.encode()) <= LONGEST:
        return whole
    digest = f"_{hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]}"
    room = LONGEST - len(digest) - len(ending.encode())
    return f"{name.encode()[:room].decode(errors='ignore')}{digest}{ending}"


def partition_name(table: str, period: Period, every: Every) -> str:
    """jobs_y2025m01, messages_2025w01 or locations_20250101."""
    return fit(table, suffix(period, every))
