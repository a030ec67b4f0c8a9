"""Creates the partitioned twin of a plain table: the same columns, checks, indexes, keys, comments,
grants and policies. Its triggers come with the swap: before it, they would do everything twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from psycopg import sql

from faena.pg.conversion.structure import Index, Structure, listed, rows, twin_of, verbatim
from faena.pg.partition.name import fit

if TYPE_CHECKING:
    from faena.pg.postgres import Connection

_FOREIGN_KEYS: Final = """
    SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE conrelid = %s AND contype = 'f' ORDER BY conname
"""
_GRANTS: Final = """
    SELECT NULL, coalesce(r.rolname, ''), a.privilege_type, a.is_grantable
    FROM pg_class c CROSS JOIN aclexplode(c.relacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
    WHERE c.oid = %(oid)s AND a.grantee <> c.relowner
    UNION ALL
    SELECT t.attname, coalesce(r.rolname, ''), a.privilege_type, a.is_grantable
    FROM pg_attribute t CROSS JOIN aclexplode(t.attacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
    WHERE t.attrelid = %(oid)s AND NOT t.attisdropped
"""
_POLICIES: Final = """
    SELECT polname, polpermissive, polcmd::text, pg_get_expr(polqual, polrelid),
           pg_get_expr(polwithcheck, polrelid),
           ARRAY(SELECT rolname::text FROM pg_roles WHERE oid = ANY (polroles)),
           obj_description(oid, 'pg_policy')
    FROM pg_policy WHERE polrelid = %s ORDER BY polname
"""
_COMMANDS: Final = {"r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE", "*": "ALL"}


class Twin:
    """Writes the definition of the twin of one table."""

    def __init__(self, connection: Connection, plain: Structure) -> None:
        self._connection = connection
        self._plain = plain
        self._name = plain.table.beside(twin_of(plain.table.name))

    async def create(self, indexes: tuple[tuple[str, ...], ...]) -> None:
        """Create it, without partitions, and with these indexes beside those of the table."""
        plain = self._plain
        await self._run(
            "CREATE TABLE {} (LIKE {} INCLUDING ALL EXCLUDING INDEXES) PARTITION BY RANGE ({})",
            self._name,
            plain.table.identifier,
            sql.Identifier(plain.by),
        )
        if not plain.table.is_own:
            await self._run(
                "ALTER TABLE {} OWNER TO {}", self._name, sql.Identifier(plain.table.owner)
            )
        for index in plain.indexes:
            await self._index(index)
        await self._add_indexes(indexes)
        await self._foreign_keys()
        await self._grants()
        await self._policies()
        await self._comment()

    async def _run(self, text: str, *parts: sql.Composable) -> None:
        await self._connection.execute(verbatim(text).format(*parts))

    async def _index(self, index: Index) -> None:
        name = sql.Identifier(twin_of(index.name))
        if index.is_primary:
            key = listed(self._plain.twin_key)
            await self._run(
                "ALTER TABLE {} ADD CONSTRAINT {} PRIMARY KEY ({})", self._name, name, key
            )
        elif index.constraint is not None:
            await self._run(
                "ALTER TABLE {} ADD CONSTRAINT {} {}", self._name, name, verbatim(index.constraint)
            )
        else:
            unique = verbatim("UNIQUE " if index.is_unique else "")
            tail = verbatim(index.tail)
            await self._run("CREATE {}INDEX {} ON {} {}", unique, name, self._name, tail)
        beside = self._plain.table.beside(twin_of(index.name))
        if index.comment is not None:
            await self._run("COMMENT ON INDEX {} IS {}", beside, sql.Literal(index.comment))
        if index.constraint_comment is not None:
            told = sql.Literal(index.constraint_comment)
            await self._run("COMMENT ON CONSTRAINT {} ON {} IS {}", name, self._name, told)

    async def _add_indexes(self, indexes: tuple[tuple[str, ...], ...]) -> None:
        definitions = {index.tail for index in self._plain.indexes}
        for columns in indexes:
            tail = f" USING btree ({listed(columns).as_string(self._connection)})"
            unquoted = f" USING btree ({', '.join(columns)})"
            if not definitions & {tail, unquoted}:
                name = sql.Identifier(fit(f"{self._plain.table.name}_{'_'.join(columns)}", "_idx"))
                await self._run("CREATE INDEX {} ON {} ({})", name, self._name, listed(columns))

    async def _foreign_keys(self) -> None:
        for name, definition in await rows(self._connection, _FOREIGN_KEYS, self._plain.table.oid):
            await self._run(
                "ALTER TABLE {} ADD CONSTRAINT {} {}",
                self._name,
                sql.Identifier(name),
                verbatim(definition),
            )

    async def _grants(self) -> None:
        found = await self._connection.execute(_GRANTS, {"oid": self._plain.table.oid})
        for column, role, privilege, is_grantable in await found.fetchall():
            await self._run(
                "GRANT {} {} ON {} TO {} {}",
                verbatim(privilege),
                sql.SQL("({})").format(sql.Identifier(column)) if column else sql.SQL(""),
                self._name,
                sql.Identifier(role) if role else sql.SQL("PUBLIC"),
                sql.SQL("WITH GRANT OPTION" if is_grantable else ""),
            )

    async def _policies(self) -> None:
        policies = await rows(self._connection, _POLICIES, self._plain.table.oid)
        for name, permissive, command, using, checked, roles, comment in policies:
            await self._run(
                "CREATE POLICY {} ON {} AS {} FOR {} TO {} {} {}",
                sql.Identifier(name),
                self._name,
                sql.SQL("PERMISSIVE" if permissive else "RESTRICTIVE"),
                verbatim(_COMMANDS[command]),
                sql.SQL(", ").join(map(sql.Identifier, roles)) if roles else sql.SQL("PUBLIC"),
                verbatim(f"USING ({using})" if using else ""),
                verbatim(f"WITH CHECK ({checked})" if checked else ""),
            )
            if comment is not None:
                told = sql.Literal(comment)
                await self._run(
                    "COMMENT ON POLICY {} ON {} IS {}", sql.Identifier(name), self._name, told
                )
        found = await rows(
            self._connection,
            "SELECT relrowsecurity FROM pg_class WHERE oid = %s",
            self._plain.table.oid,
        )
        if found[0][0]:
            await self._run("ALTER TABLE {} ENABLE ROW LEVEL SECURITY", self._name)

    async def _comment(self) -> None:
        found = await rows(
            self._connection,
            "SELECT obj_description(%s, 'pg_class')",
            self._plain.table.oid,
        )
        if found[0][0] is not None:
            await self._run("COMMENT ON TABLE {} IS {}", self._name, sql.Literal(found[0][0]))
