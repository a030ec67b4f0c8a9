"""Triggers that keep two tables equal: what is written to one is written to the other at once.

A trigger does not write what it was told; it looks up what the row is now. So it is right as well
if a program's own triggers change the row again, in whatever order they run. It is in the same
transaction as the write: both tables have the change, or none.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

from psycopg import sql

from faena.pg.conversion.structure import MIRROR, TRUNCATE, Structure, listed, verbatim
from faena.pg.partition.catalog import bound
from faena.pg.partition.name import fit

if TYPE_CHECKING:
    from faena.pg.postgres import Connection

_QUIET: Final = "BEGIN RETURN NULL; END"
"""Does nothing: replaced by a working one at the swap, without a lock on any table."""
_BODY: Final = """
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        TRUNCATE {target};
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM {target} AS t WHERE {old};
        INSERT INTO {target} ({columns}) OVERRIDING SYSTEM VALUE
            SELECT {columns} FROM {source} AS t WHERE {old} AND {within}
            {known};
    END IF;
    IF TG_OP = 'INSERT' OR TG_OP = 'UPDATE' AND ({olds}) IS DISTINCT FROM ({news}) THEN
        DELETE FROM {target} AS t WHERE {new};
        INSERT INTO {target} ({columns}) OVERRIDING SYSTEM VALUE
            SELECT {columns} FROM {source} AS t WHERE {new} AND {within}
            {known};
    END IF;
    RETURN NULL;
END
"""


class Mirror:
    """The triggers of one conversion, and their functions."""

    def __init__(self, plain: Structure, table: str) -> None:
        """`table` is the name that programs use, whichever of the two tables has it."""
        self._plain = plain
        stem = f"{plain.table.schema}_{table}"
        self.forward = sql.Identifier("faena", fit(stem, "_forward"))
        self.backward = sql.Identifier("faena", fit(stem, "_backward"))

    async def begin_forward(
        self,
        connection: Connection,
        target: sql.Identifier,
        source: sql.Identifier,
        low: date,
        high: date,
        type_: str,
    ) -> None:
        """Have writes to the plain table reach the twin, within the days it has partitions for."""
        within = sql.SQL("t.{by} >= {low} AND t.{by} < {high}").format(
            by=sql.Identifier(self._plain.by), low=bound(low, type_), high=bound(high, type_)
        )
        # In REPEATABLE READ, a copied row may be there unseen: then the program must try again.
        known = sql.SQL("ON CONFLICT ({}) DO NOTHING").format(listed(self._plain.twin_key))
        body = self._body(source, target, known, within)
        await self._define(connection, self.forward, body)

    async def begin_backward(
        self, connection: Connection, target: sql.Identifier, source: sql.Identifier
    ) -> None:
        """Have writes to the partitioned table reach the plain one, whose key still counts."""
        body = self._body(source, target, sql.SQL(""), sql.SQL("true"))
        await self._define(connection, self.backward, body)

    async def quiet_backward(self, connection: Connection) -> None:
        """Have writes to the partitioned table reach nothing."""
        await self._define(connection, self.backward, sql.SQL(_QUIET))

    def _body(
        self,
        source: sql.Identifier,
        target: sql.Identifier,
        known: sql.Composable,
        within: sql.Composable,
    ) -> sql.Composed:
        key = self._plain.twin_key

        def is_row(which: str) -> sql.Composed:
            return sql.SQL(" AND ").join(
                sql.SQL("t.{} = {}.{}").format(
                    sql.Identifier(one), verbatim(which), sql.Identifier(one)
                )
                for one in key
            )

        def values(which: str) -> sql.Composed:
            return sql.SQL(", ").join(
                sql.SQL("{}.{}").format(verbatim(which), sql.Identifier(one)) for one in key
            )

        return sql.SQL(_BODY).format(
            target=target,
            source=source,
            columns=listed(self._plain.written),
            known=known,
            old=is_row("OLD"),
            new=is_row("NEW"),
            olds=values("OLD"),
            news=values("NEW"),
            within=within,
        )

    async def _define(
        self, connection: Connection, function: sql.Identifier, body: sql.Composable
    ) -> None:
        """Runs as the table's owner: who writes to one table need not know the other."""
        table = self._plain.table
        await connection.execute(
            sql.SQL(
                "CREATE OR REPLACE FUNCTION {}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
                "SET search_path = pg_catalog, {}, pg_temp SET plan_cache_mode = force_custom_plan "
                "AS {}"
            ).format(
                function, sql.Identifier(table.schema), sql.Literal(body.as_string(connection))
            )
        )
        if not table.is_own:
            await connection.execute(
                sql.SQL("ALTER FUNCTION {}() OWNER TO {}").format(
                    function, sql.Identifier(table.owner)
                )
            )

    async def hang(
        self, connection: Connection, table: sql.Identifier, function: sql.Identifier
    ) -> None:
        """Create the triggers on a table; they fire for replicated rows too."""
        for name, event in (
            (MIRROR, "INSERT OR UPDATE OR DELETE {} FOR EACH ROW"),
            (TRUNCATE, "TRUNCATE {} FOR EACH STATEMENT"),
        ):
            when = verbatim(event).format(sql.SQL("ON {}").format(table))
            await connection.execute(
                sql.SQL("CREATE OR REPLACE TRIGGER {} AFTER {} EXECUTE FUNCTION {}()").format(
                    sql.Identifier(name), when, function
                )
            )
            await connection.execute(
                sql.SQL("ALTER TABLE {} ENABLE ALWAYS TRIGGER {}").format(
                    table, sql.Identifier(name)
                )
            )

    async def take_down(self, connection: Connection, table: sql.Identifier) -> None:
        """Drop the triggers of a table."""
        for name in (MIRROR, TRUNCATE):
            await connection.execute(
                sql.SQL("DROP TRIGGER IF EXISTS {} ON {}").format(sql.Identifier(name), table)
            )

    async def drop_functions(self, connection: Connection) -> None:
        """When no trigger uses them any more."""
        for function in (self.forward, self.backward):
            await connection.execute(sql.SQL("DROP FUNCTION IF EXISTS {}()").format(function))
