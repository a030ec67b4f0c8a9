"""Deletes rows that were archived, or that need no archive: in one transaction with its record.

Rows are compared with the archive as they are deleted, so one that has changed since it was
exported is not lost: the transaction is rolled back, and the row is exported again. The deleting
statement itself asks the server whether each row is old enough, whatever has chosen it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from psycopg import sql

from faena.errors import StoreRejected
from faena.pg.archive.content import Summary
from faena.pg.archive.export import summary_of, tenant_text
from faena.pg.archive.policy import EXPIRED, Expired
from faena.pg.archive.protection import check_protection, is_older
from faena.pg.archive.removal import note_removal
from faena.pg.archive.source import DIGEST, Source, check_columns, exact
from faena.pg.archive.span import Place, Unit, condition, ordered
from faena.pg.archive.term import Term

if TYPE_CHECKING:
    from faena.pg.archive.fence import Fence
    from faena.pg.postgres import Connection

STABLE: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
"""What is aggregated is exactly what is deleted; a row changed meanwhile is an error."""
_PARTITION: Final = """
    SELECT c.oid, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = to_regclass(%s)
"""
_DROP_VIEW: Final = sql.SQL("DROP VIEW pg_temp.{}").format(sql.Identifier(EXPIRED))


class Changed(StoreRejected):
    """Rows are no longer as they were exported; nothing was deleted."""


async def begin_deletion(connection: Connection, source: Source, fence: Fence) -> None:
    """Have a transaction see one state of the table, whose columns nobody changes until its end.

    The lock comes before the first query: what that sees was committed before the lock was given.
    """
    await connection.execute(STABLE)
    await exact(connection)
    name = source.table.identifier
    await connection.execute(sql.SQL("LOCK TABLE {} IN ROW EXCLUSIVE MODE").format(name))
    await fence.prove(connection, "deleting")
    await check_columns(connection, source, name)
    await check_protection(connection, source.table, source.policy)


async def aggregate(
    connection: Connection, source: Source, unit: Unit, where: sql.Composable
) -> None:
    """Let the program compute what it wants from rows that are deleted in this transaction."""
    work = source.policy.aggregate
    if work is None:
        return
    await connection.execute(
        sql.SQL("CREATE TEMP VIEW {} AS SELECT r.* FROM {} AS r WHERE {}").format(
            sql.Identifier(EXPIRED), unit.relation, where
        )
    )
    if isinstance(work, str):
        await connection.execute(work.encode())
    else:
        await work(connection, Expired(source.name, unit.start, unit.end))
    await connection.execute(_DROP_VIEW)


async def delete_slice(
    connection: Connection,
    source: Source,
    unit: Unit,
    reach: tuple[Place, tuple[str, ...]],
    expected: Mapping[str | None, Summary] | None,
) -> int:
    """Delete the rows after a place up to a key; `Changed` if they are not as expected."""
    where = condition(source, unit, *reach)
    await note_removal(connection, source, unit, where)
    await aggregate(connection, source, unit, where)
    if expected is None:
        return await _delete_counted(connection, source, unit, where)
    words = sql.SQL(
        "WITH gone AS (DELETE FROM {} AS r WHERE {}"
        " RETURNING {} AS tenant, {} AS line, {} AS is_old)"
        " SELECT tenant, count(*), sum({}), bool_and(is_old) FROM gone GROUP BY 1"
    ).format(
        unit.relation,
        where,
        tenant_text(source),
        source.line(),
        _is_old(source),
        DIGEST.format(sql.SQL("line")),
    )
    rows = await (await connection.execute(words)).fetchall()
    _refuse_young(source, unit, is_old=all(row[3] for row in rows))
    compare(source, expected, {row[0]: Summary(row[1], int(row[2])) for row in rows})
    return sum(row[1] for row in rows)


async def _delete_counted(
    connection: Connection, source: Source, unit: Unit, where: sql.Composable
) -> int:
    """Without an archive to compare with: all rows that the aggregate has seen must be gone."""
    words = sql.SQL(
        "WITH chosen AS (SELECT count(*) AS number FROM {0} AS r WHERE {1}),"
        " gone AS (DELETE FROM {0} AS r WHERE {1} RETURNING {2} AS is_old)"
        " SELECT (SELECT number FROM chosen), count(*), coalesce(bool_and(is_old), true) FROM gone"
    ).format(unit.relation, where, _is_old(source))
    ((chosen, gone, is_old),) = await (await connection.execute(words)).fetchall()
    _refuse_young(source, unit, is_old=is_old)
    if chosen != gone:
        raise StoreRejected(
            f"{chosen} rows of {source.name} from {unit} must be deleted together, and {gone} "
            f"could be: a trigger or a rule keeps the others; nothing was deleted",
            op="archive",
        )
    return gone


def _is_old(source: Source) -> sql.Composed:
    """Whether the policy lets a row `r` go."""
    keep = source.policy.keep
    assert isinstance(keep, Term)  # noqa: S101 - what is kept for ever has no deletion
    return is_older(source.policy.by, keep)


def _refuse_young(source: Source, unit: Unit, *, is_old: bool) -> None:
    if not is_old:
        raise StoreRejected(
            f"rows of {source.name} from {unit} must be older than {source.policy.keep}, and some "
            f"are not: nothing was deleted",
            op="archive",
        )


async def drop_partition(
    connection: Connection,
    source: Source,
    unit: Unit,
    look_again: Callable[[Connection], Awaitable[None]] | None,
) -> int:
    """Drop a detached partition; `Changed` if its rows are not those of its verified archives.

    The lock is taken first: nobody can add a row between the comparison and the end of the table.
    `look_again` reads the archives, if there are any, when nothing else has to be waited for.
    """
    name = unit.relation
    await connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(name))
    await check_columns(connection, source, name)
    await check_protection(connection, source.table, source.policy)
    await _check_own_protection(connection, source, name)
    if look_again is not None:
        await _compare_partition(connection, source, unit)
    counted = await connection.execute(
        sql.SQL("SELECT count(*), coalesce(bool_and({}), true) FROM {} AS r").format(
            _is_old(source), name
        )
    )
    ((number, is_old),) = await counted.fetchall()
    _refuse_young(source, unit, is_old=is_old)
    await aggregate(connection, source, unit, sql.SQL("true"))
    if look_again is not None:
        await look_again(connection)
    await connection.execute(sql.SQL("DROP TABLE {}").format(name))
    return number


async def _check_own_protection(
    connection: Connection, source: Source, name: sql.Identifier
) -> None:
    """Detached, it is none of its table's family any more, and may be protected by itself."""
    found = await connection.execute(_PARTITION, [name.as_string(connection)])
    for oid, schema, table in await found.fetchall():
        own = source.table._replace(oid=oid, schema=schema, name=table)
        await check_protection(connection, own, source.policy)


async def _compare_partition(connection: Connection, source: Source, unit: Unit) -> None:
    """In the database: there may be many tenants."""
    archived = sql.SQL(
        "SELECT tenant, sum(rows)::bigint, sum(digest) FROM faena.archives WHERE table_name = {}"
        " AND start_at = {} AND state = 'verified' GROUP BY 1"
    ).format(sql.Literal(source.name), sql.Literal(unit.start))
    there = summary_of(source, sql.SQL("{} AS r").format(unit.relation))
    words = sql.SQL(
        "WITH archived AS MATERIALIZED ({}), there AS MATERIALIZED ({})"
        " (TABLE archived EXCEPT ALL TABLE there)"
        " UNION ALL (TABLE there EXCEPT ALL TABLE archived) LIMIT 1"
    ).format(archived, there)
    row = await (await connection.execute(words)).fetchone()
    if row is not None:
        raise Changed(
            f"rows of {source.name} from {unit} have changed since they were exported", op="archive"
        )


def compare(
    source: Source,
    expected: Mapping[str | None, Summary],
    found: Mapping[str | None, Summary],
) -> None:
    """Rows as they were exported, and as they are."""
    if expected != found:
        raise Changed(
            f"rows of {source.name} have changed since they were exported: "
            f"{sum(one.rows for one in expected.values())} were exported, "
            f"{sum(one.rows for one in found.values())} are there now",
            op="archive",
        )


async def next_key(
    connection: Connection, source: Source, unit: Unit, after: Place
) -> tuple[str, ...] | None:
    """The key up to which the next rows are deleted; None at the end of the part."""
    columns = ordered(source, after)
    texts = sql.SQL(", ").join(source.text(one) for one in columns)
    order = sql.SQL(", ").join(sql.Identifier("r", one) for one in columns)
    words = sql.SQL(
        "SELECT {0} FROM (SELECT * FROM {1} AS r WHERE {2} ORDER BY {3} LIMIT {4}) AS r"
        " ORDER BY {5} LIMIT 1"
    ).format(
        texts,
        unit.relation,
        condition(source, unit, after),
        order,
        sql.Literal(source.policy.rows),
        sql.SQL(", ").join(sql.SQL("r.{} DESC").format(sql.Identifier(one)) for one in columns),
    )
    row = await (await connection.execute(words)).fetchone()
    return None if row is None else tuple(row)
