"""Reads a bounded slice of rows, in order, as the objects that they become: one for each tenant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from psycopg import sql

from faena.pg.archive.content import Packed, Packer
from faena.pg.archive.manifest import Manifest, new_key
from faena.pg.archive.policy import Archive
from faena.pg.archive.source import DIGEST, Source, exact
from faena.pg.archive.span import Place, Unit, condition, ordered

if TYPE_CHECKING:
    from faena.pg.archive.content import Summary
    from faena.pg.postgres import Connection, Postgres

_FIRST: Final = 100
_MOST: Final = 5_000
_AIM: Final = 1 << 20
"""Bytes fetched at a time; how many rows that are is known after the first ones."""


class Exported(NamedTuple):
    """One object, not yet stored."""

    manifest: Manifest
    packed: Packed
    last: Place
    """Of its last row."""


class Slice(NamedTuple):
    """Consecutive rows: after one place, up to another."""

    after: Place
    last: tuple[str, ...]
    """The key of its last row."""
    objects: tuple[Exported, ...]

    @property
    def rows(self) -> int:
        """Of all tenants."""
        return sum(one.packed.rows for one in self.objects)

    @property
    def end(self) -> Place:
        """Where the next one begins."""
        return Place(self.after.is_nobody, self.last)

    @property
    def summaries(self) -> dict[str | None, Summary]:
        """For the comparison with the rows in the table."""
        return {one.manifest.tenant: one.packed.summary for one in self.objects}


class Exporter:
    """Exports the rows of one table."""

    def __init__(self, pg: Postgres, source: Source, archive: Archive) -> None:
        self._pg = pg
        self._source = source
        self._archive = archive

    async def read(self, unit: Unit, after: Place) -> Slice | None:
        """The next slice after a place, in the same part; None at its end."""
        async with self._pg.transaction("archive") as connection:
            await exact(connection)
            await connection.execute(self._cursor(unit, after))
            lines, last = await self._lines(connection)
        if last is None:
            return None
        columns = ordered(self._source, after)
        objects = [self._pack(unit, after, tenant, some, columns) for tenant, some in lines.items()]
        end = msgspec.json.decode(last)
        return Slice(after, tuple(end[one] for one in columns), tuple(objects))

    def _cursor(self, unit: Unit, after: Place) -> sql.Composed:
        """Rows in their order; the line of a row is made after the limit has cut the others."""
        source, tenant = self._source, self._source.policy.tenant
        return sql.SQL(
            "DECLARE faena_slice NO SCROLL CURSOR FOR SELECT {tenant},"
            " convert_to(row_to_json(faena_line.*)::text, 'UTF8') FROM (SELECT {texts} FROM {table}"
            " AS r WHERE {where} ORDER BY {order} LIMIT {limit}) AS faena_line"
        ).format(
            tenant=sql.SQL("NULL") if tenant is None else sql.Identifier("faena_line", tenant),
            texts=source.texts(),
            table=unit.relation,
            where=condition(source, unit, after),
            order=sql.SQL(", ").join(sql.Identifier("r", c) for c in ordered(source, after)),
            limit=sql.Literal(self._archive.rows),
        )

    async def _lines(
        self, connection: Connection
    ) -> tuple[dict[str | None, list[bytes]], bytes | None]:
        """By tenant, and the last one, up to the bound in bytes; the next slice reads on."""
        found: dict[str | None, list[bytes]] = defaultdict(list)
        size, number, line = 0, _FIRST, None
        while size < self._archive.size:
            fetch = sql.SQL("FETCH {} FROM faena_slice").format(sql.Literal(number))
            rows = await (await connection.execute(fetch, binary=True)).fetchall()
            before = size
            for tenant, line in rows:
                found[tenant].append(line)
                size += len(line) + 1
                if size >= self._archive.size:
                    break
            if len(rows) < number:
                break
            mean = max(1, (size - before) // len(rows))
            number = max(1, min(_MOST, min(_AIM, self._archive.size - size) // mean))
        return found, line

    def _pack(
        self,
        unit: Unit,
        after: Place,
        tenant: str | None,
        lines: Sequence[bytes],
        columns: Sequence[str],
    ) -> Exported:
        packer = Packer()
        packer.add(lines)
        packed = packer.finish()
        first, last = (msgspec.json.decode(one) for one in (lines[0], lines[-1]))
        manifest = self._manifest(unit, tenant, packed, (first, last))
        return Exported(manifest, packed, Place(after.is_nobody, tuple(last[c] for c in columns)))

    def _manifest(
        self, unit: Unit, tenant: str | None, packed: Packed, ends: tuple[Any, Any]
    ) -> Manifest:
        source = self._source
        return Manifest(
            table=source.name,
            columns=source.columns,
            schema_digest=source.schema_digest,
            by=source.policy.by,
            start=unit.start,
            end=unit.end,
            first=ends[0][source.policy.by],
            last=ends[1][source.policy.by],
            tenant_column=source.policy.tenant,
            tenant=tenant,
            key=new_key(source.name, tenant, unit.start),
            rows=packed.rows,
            raw_bytes=packed.raw_bytes,
            size=len(packed.blob),
            sha256=packed.sha256,
            digest=str(packed.digest),
            exported_at=datetime.now(UTC),
        )


def summary_of(source: Source, of: sql.Composable) -> sql.Composed:
    """How many rows there are of each tenant, and their digest; `of` is their table, as `r`."""
    return sql.SQL("SELECT {}, count(*), sum({}) FROM {} GROUP BY 1").format(
        tenant_text(source), DIGEST.format(source.line()), of
    )


def tenant_text(source: Source) -> sql.Composable:
    """The tenant of a row `r`, as it is in lines."""
    tenant = source.policy.tenant
    return sql.SQL("NULL::text") if tenant is None else source.text(tenant)
