"""What must not be deleted, kept in the database, so that a later change of code cannot undo it.

`faena.retentions` has for each table the longest protection that a program has declared: its legal
minimum, or `forever`, and the column that tells the age. Programs raise it; only
`lower_protection` lowers it. It is found by the table's name and by its oid, so it survives a
rename, and it holds for the partitions of a table, and for the table of a partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from psycopg import sql

from faena.errors import StoreRejected
from faena.pg.archive.policy import Policy
from faena.pg.archive.term import Term, is_shorter, read_term
from faena.pg.partition.catalog import Table, find_table

if TYPE_CHECKING:
    from faena.pg.postgres import Connection

_ALONE: Final = "SELECT pg_advisory_xact_lock(hashtextextended('faena.retentions', 0))"
"""A table and its partitions may be recorded at the same time, under two names."""
_LOCK: Final = """
    INSERT INTO faena.retentions (table_name, keep) VALUES (%s, %s)
    ON CONFLICT (table_name) DO NOTHING
"""
"""Waits for a program that has just recorded one, and is not committed yet."""
_FAMILY: Final = """
    WITH given AS (SELECT oid FROM unnest(%(oids)s::oid[]) AS given(oid)), family AS (
        SELECT oid FROM given
        UNION SELECT a.relid::oid FROM given, pg_partition_ancestors(given.oid::regclass) AS a
        UNION SELECT t.relid::oid FROM given, pg_partition_tree(given.oid::regclass) AS t
    )
"""
"""The tables that are meant, what they are partitions of, and their partitions."""
_RECORDED: Final = f"""{_FAMILY}
    SELECT r.table_name, r.legal, r.by_column, r.table_name = %(name)s
        OR r.relations && %(oids)s::oid[] AND r.home = 'faena.retentions'::regclass
    FROM faena.retentions r WHERE r.table_name = %(name)s OR EXISTS (
        SELECT FROM family f JOIN pg_class c ON c.oid = f.oid
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE r.table_name = n.nspname || '.' || c.relname
           OR f.oid = ANY(r.relations) AND r.home = 'faena.retentions'::regclass)
    ORDER BY r.table_name
"""  # noqa: S608 - constants
_DECLARED: Final = f"""{_FAMILY}
    SELECT place - 1 FROM unnest(%(names)s::text[]) WITH ORDINALITY AS declared(name, place)
    WHERE to_regclass(name)::oid IN (SELECT oid FROM family) ORDER BY place
"""  # noqa: S608 - constants
_NAMED: Final = """
    SELECT unnest(relations) FROM faena.retentions
    WHERE table_name = %(name)s AND home = 'faena.retentions'::regclass
    UNION SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname || '.' || c.relname = %(name)s
"""
_WRITE: Final = """
    UPDATE faena.retentions SET keep = %(keep)s, legal = %(legal)s,
        by_column = coalesce(%(by)s::text, by_column), changed_at = now(),
        relations = CASE WHEN home = 'faena.retentions'::regclass
            THEN array_append(array_remove(relations, %(oid)s::oid), %(oid)s::oid)
            ELSE ARRAY[%(oid)s::oid] END,
        home = 'faena.retentions'::regclass
    WHERE table_name = %(name)s AND (
        (keep, legal, by_column) IS DISTINCT FROM
            (%(keep)s::text, %(legal)s::text, coalesce(%(by)s::text, by_column))
        OR home IS DISTINCT FROM 'faena.retentions'::regclass OR %(oid)s::oid <> ALL(relations))
"""
_LOWER: Final = """
    UPDATE faena.retentions SET legal = %(legal)s, by_column = NULL, changed_at = now()
    WHERE table_name = %(name)s
       OR %(oid)s::oid = ANY(relations) AND home = 'faena.retentions'::regclass
"""


Legal: TypeAlias = Term | Literal["forever"]


class Protection(NamedTuple):
    """How long rows must be kept, as a program has said."""

    table: str
    """For which it was said: the table itself, also under an older name, or one of its family."""
    legal: Legal
    by: str | None
    """The column that tells the age; None: any that a policy names."""
    is_own: bool
    """Whether it is of the table itself."""


async def read_protections(
    connection: Connection, table: str, oids: Sequence[int], *, is_locked: bool = False
) -> list[Protection]:
    """All that hold for rows of `schema.table`, whose relations are `oids`.

    Whoever deletes rows or archives asks this, in the transaction that deletes.
    """
    words = f"{_RECORDED} FOR UPDATE OF r" if is_locked else _RECORDED
    found = await connection.execute(words.encode(), {"oids": [*oids], "name": table})
    return [
        Protection(name, read_term("legal", legal), by, is_own)
        for name, legal, by, is_own in await found.fetchall()
        if legal is not None
    ]


async def declared_protections(
    connection: Connection, oids: Sequence[int], policies: Iterable[Policy]
) -> list[Protection]:
    """Those that a program declares for the same tables, and has perhaps never carried out."""
    some = [(one, one.protection) for one in policies]
    given: dict[str, Any] = {"oids": [*oids], "names": [one.table.quoted() for one, _ in some]}
    rows = await (await connection.execute(_DECLARED.encode(), given)).fetchall()
    chosen = [some[place] for (place,) in rows]
    return [
        Protection(str(await find_table(connection, one.table)), legal, one.by, is_own=False)
        for one, legal in chosen
        if legal is not None
    ]


async def relations_of(connection: Connection, table: str) -> list[int]:
    """The tables that have, or had, a name: archives know their table only by its name."""
    found = await connection.execute(_NAMED, {"name": table})
    return [row[0] for row in await found.fetchall()]


def is_older(column: str, term: Term) -> sql.Composed:
    """Whether a row `r` is older than a term, by the server's clock and arithmetic."""
    return sql.SQL("coalesce({} < now() - make_interval(months => {}, days => {}), false)").format(
        sql.Identifier("r", column), sql.Literal(term.months), sql.Literal(term.days)
    )


async def protect(connection: Connection, table: Table, policy: Policy) -> None:
    """Record the protection of a policy; refuse a policy that goes below what is recorded."""
    await connection.execute(_ALONE)
    await connection.execute(_LOCK, [str(table), str(policy.keep)])
    known = await check_protection(connection, table, policy, is_locked=True)
    given = policy.protection
    stronger = given if known is None or (given and is_shorter(known, given)) else known
    values = {
        "name": str(table),
        "oid": table.oid,
        "keep": str(policy.keep),
        "legal": None if stronger is None else str(stronger),
        "by": None if policy.then is None else policy.by,
    }
    await connection.execute(_WRITE, values)


async def check_protection(
    connection: Connection, table: Table, policy: Policy, *, is_locked: bool = False
) -> Legal | None:
    """Refuse what `protect` would refuse, and change nothing; returns the table's protection."""
    known = await read_protections(connection, str(table), [table.oid], is_locked=is_locked)
    for one in known:
        _refuse(str(table), policy, one)
    return _longest([one.legal for one in known if one.is_own])


def _longest(terms: list[Legal]) -> Legal | None:
    found = None
    for one in terms:
        if found is None or is_shorter(found, one):
            found = one
    return found


def _refuse(table: str, policy: Policy, known: Protection) -> None:
    whose = "" if known.table == table else f" as {known.table}"
    lower = (
        f"nothing was deleted; if that may change, lower the protection with "
        f"`faena pg archive lower {table if known.is_own else known.table}`"
    )
    if is_shorter(policy.keep, known.legal):
        raise StoreRejected(
            f"rows of {table} are protected for {_words(known.legal)}{whose}, and must not leave "
            f"after {policy.keep}: {lower}",
            op="archive",
        )
    if policy.then is not None and known.by is not None and known.by != policy.by:
        raise StoreRejected(
            f"rows of {table} are protected for {_words(known.legal)}{whose} by the column "
            f"{known.by}, and must not leave by {policy.by}: {lower}",
            op="archive",
        )


async def lower_protection(connection: Connection, table: Table, to: Term | str | None) -> None:
    """Set it on purpose, also for another column; a program that declares more raises it again."""
    values = {"legal": None if to is None else str(to), "name": str(table), "oid": table.oid}
    found = await connection.execute(_LOWER, values)
    if found.rowcount == 0:
        raise StoreRejected(f"no protection of {table} is recorded", op="archive")


def _words(term: Term | str) -> str:
    return "ever" if isinstance(term, str) else str(term)
