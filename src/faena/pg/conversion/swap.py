"""Exchanges the two tables in one short transaction, in either direction.

The table in front has the name that programs use, the one behind is kept equal by a mirror. Names
of indexes and constraints, owned sequences, identity values and triggers move to the front.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from psycopg import sql

from faena.pg.conversion.structure import MIRROR, TRUNCATE, rows, verbatim
from faena.pg.partition.catalog import Table

if TYPE_CHECKING:
    from faena.pg.postgres import Connection

_SEQUENCES: Final = """
    SELECT n.nspname, c.relname, a.attname FROM pg_depend d
    JOIN pg_class c ON c.oid = d.objid AND c.relkind = 'S'
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
      AND d.refobjid = %s AND d.deptype = 'a'
"""
_IDENTITIES: Final = """
    SELECT n.nspname, c.relname, a.attname FROM pg_depend d
    JOIN pg_class c ON c.oid = d.objid AND c.relkind = 'S'
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
      AND d.refobjid = %s AND d.deptype = 'i'
"""
_TRIGGERS: Final = """
    SELECT tgname, tgenabled::text, pg_get_triggerdef(oid), obj_description(oid, 'pg_trigger')
    FROM pg_trigger WHERE tgrelid = %s AND NOT tgisinternal AND tgname NOT IN (%s, %s)
    ORDER BY tgname
"""
_ENABLING: Final = {"O": "ENABLE", "D": "DISABLE", "R": "ENABLE REPLICA", "A": "ENABLE ALWAYS"}


async def exchange(
    connection: Connection, front: Table, back: Table, front_to: str, names: dict[str, str]
) -> None:
    """Give `back` the name of `front`, which becomes `front_to`.

    `names` are renamings of indexes, in order; a constraint's name changes with its index.
    """
    await _move_sequences(connection, front, back)
    for table, to in ((front, front_to), (back, front.name)):
        await connection.execute(
            sql.SQL("ALTER TABLE {} RENAME TO {}").format(table.identifier, sql.Identifier(to))
        )
    for name, to in names.items():
        await connection.execute(
            sql.SQL("ALTER INDEX {} RENAME TO {}").format(front.beside(name), sql.Identifier(to))
        )


async def _move_sequences(connection: Connection, front: Table, back: Table) -> None:
    for schema, sequence, column in await rows(connection, _SEQUENCES, front.oid):
        await connection.execute(
            sql.SQL("ALTER SEQUENCE {} OWNED BY {}").format(
                sql.Identifier(schema, sequence),
                sql.Identifier(back.schema, back.name, column),
            )
        )
    behind = {row[2]: row for row in await rows(connection, _IDENTITIES, back.oid)}
    for schema, sequence, column in await rows(connection, _IDENTITIES, front.oid):
        of_back = sql.Identifier(*behind[column][:2]).as_string(connection)
        await connection.execute(
            sql.SQL("SELECT setval({}::regclass, last_value, is_called) FROM {}").format(
                sql.Literal(of_back), sql.Identifier(schema, sequence)
            )
        )


async def triggers_of(connection: Connection, table: Table) -> list[dict[str, Any]]:
    """The program's own triggers, with what creates them on a table of the same name."""
    return [
        {"name": name, "enabled": enabled, "definition": definition, "comment": comment}
        for name, enabled, definition, comment in await rows(
            connection, _TRIGGERS, table.oid, MIRROR, TRUNCATE
        )
    ]


async def give_triggers(
    connection: Connection, table: sql.Identifier, triggers: list[dict[str, Any]]
) -> None:
    """Create them on the table that has the name now."""
    for one in triggers:
        await connection.execute(verbatim(one["definition"]))
        if one["comment"] is not None:
            await connection.execute(
                sql.SQL("COMMENT ON TRIGGER {} ON {} IS {}").format(
                    sql.Identifier(one["name"]), table, sql.Literal(one["comment"])
                )
            )
    await enable_triggers(connection, table, [one for one in triggers if one["enabled"] != "O"])


async def enable_triggers(
    connection: Connection, table: sql.Identifier, triggers: list[dict[str, Any]]
) -> None:
    """Have them fire as they did."""
    for one in triggers:
        await connection.execute(
            sql.SQL("ALTER TABLE {} {} TRIGGER {}").format(
                table, verbatim(_ENABLING[one["enabled"]]), sql.Identifier(one["name"])
            )
        )


async def silence_triggers(
    connection: Connection, table: sql.Identifier, triggers: list[dict[str, Any]]
) -> None:
    """What they do is done by those of the table in front."""
    await enable_triggers(connection, table, [{**one, "enabled": "D"} for one in triggers])


async def drop_triggers(
    connection: Connection, table: sql.Identifier, triggers: list[dict[str, Any]]
) -> None:
    """Those of the twin, when it is behind again."""
    for one in triggers:
        await connection.execute(
            sql.SQL("DROP TRIGGER IF EXISTS {} ON {}").format(sql.Identifier(one["name"]), table)
        )
