"""Reads archives back, long after they were written: is each object still what it was?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from faena.errors import ArchiveUnreadable, StoreRejected
from faena.pg.archive.catalogue import Entry, Wanted, read_entries
from faena.pg.archive.content import fetch_manifest, read_back
from faena.pg.archive.manifest import folder_of, object_key
from faena.pg.archive.restore import check_manifest
from faena.values.view import View

if TYPE_CHECKING:
    from faena.pg.archive.archiver import Stores
    from faena.pg.postgres import Postgres

_PAGE: Final = 500


class Checked(View, frozen=True, kw_only=True):
    """What reading archives back has found."""

    objects: int
    """That are what they were; those of `problems` are not counted."""
    rows: int
    """In them."""
    problems: tuple[str, ...]
    """Objects that are missing or not what they were."""
    unknown: tuple[str, ...]
    """Files in the folder of the table that belong to no object of the catalogue."""


class Check:
    """Verifies the archives of one table."""

    def __init__(self, pg: Postgres, stores: Stores) -> None:
        self._pg = pg
        self._stores = stores

    async def run(
        self, wanted: Wanted, report: Callable[[int, int], None] | None = None
    ) -> Checked:
        """Read every object; `report` gets the number of objects and rows after each page."""
        objects = rows = after = 0
        problems: list[str] = []
        stores: set[str] = set()
        while some := await self._page(wanted, after):
            for one in some:
                wrong = await self._problems(one)
                problems += wrong
                stores.add(one.store)
                if not wrong:
                    objects, rows = objects + 1, rows + one.rows
            after = some[-1].id
            if report is not None:
                report(objects, rows)
        unknown = [key for url in sorted(stores) for key in await self._unknown(url, wanted)]
        return Checked(objects=objects, rows=rows, problems=tuple(problems), unknown=tuple(unknown))

    async def _page(self, wanted: Wanted, after: int) -> list[Entry]:
        async with self._pg.transaction("verify") as connection:
            return await read_entries(connection, wanted, after=after, limit=_PAGE)

    async def _problems(self, entry: Entry) -> list[str]:
        store = self._stores.at(entry.store)
        try:
            check_manifest(await fetch_manifest(store, entry.key), entry)
            if await read_back(store, entry.key, entry.sha256) != entry.summary:
                return [f"archive {entry.key} must have {entry.rows} rows, and has others"]
        except (ArchiveUnreadable, StoreRejected) as error:
            return [str(error)]
        return []

    async def _unknown(self, url: str, wanted: Wanted) -> list[str]:
        """Each object is entered before it is stored, so one that is not known is nobody's."""
        folder = folder_of(wanted.table, wanted.tenant)
        folder = folder if wanted.tenant is not None else folder.partition("/")[0]
        keys = [one.key async for one in self._stores.at(url).list(folder)]
        data = [object_key(key) for key in keys]
        async with self._pg.transaction("verify") as connection:
            found = await connection.execute(
                "SELECT file.key FROM unnest(%s::text[], %s::text[]) AS file(key, data)"
                " WHERE NOT EXISTS"
                " (SELECT FROM faena.archives a WHERE a.store = %s AND a.key = file.data)"
                " ORDER BY 1",
                [keys, data, url],
            )
            return [row[0] for row in await found.fetchall()]
