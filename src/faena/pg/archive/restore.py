"""Brings archived rows back into a table, each object in a transaction of its own.

The rows are read into a temporary table first, and their digest is computed there: what PostgreSQL
has read is what was archived, or nothing is restored.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
from psycopg import sql

from faena.errors import ArchiveUnreadable, StoreRejected
from faena.pg.archive.catalogue import Entry, Wanted, change_state, read_entries
from faena.pg.archive.content import Summary, fetch_manifest, read_lines
from faena.pg.archive.manifest import Manifest
from faena.pg.archive.policy import Policy
from faena.pg.archive.source import DIGEST, Source, exact, read_source
from faena.pg.archive.store import ObjectStore
from faena.values.view import View

if TYPE_CHECKING:
    from faena.pg.archive.archiver import Stores
    from faena.pg.postgres import Connection, Postgres

_PAGE: Final = 500
_ASIDE: Final = sql.Identifier("pg_temp", "faena_restored")


class Restored(View, frozen=True, kw_only=True):
    """What was brought back."""

    table: str
    """Into which table."""
    objects: int
    rows: int
    """That are new in the table."""
    skipped: int
    """That were in the table already."""


class Restoration:
    """Restores archives of one table into it, or into another one of the same shape."""

    def __init__(self, pg: Postgres, stores: Stores, target: Policy, cutoff: datetime | None):
        """`target` names the table to write. `cutoff` is given if it is the one the rows are from,
        and is the instant before which they would be archived again."""
        self._pg = pg
        self._stores = stores
        self._target = target
        self._cutoff = cutoff

    async def run(self, wanted: Wanted) -> Restored:
        """Restore whole objects; one that cannot be read stops it, those before are restored."""
        async with self._pg.transaction("restore") as connection:
            source = await read_source(connection, self._target)
        if not source.key:
            raise StoreRejected(
                f"table {source.name} must have a primary key, so that no row is restored twice",
                op="restore",
            )
        objects = rows = skipped = after = 0
        while some := await self._page(wanted, after):
            for one in some:
                new = await self._restore(source, one)
                objects, rows, skipped = objects + 1, rows + new, skipped + one.rows - new
            after = some[-1].id
        return Restored(table=source.name, objects=objects, rows=rows, skipped=skipped)

    async def _page(self, wanted: Wanted, after: int) -> list[Entry]:
        async with self._pg.transaction("restore") as connection:
            return await read_entries(connection, wanted, after=after, limit=_PAGE)

    async def _restore(self, source: Source, entry: Entry) -> int:
        is_home = source.name == entry.table
        if is_home and self._cutoff is not None and entry.last_at < self._cutoff:
            raise StoreRejected(
                f"rows of {entry.table} until {entry.last_at.date()} would be archived again by "
                f"its policy: restore them into another table, or change the policy first",
                op="restore",
            )
        store = self._stores.at(entry.store)
        manifest = await fetch_manifest(store, entry.key)
        check_manifest(manifest, entry)
        source = _in_shape(source, manifest)
        async with self._pg.transaction("restore") as connection:
            await exact(connection)
            await self._read(connection, source, store, entry)
            new = await self._insert(connection, source)
            if is_home:
                await self._come_home(connection, entry, new)
        return new

    async def _read(
        self, connection: Connection, source: Source, store: ObjectStore, entry: Entry
    ) -> None:
        await connection.execute(
            sql.SQL("CREATE TEMP TABLE {} (LIKE {}) ON COMMIT DROP").format(
                sql.Identifier("faena_restored"), source.table.identifier
            )
        )
        names = [one.name for one in source.columns]
        words = sql.SQL("COPY {} ({}) FROM STDIN").format(
            _ASIDE, sql.SQL(", ").join(map(sql.Identifier, names))
        )
        async with connection.cursor() as cursor, cursor.copy(words) as copy:
            async for lines in read_lines(store, entry.key, entry.sha256):
                for line in lines:
                    values: dict[str, Any] = msgspec.json.decode(line)
                    await copy.write_row([values[name] for name in names])
        found = await connection.execute(
            sql.SQL("SELECT count(*), coalesce(sum({}), 0) FROM {} AS r").format(
                DIGEST.format(source.line()), _ASIDE
            )
        )
        row = await found.fetchone() or (0, 0)
        if Summary(row[0], int(row[1])) != entry.summary:
            raise ArchiveUnreadable(
                f"archive {entry.key} must have {entry.rows} rows with the digest that was "
                f"archived, and PostgreSQL reads others",
                op="restore",
            )

    async def _insert(self, connection: Connection, source: Source) -> int:
        names = sql.SQL(", ").join(
            sql.Identifier(one.name) for one in source.columns if not one.is_generated
        )
        found = await connection.execute(
            sql.SQL(
                "WITH new AS (INSERT INTO {0} AS r ({1}) OVERRIDING SYSTEM VALUE"
                " SELECT {1} FROM {2} ON CONFLICT DO NOTHING RETURNING {3} AS line)"
                " SELECT (SELECT count(*) FROM new),"
                " (SELECT count(*) FROM (SELECT line FROM new EXCEPT ALL SELECT {3} FROM {2} AS r)"
                " AS other)"
            ).format(source.table.identifier, names, _ASIDE, source.line())
        )
        ((new, other),) = await found.fetchall()
        if other:
            raise StoreRejected(
                f"{other} rows would be other ones in {source.name} than they were archived: a "
                f"trigger or a generated column changes them; restore them into another table",
                op="restore",
            )
        return new

    async def _come_home(self, connection: Connection, entry: Entry, new: int) -> None:
        """The rows are in their table again, so the object is no archive any more."""
        if new != entry.rows:
            raise StoreRejected(
                f"{entry.rows - new} of {entry.rows} rows of archive {entry.key} are in "
                f"{entry.table} already: restore it into another table",
                op="restore",
            )
        if await change_state(connection, [entry.id], "restored", of=["archived"]) != 1:
            raise StoreRejected(f"archive {entry.key} was changed meanwhile", op="restore")


def check_manifest(manifest: Manifest, entry: Entry | Manifest) -> None:
    """The manifest beside an object must be the one that the catalogue knows, or was stored."""
    theirs = (manifest.table, manifest.tenant, manifest.sha256, manifest.rows, manifest.digest)
    ours = (entry.table, entry.tenant, entry.sha256, entry.rows, entry.digest)
    if theirs != ours or manifest.schema_digest != entry.schema_digest:
        raise ArchiveUnreadable(
            f"the manifest of archive {entry.key} must say what the catalogue says, and differs",
            op="archive",
        )


def _in_shape(source: Source, manifest: Manifest) -> Source:
    """The table with its columns in the order of the archive; they must be the same."""
    wanted = {one.name: one.type for one in manifest.columns}
    found = {one.name: one for one in source.columns}
    types = {one.name: one.type for one in source.columns}
    if types == wanted:
        return source._replace(columns=tuple(found[name] for name in wanted))
    differing = sorted(
        f"{name} ({wanted.get(name, 'none')} archived, {types.get(name, 'none')} in the table)"
        for name in {*wanted, *found}
        if wanted.get(name) != types.get(name)
    )
    raise StoreRejected(
        f"table {source.name} must have the columns of the archive, and differs in "
        f"{', '.join(differing)}",
        op="restore",
    )
