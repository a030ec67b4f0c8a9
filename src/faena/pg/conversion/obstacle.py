"""What keeps a table from being converted; all of it is told at once, by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, LiteralString

from faena.errors import StoreRejected
from faena.pg.conversion.structure import MIRROR, TRUNCATE, Structure, before_of, rows, twin_of
from faena.pg.partition.catalog import TYPES, exists

if TYPE_CHECKING:
    from faena.pg.postgres import Connection

_FIRST_IDENTITY: Final = 170000
"""The server that knows identity columns of partitions."""

_FOUND: Final[tuple[tuple[str, LiteralString], ...]] = (
    (
        "it must not be a partition or inherit, got {}",
        "SELECT inhparent::regclass::text FROM pg_inherits WHERE inhrelid = %(oid)s",
    ),
    (
        "it must have no children, got {}",
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %(oid)s",
    ),
    (
        "it must be an ordinary logged table, got persistence {}",
        "SELECT relpersistence::text FROM pg_class WHERE oid = %(oid)s AND relpersistence <> 'p'",
    ),
    (
        "no foreign key may point to it, got {}: its key will be longer",
        (
            "SELECT conname || ' of ' || conrelid::regclass FROM pg_constraint"
            " WHERE contype = 'f' AND confrelid = %(oid)s"
        ),
    ),
    (
        "exclusion constraints cannot be kept, got {}",
        "SELECT conname FROM pg_constraint WHERE contype = 'x' AND conrelid = %(oid)s",
    ),
    (
        "unique indexes must contain {by} to be kept, got {}: drop them, or add it",
        (
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " WHERE i.indrelid = %(oid)s AND i.indisunique AND NOT i.indisprimary"
            " AND NOT i.indisexclusion AND NOT EXISTS (SELECT FROM pg_attribute a"
            " WHERE a.attrelid = %(oid)s AND a.attname = %(by)s"
            " AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1]))"
        ),
    ),
    (
        "keys must be neither deferrable nor have columns besides, got {}",
        (
            "SELECT con.conname FROM pg_constraint con"
            " JOIN pg_index i ON i.indexrelid = con.conindid"
            " WHERE con.conrelid = %(oid)s AND con.contype IN ('p', 'u')"
            " AND (con.condeferrable OR (con.contype = 'p' AND i.indnatts > i.indnkeyatts))"
        ),
    ),
    (
        "indexes must be valid, got {}",
        (
            "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = %(oid)s"
            " AND NOT indisvalid"
        ),
    ),
    (
        "constraints must be validated, got {}: run ALTER TABLE … VALIDATE CONSTRAINT",
        "SELECT conname FROM pg_constraint WHERE conrelid = %(oid)s AND NOT convalidated",
    ),
    (
        "nothing may depend on it, got {}: drop that, and create it again after the swap",
        (
            "SELECT DISTINCT pg_describe_object(d.classid, d.objid, 0) FROM pg_depend d"
            " LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid"
            " LEFT JOIN pg_policy p ON d.classid = 'pg_policy'::regclass AND p.oid = d.objid"
            " WHERE ((d.refclassid = 'pg_class'::regclass AND d.refobjid = %(oid)s)"
            "   OR (d.refclassid = 'pg_type'::regclass AND d.refobjid IN"
            "       (SELECT oid FROM pg_type WHERE typrelid = %(oid)s)))"
            " AND (r.ev_class <> %(oid)s OR p.polrelid <> %(oid)s"
            "   OR d.classid = 'pg_proc'::regclass"
            "   OR (d.refclassid = 'pg_type'::regclass AND d.classid = 'pg_class'::regclass))"
        ),
    ),
    (
        "it must have no rules, got {}",
        "SELECT rulename FROM pg_rewrite WHERE ev_class = %(oid)s",
    ),
    (
        "it must be in no publication, got {}",
        (
            "SELECT p.pubname FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid"
            " WHERE r.prrelid = %(oid)s"
        ),
    ),
    (
        "triggers for each row must have no transition tables, got {}",
        (
            "SELECT tgname FROM pg_trigger WHERE tgrelid = %(oid)s AND NOT tgisinternal"
            " AND tgtype & 1 = 1 AND (tgoldtable IS NOT NULL OR tgnewtable IS NOT NULL)"
        ),
    ),
    (
        "its replica identity must be the primary key, got {}",
        "SELECT relreplident::text FROM pg_class WHERE oid = %(oid)s AND relreplident <> 'd'",
    ),
    (
        "row level security must not be forced on its owner, got {}: the mirror runs as the owner",
        "SELECT relname FROM pg_class WHERE oid = %(oid)s AND relforcerowsecurity",
    ),
    (
        "it must not be of a type, got {}",
        "SELECT reloftype::regtype::text FROM pg_class WHERE oid = %(oid)s AND reloftype <> 0",
    ),
)


async def refuse_obstacles(connection: Connection, plain: Structure) -> None:
    """Raise an error that names everything that cannot be converted."""
    found = [*_columns(connection, plain)]
    arguments = {"oid": plain.table.oid, "by": plain.by}
    for message, query in _FOUND:
        named = [row[0] for row in await (await connection.execute(query, arguments)).fetchall()]
        if named:
            found.append(message.replace("{by}", plain.by).format(", ".join(sorted(named))))
    found += [
        f"the name {name} must be free, but there is such a table"
        for name in (twin_of(plain.table.name), before_of(plain.table.name))
        if await exists(connection, plain.table.schema, name)
    ]
    taken = await rows(
        connection,
        "SELECT tgname FROM pg_trigger WHERE tgrelid = %s AND tgname IN (%s, %s)",
        plain.table.oid,
        MIRROR,
        TRUNCATE,
    )
    found += [f"the trigger {row[0]} must not be there" for row in taken]
    if found:
        raise StoreRejected(
            f"table {plain.table} cannot be converted: {'; '.join(found)}", op="convert"
        )


def _columns(connection: Connection, plain: Structure) -> Iterator[str]:
    """What the table and its columns must be."""
    if plain.table.kind != "r":
        yield f"it must be a plain table, got one of kind {plain.table.kind!r}"
    if not plain.table.is_owned:
        yield f"this user must be its owner, {plain.table.owner}"
    if not plain.key:
        yield "it must have a primary key, got none"
    by = next((one for one in plain.columns if one.name == plain.by), None)
    if by is None:
        yield f"it must have the column {plain.by}"
        return
    if base_type(by.type) not in TYPES:
        yield f"column {plain.by} must be a date or a timestamp, got {by.type}"
    if not by.is_required:
        yield f"column {plain.by} must be NOT NULL"
    if by.generated:
        yield f"column {plain.by} must not be generated"
    if any(one.identity for one in plain.columns):
        version = connection.info.server_version
        if version < _FIRST_IDENTITY:
            yield f"identity columns need PostgreSQL 17 or newer, got {version // 10000}"


def base_type(type_: str) -> str:
    """A type without its precision, as in timestamp(3) with time zone."""
    head, opened, rest = type_.partition("(")
    return head + rest.partition(")")[2] if opened else type_
