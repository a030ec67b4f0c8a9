"""The swap of a conversion and the way back, each one transaction under a short exclusive lock."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from psycopg import sql
from psycopg.types.json import Jsonb

from faena.errors import StoreRejected
from faena.pg.conversion.comparison import Comparison
from faena.pg.conversion.mirror import Mirror
from faena.pg.conversion.obstacle import base_type
from faena.pg.conversion.record import Record, change_record
from faena.pg.conversion.structure import (
    Structure,
    before_of,
    read_structure,
    rows,
    twin_of,
)
from faena.pg.conversion.swap import (
    drop_triggers,
    enable_triggers,
    exchange,
    give_triggers,
    silence_triggers,
    triggers_of,
)
from faena.pg.partition.catalog import Table, partitions_of
from faena.pg.partition.interval import Every

if TYPE_CHECKING:
    from faena.pg.postgres import Connection

_TAIL: Final = timedelta(minutes=1)
"""Rows written since the comparison, and some more, are compared again under the lock."""
_DEFAULTS: Final = """
    SELECT a.attname, pg_get_expr(d.adbin, d.adrelid) FROM pg_attribute a
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
"""


async def lock(connection: Connection, front: Table, back: Table, hold_ms: int) -> None:
    """Both tables for this transaction alone; no statement under the lock may last longer."""
    await connection.execute(
        sql.SQL("SET LOCAL statement_timeout TO {}").format(sql.Literal(f"{hold_ms}ms"))
    )
    await connection.execute("SET LOCAL row_security TO off")
    await connection.execute(
        sql.SQL("LOCK TABLE ONLY {}, ONLY {} IN ACCESS EXCLUSIVE MODE").format(
            front.identifier, back.identifier
        )
    )


async def swap(
    connection: Connection, record: Record, plain: Table, twin: Table, *, hold_ms: int
) -> None:
    """Put the twin in front."""
    await lock(connection, plain, twin, hold_ms)
    front = await read_structure(connection, plain, record.by)
    await _refuse_changed(connection, front, twin)
    await _compare_tail(connection, record, front, twin)
    mirror, triggers = Mirror(front, plain.name), await triggers_of(connection, plain)
    await mirror.take_down(connection, plain.identifier)
    names = [one.name for one in front.indexes]
    renamed = {name: before_of(name) for name in names}
    renamed.update({twin_of(name): name for name in names})
    before = before_of(plain.name)
    await exchange(connection, plain, twin, before, renamed)
    await silence_triggers(connection, plain.beside(before), triggers)
    await give_triggers(connection, plain.identifier, triggers)
    await mirror.begin_backward(connection, plain.beside(before), plain.identifier)
    await change_record(
        connection,
        record.table,
        step="swapped",
        triggers=Jsonb(triggers),
        index_names=names,
    )


async def revert(
    connection: Connection, record: Record, front: Table, plain: Table, *, hold_ms: int
) -> None:
    """Put the plain table in front again; the twin is kept equal, as before the swap."""
    await lock(connection, front, plain, hold_ms)
    structure = await read_structure(connection, plain, record.by)
    await _refuse_changed(connection, structure, front)
    mirror = Mirror(structure, front.name)
    await mirror.quiet_backward(connection)
    await drop_triggers(connection, front.identifier, record.triggers)
    renamed = {name: twin_of(name) for name in record.index_names}
    renamed.update({before_of(name): name for name in record.index_names})
    await exchange(connection, front, plain, twin_of(front.name), renamed)
    await enable_triggers(connection, front.identifier, record.triggers)
    type_ = base_type(structure.type_of(record.by))
    twin = front.beside(twin_of(front.name))
    low, high = await _reach(connection, front)
    await mirror.begin_forward(connection, twin, front.identifier, low, high, type_)
    await mirror.hang(connection, front.identifier, mirror.forward)
    await change_record(connection, record.table, step="copied", low=low, high=high)


async def _reach(connection: Connection, twin: Table) -> tuple[date, date]:
    """The days for which the twin has partitions now: some may have been added after the swap."""
    known = [one for one in await partitions_of(connection, twin) if one.low and one.high]
    lows, highs = [one.low for one in known if one.low], [one.high for one in known if one.high]
    return min(lows).date(), max(highs).date()


async def _refuse_changed(connection: Connection, plain: Structure, twin: Table) -> None:
    """Somebody may have changed one of the two meanwhile."""
    other = await read_structure(connection, twin, plain.by)
    ours, theirs = ({one.name: one for one in each.columns} for each in (plain, other))
    first, second = [
        {name: str(default) for name, default in await rows(connection, _DEFAULTS, oid)}
        for oid in (plain.table.oid, twin.oid)
    ]
    changed = [
        name
        for name in {**ours, **theirs}
        if ours.get(name) != theirs.get(name) or first.get(name) != second.get(name)
    ]
    if changed:
        raise StoreRejected(
            f"columns of {plain.table} and {twin} must be equal, but {', '.join(changed)} changed "
            f"meanwhile: change the other table too, or cancel the conversion",
            op="swap",
        )


async def _compare_tail(
    connection: Connection, record: Record, plain: Structure, twin: Table
) -> None:
    every: Every = record.every  # pyright: ignore[reportAssignmentType] - checked when written
    type_ = base_type(plain.type_of(record.by))
    comparison = Comparison(plain, twin.identifier, every, type_)
    since = (record.verified_at or record.started_at) - _TAIL
    found = await comparison.tail_differences(connection, since)
    stray = await comparison.stray(connection, *record.reach)
    if found or stray:
        told = [*map(str, found), *([f"rows outside of all partitions, {stray}"] if stray else [])]
        raise StoreRejected(
            f"table {plain.table} and its twin must be equal, but {'; '.join(told)}: run the "
            f"conversion again",
            op="swap",
        )
