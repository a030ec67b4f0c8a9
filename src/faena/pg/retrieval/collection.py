"""The job of a request: reads the tenant's objects of a time, and writes one file.

The file has the lines of the archives as they are, compressed with gzip, which anybody can open. It
is written as it is read, and appears whole or not at all: an object that is damaged ends the job
before there is a file.
"""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Final

from faena.errors import ArchiveUnreadable
from faena.pg.archive.catalogue import Entry, Wanted, read_entries
from faena.pg.archive.content import fetch_manifest, read_lines
from faena.pg.archive.store import ObjectStore
from faena.pg.retrieval.period import within
from faena.pg.retrieval.record import Record

if TYPE_CHECKING:
    from faena.pg.postgres import Postgres

_PAGE: Final = 200
_LEVEL: Final = 6
_GZIP: Final = 31
"""The window of zlib that writes gzip, without a time: the same lines are the same bytes."""


class Collection:
    """Collects the lines of one request; read `chunks` once, then the numbers are known."""

    def __init__(
        self,
        pg: Postgres,
        wanted: Record,
        store_at: Callable[[str], ObjectStore],
        report: Callable[[int, int], None],
    ) -> None:
        """`report` gets the objects and rows that are done."""
        self._pg = pg
        self._wanted = wanted
        self._store_at = store_at
        self._report = report
        self._hash = hashlib.sha256()
        self.objects, self.rows, self.size = 0, 0, 0

    @property
    def sha256(self) -> str:
        """Of the file so far."""
        return self._hash.hexdigest()

    async def chunks(self) -> AsyncIterator[bytes]:
        """The file."""
        compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        async for lines in self._lines():
            text = b"\n".join(lines) + b"\n"
            chunk = await asyncio.to_thread(compressor.compress, text)
            if chunk:
                yield self._counted(chunk)
        yield self._counted(compressor.flush())

    def _counted(self, chunk: bytes) -> bytes:
        self._hash.update(chunk)
        self.size += len(chunk)
        return chunk

    async def _lines(self) -> AsyncIterator[list[bytes]]:
        async for entry in self._entries():
            async for lines in self._selected(entry):
                self.rows += len(lines)
                yield lines
            self.objects += 1
            self._report(self.objects, self.rows)

    async def _entries(self) -> AsyncIterator[Entry]:
        """Objects of this tenant alone, page by page; those of all tenants together have none."""
        one = self._wanted
        wanted = Wanted(one.table, one.tenant, one.start, one.end)
        after = 0
        while True:
            async with self._pg.transaction("retrieve") as connection:
                page = await read_entries(connection, wanted, after=after, limit=_PAGE)
            for entry in page:
                yield entry
            if len(page) < _PAGE:
                return
            after = page[-1].id

    async def _selected(self, entry: Entry) -> AsyncIterator[list[bytes]]:
        store = self._store_at(entry.store)
        manifest = await fetch_manifest(store, entry.key)
        about = (manifest.table, manifest.tenant, manifest.sha256)
        if about != (entry.table, self._wanted.tenant, entry.sha256):
            raise ArchiveUnreadable(
                f"the manifest of archive {entry.key} is not the one of the catalogue", op="archive"
            )
        is_within = within(self._wanted.period, manifest.by, entry.key)
        async for lines in read_lines(store, entry.key, entry.sha256):
            found = await asyncio.to_thread(_filtered, lines, is_within)
            if found:
                yield found


def _filtered(lines: Sequence[bytes], is_within: Callable[[bytes], bool]) -> list[bytes]:
    return [one for one in lines if is_within(one)]
