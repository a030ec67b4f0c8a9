"""Whether the schema `faena` is what its migrations make, and every difference by name.

The migrations that the database has are applied once more beside it: in a transaction that is
rolled back, in which the real schema has another name. So both sides are what this very server
makes of them. Nobody else sees any of it, and no table in use is locked.

Partitions are made while programs run, and what operators grant or comment is theirs: neither
counts. Objects outside of the schema are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, get_args

from faena.pg.migration import LOCK, RECORDS, applied, exists
from faena.pg.partition.interval import Every, period_named
from faena.values.view import View

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres

_ASIDE: Final = "faena_as_it_is"

_FACTS: Final = """
WITH tables AS (
    SELECT c.oid, c.relname, c.relkind::text AS kind, c.relpersistence::text AS persistence,
        c.relrowsecurity, c.reloptions, c.relowner
    FROM pg_class c WHERE c.relnamespace = 'faena'::regnamespace AND NOT c.relispartition
        AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'c')
)
SELECT CASE kind WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view' WHEN 'm' THEN 'view'
        WHEN 'c' THEN 'type' ELSE 'table' END, relname,
    concat_ws(' ', kind, persistence, CASE WHEN relrowsecurity THEN 'row security' END,
        reloptions::text, CASE WHEN kind IN ('v', 'm') THEN pg_get_viewdef(oid) END,
        (SELECT pg_get_partkeydef(oid) WHERE kind = 'p'))
FROM tables
UNION ALL
SELECT 'column', t.relname || '.' || a.attname, concat_ws(' ',
    format_type(a.atttypid, a.atttypmod),
    CASE WHEN a.attcollation <> y.typcollation
        THEN 'COLLATE ' || a.attcollation::regcollation::text END,
    CASE WHEN a.attnotnull THEN 'NOT NULL' END,
    CASE WHEN a.attidentity <> '' THEN 'identity ' || a.attidentity::text END,
    CASE WHEN a.attgenerated <> '' THEN 'generated' END,
    (SELECT 'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d
     WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum))
FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid JOIN pg_type y ON y.oid = a.atttypid
WHERE t.kind <> 'S' AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'constraint', t.relname || '.' || c.conname,
    pg_get_constraintdef(c.oid) || CASE WHEN c.convalidated THEN '' ELSE ' NOT VALID' END
FROM tables t JOIN pg_constraint c ON c.conrelid = t.oid WHERE c.contype <> 'n'
UNION ALL
SELECT 'index', i.relname,
    pg_get_indexdef(x.indexrelid) || CASE WHEN x.indisvalid THEN '' ELSE ' INVALID' END
FROM tables t JOIN pg_index x ON x.indrelid = t.oid JOIN pg_class i ON i.oid = x.indexrelid
UNION ALL
SELECT 'trigger', t.relname || '.' || g.tgname, g.tgenabled::text || ' ' || pg_get_triggerdef(g.oid)
FROM tables t JOIN pg_trigger g ON g.tgrelid = t.oid WHERE NOT g.tgisinternal
UNION ALL
SELECT 'policy', t.relname || '.' || p.polname, concat_ws(' ', p.polcmd, p.polpermissive,
    pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
FROM tables t JOIN pg_policy p ON p.polrelid = t.oid
UNION ALL
SELECT 'rule', t.relname || '.' || r.rulename, pg_get_ruledef(r.oid)
FROM tables t JOIN pg_rewrite r ON r.ev_class = t.oid WHERE r.rulename <> '_RETURN'
UNION ALL
SELECT 'function', p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')',
    CASE WHEN p.prokind IN ('f', 'p') THEN pg_get_functiondef(p.oid) ELSE p.prokind::text END
FROM pg_proc p WHERE p.pronamespace = 'faena'::regnamespace
UNION ALL
SELECT 'type', y.typname, concat_ws(' ', y.typtype, format_type(y.typbasetype, y.typtypmod),
    (SELECT string_agg(e.enumlabel, ', ' ORDER BY e.enumsortorder) FROM pg_enum e
     WHERE e.enumtypid = y.oid),
    (SELECT string_agg(pg_get_constraintdef(c.oid), ' ' ORDER BY c.conname) FROM pg_constraint c
     WHERE c.contypid = y.oid))
FROM pg_type y WHERE y.typnamespace = 'faena'::regnamespace AND y.typtype IN ('d', 'e', 'r')
"""


class Difference(View, frozen=True, kw_only=True):
    """One object that is not as the migrations make it."""

    how: Literal["missing", "extra", "changed"]
    what: str
    """Its kind and name, such as `column outbox.tenant`."""
    wanted: str | None
    """Its definition by the migrations."""
    found: str | None
    """Its definition in the database."""

    def __str__(self) -> str:
        return f"{self.what} is {self.how}"


async def drift(pg: Postgres) -> list[Difference]:
    """Every difference between the schema and its migrations; none before the first migration.

    Who asks must own the schema, as whoever migrates does.
    """
    async with pg.transaction("drift") as connection, connection.transaction(force_rollback=True):
        await connection.execute("SET LOCAL lock_timeout TO '10s'")
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        if not await exists(connection):
            return []
        have = await applied(connection)
        found = await _facts(connection)
        await connection.execute(f"ALTER SCHEMA faena RENAME TO {_ASIDE}".encode())
        await connection.execute(RECORDS)
        for one in have:
            await connection.execute(one.sql.encode())
        wanted = await _facts(connection)
    return compare(wanted, found)


async def _facts(connection: Connection) -> dict[str, str]:
    """Definitions by kind and name; names in them have their schema, whatever the search path."""
    await connection.execute("SET LOCAL search_path TO pg_catalog")
    rows = await (await connection.execute(_FACTS)).fetchall()
    await connection.execute("SET LOCAL search_path TO DEFAULT")
    return {f"{kind} {name}": definition for kind, name, definition in rows}


def compare(wanted: Mapping[str, str], found: Mapping[str, str]) -> list[Difference]:
    """What differs, in the order of names; of a missing or extra table, only the table."""
    differences: list[Difference] = []
    for what in sorted({*wanted, *found}):
        if wanted.get(what) == found.get(what) or _is_part(what, wanted, found):
            continue
        how = "extra" if what not in wanted else "missing" if what not in found else "changed"
        if how == "extra" and _was_partition(what, wanted):
            continue
        differences.append(
            Difference(how=how, what=what, wanted=wanted.get(what), found=found.get(what))
        )
    return differences


def _is_part(what: str, wanted: Mapping[str, str], found: Mapping[str, str]) -> bool:
    """Whether it belongs to a table that is missing or extra as a whole."""
    kind, _, name = what.partition(" ")
    if kind == "index":
        definition = wanted.get(what) or found.get(what) or ""
        name = definition.partition(" ON ")[2].removeprefix("ONLY ").removeprefix("faena.")
        name = name.partition(" ")[0]
    elif kind in {"table", "view", "sequence", "function", "type"}:
        return False
    wholes = [f"{kind} {name.partition('.')[0]}" for kind in ("table", "view", "type")]
    return any((one in wanted) != (one in found) for one in wholes)


def _was_partition(what: str, wanted: Mapping[str, str]) -> bool:
    """A partition that was detached stays in the schema, as a table with the name of its time."""
    kind, _, name = what.partition(" ")
    intervals: tuple[Every, ...] = get_args(Every)
    return kind == "table" and any(
        period_named(name, every) and f"table {name.rpartition('_')[0]}" in wanted
        for every in intervals
    )
