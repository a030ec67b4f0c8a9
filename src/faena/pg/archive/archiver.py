"""Moves the old rows of one table, slice by slice; what was interrupted is finished by the next.

    plain table      export → store → read back → delete and compare, in one transaction
    partitioned      export → store → read back, all slices → detach → compare, read again and drop

Objects are known to the catalogue before they are stored, and count only from the transaction in
which their rows are deleted. See `fence.py` for two archivers at once.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from psycopg import errors as pg_errors

from faena.errors import ArchiveUnreadable, FaenaError, StoreRejected, StoreUnavailable
from faena.pg.archive.catalogue import (
    Entry,
    State,
    Wanted,
    add_entries,
    change_period,
    change_state,
    read_entries,
)
from faena.pg.archive.content import fetch_manifest, read_back
from faena.pg.archive.deletion import (
    Changed,
    begin_deletion,
    delete_slice,
    drop_partition,
    next_key,
)
from faena.pg.archive.export import Exported, Exporter, Slice
from faena.pg.archive.fence import Fence, Superseded
from faena.pg.archive.manifest import manifest_key
from faena.pg.archive.policy import Archive
from faena.pg.archive.proof import each, prove, prove_all
from faena.pg.archive.restore import check_manifest
from faena.pg.archive.source import Source, exact
from faena.pg.archive.span import Place, Unit, place_of
from faena.pg.archive.store import ObjectStore
from faena.pg.partition.lock import patiently

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres

_TRIES: Final = 3
"""Of a slice whose rows change while it is exported."""
_PAGE: Final = 1000
_FRESH_S: Final = 5.0
"""What was read back so short ago is not read again."""
_TOMBSTONE: Final = timedelta(days=7)
"""So long, discarded objects are looked for and removed again: a frozen process may still write
one that was already removed."""

_log = logging.getLogger("faena.pg")


class Progress(NamedTuple):
    """How far a run is."""

    table: str
    step: str
    period: str
    rows: int
    """That have left the table, or were exported with a partition, since the run began."""
    objects: int
    step_rows: int
    """Of them, in this step."""
    step_objects: int


Report: TypeAlias = Callable[[Progress], None]


class Stores(Protocol):
    """Where the objects of a program are."""

    def of(self, archive: Archive) -> ObjectStore:
        """The store of a policy."""
        ...

    def at(self, url: str) -> ObjectStore:
        """The store that the catalogue names."""
        ...


class Archiver:
    """Archives and deletes the rows of one unit after another; the caller holds the fence."""

    def __init__(
        self, pg: Postgres, source: Source, fence: Fence, stores: Stores, report: Report | None
    ) -> None:
        """`stores` finds the store of a policy, or the one that the catalogue names."""
        self._pg = pg
        self._source = source
        self._fence = fence
        self._stores = stores
        self._report = report
        archive = source.policy.then
        self._exporter = Exporter(pg, source, archive) if isinstance(archive, Archive) else None
        self._store = stores.of(archive) if isinstance(archive, Archive) else None
        self.rows, self.objects = 0, 0

    # -- what was left ----------------------------------------------------------------------------

    async def sweep(self) -> None:
        """Give up objects of an interrupted export, and remove those that were given up.

        Those that were stored and read back for a partition are kept: its export continues.
        """
        await self._discard(None, ["writing"])

    async def discard(self, unit: Unit) -> None:
        """Give up what was exported of a unit: its rows have changed, or need no archive."""
        await self._discard(unit.start, ["writing", "verified"])

    async def _discard(self, start: datetime | None, states: Sequence[State]) -> None:
        async with self._pg.transaction("archive") as connection:
            await self._fence.prove(connection)
            await change_period(connection, self._source.name, start, "discarded", states)
        after = 0
        while some := await self._discarded(after):
            await self._remove(some)
            after = some[-1].id

    async def _discarded(self, after: int) -> list[Entry]:
        wanted = Wanted(self._source.name, states=("discarded",))
        async with self._pg.transaction("archive") as connection:
            return await read_entries(connection, wanted, after=after, limit=_PAGE)

    async def _remove(self, entries: Sequence[Entry]) -> None:
        """An object that is removed twice is no error; its record is a tombstone for a while."""
        gone: list[int] = []
        for url in {one.store for one in entries}:
            here = [one for one in entries if one.store == url]
            if await self._remove_from(url, [one.key for one in here]):
                gone += [one.id for one in here]
        async with self._pg.transaction("archive") as connection:
            await self._fence.prove(connection)
            await connection.execute(
                "DELETE FROM faena.archives WHERE id = ANY(%s) AND state = 'discarded'"
                " AND changed_at < now() - %s",
                [gone, _TOMBSTONE],
            )

    async def _remove_from(self, url: str, keys: Sequence[str]) -> bool:
        """Leftovers in a store that the policy has left keep no row from leaving."""
        try:
            await self._stores.at(url).delete(*keys, *map(manifest_key, keys))
        except (StoreUnavailable, StoreRejected, ArchiveUnreadable) as error:
            if self._store is not None and url == self._store.url:
                raise
            _log.warning("%d leftovers in %s cannot be removed: %s", len(keys), url, error)
            return False
        return True

    # -- a table without partitions ---------------------------------------------------------------

    async def leave_period(self, unit: Unit) -> None:
        """Move all rows of a period."""
        for is_nobody in (False, True) if self._source.policy.tenant else (False,):
            place: Place | None = Place(is_nobody)
            while place is not None:
                place = await self._patiently(unit, place)

    async def _patiently(self, unit: Unit, after: Place) -> Place | None:
        for _ in range(_TRIES):
            try:
                return await self._leave_slice(unit, after)
            except FaenaError as error:
                if not _is_changed(error):
                    raise
                await self.discard(unit)
        raise Changed(
            f"rows of {self._source.name} from {unit} change all the time, and were not deleted: "
            f"they are tried again with the next run",
            op="archive",
        )

    async def _leave_slice(self, unit: Unit, after: Place) -> Place | None:
        if self._exporter is None:
            return await self._delete_unarchived(unit, after)
        some = await self._exporter.read(unit, after)
        if some is None:
            return None
        ids, read_at = await self._stored(some), monotonic()
        async with self._own(some), self._pg.transaction("archive") as connection:
            await begin_deletion(connection, self._source, self._fence)
            reach = (some.after, some.last)
            gone = await delete_slice(connection, self._source, unit, reach, some.summaries)
            moved = await change_state(connection, ids, "archived", of=["writing"])
            if moved != len(ids):
                raise Changed(
                    f"archives of {self._source.name} were changed meanwhile", op="archive"
                )
            await self._fence.count(connection, gone, moved)
            if self._store is not None and monotonic() - read_at > _FRESH_S:
                known = [(self._store, one.manifest) for one in some.objects]
                await prove(connection, self._source.name, known)
        self._tell("deleted", unit, gone, len(ids))
        return some.end

    @asynccontextmanager
    async def _own(self, some: Slice) -> AsyncGenerator[None]:
        """Whoever finds that another has taken over removes what it has just stored: the other
        may have removed it before it was there."""
        try:
            yield
        except Superseded:
            keys = [one.manifest.key for one in some.objects]
            if self._store is not None:
                await self._store.delete(*keys, *map(manifest_key, keys))
            raise

    async def _delete_unarchived(self, unit: Unit, after: Place) -> Place | None:
        async with self._pg.transaction("archive") as connection:
            await begin_deletion(connection, self._source, self._fence)
            last = await next_key(connection, self._source, unit, after)
            if last is None:
                return None
            gone = await delete_slice(connection, self._source, unit, (after, last), None)
            await self._fence.count(connection, gone, 0)
        self._tell("deleted", unit, gone, 0)
        return Place(after.is_nobody, last)

    # -- a partition ------------------------------------------------------------------------------

    async def export_all(self, unit: Unit) -> None:
        """Export what was not exported yet of a partition."""
        if self._exporter is None:
            return await self.discard(unit)
        place = await self._reached(unit)
        for is_nobody in (False, True) if self._source.policy.tenant else (False,):
            if is_nobody >= place.is_nobody:
                here = place if is_nobody == place.is_nobody else Place(is_nobody)
                await self._export_part(self._exporter, unit, here)
        return None

    async def _reached(self, unit: Unit) -> Place:
        """Where an interrupted export had come; its objects are read again, for time has passed.

        If one of them is not what it was, or was exported for other columns, all begins anew: the
        rows are still there.
        """
        last, after = None, 0
        while some := await self._verified(unit, after):
            if not await self._are_usable(some):
                await self.discard(unit)
                return Place()
            last, after = some[-1], some[-1].id
        return Place() if last is None else place_of(self._source, last.last_key)

    async def _verified(self, unit: Unit, after: int) -> list[Entry]:
        wanted = Wanted(self._source.name, states=("verified",), period=unit.start)
        async with self._pg.transaction("archive") as connection:
            return await read_entries(connection, wanted, after=after, limit=_PAGE)

    async def _are_usable(self, entries: Sequence[Entry]) -> bool:
        if not all(self._is_continued(one) for one in entries):
            return False
        damaged: list[FaenaError] = []

        async def look(entry: Entry) -> None:
            try:
                await self._read_again(entry)
            except (ArchiveUnreadable, StoreRejected) as error:
                damaged.append(error)

        await each(entries, look)
        for error in damaged[:1]:
            _log.warning("%s is exported again: %s", self._source.name, error)
        return not damaged

    def _is_continued(self, entry: Entry) -> bool:
        """Whether this policy would have exported it in the same way, to the same place."""
        source = self._source
        return (
            self._store is not None
            and entry.store == self._store.url
            and entry.schema_digest == source.schema_digest
            and entry.tenant_column == source.policy.tenant
            and entry.key_columns == [*source.order]
        )

    async def _read_again(self, entry: Entry) -> None:
        store = self._stores.at(entry.store)
        check_manifest(await fetch_manifest(store, entry.key), entry)
        if await read_back(store, entry.key, entry.sha256) != entry.summary:
            raise ArchiveUnreadable(f"archive {entry.key} has other rows", op="archive")

    async def _export_part(self, exporter: Exporter, unit: Unit, here: Place) -> None:
        while (some := await exporter.read(unit, here)) is not None:
            ids = await self._stored(some)
            async with self._own(some), self._pg.transaction("archive") as connection:
                await self._fence.prove(connection, "exporting")
                await change_state(connection, ids, "verified", of=["writing"])
            here = some.end
            self._tell("exported", unit, some.rows, len(ids))

    async def drop(self, unit: Unit) -> int:
        """Compare a detached partition with its archives, read these again, and drop it, in one
        transaction."""
        wanted = Wanted(self._source.name, states=("verified",), period=unit.start)

        async def look_again(connection: Connection) -> None:
            await prove_all(connection, self._stores, wanted)

        is_archived = self._exporter is not None

        async def work(connection: Connection) -> int:
            await exact(connection)
            await self._fence.prove(connection, "dropping")
            look = look_again if is_archived else None
            gone = await drop_partition(connection, self._source, unit, look)
            name = self._source.name
            moved = await change_period(connection, name, unit.start, "archived", ["verified"])
            await self._fence.note(connection, unit.start, unit.end, None)
            await self._fence.count(connection, gone, moved)
            return gone

        gone = await patiently(self._pg, "archive", self._source.name, work)
        self._tell("dropped", unit, 0 if is_archived else gone, 0)
        return gone

    # -- objects ----------------------------------------------------------------------------------

    async def _stored(self, some: Slice) -> list[int]:
        """Enter, store and read back the objects of a slice; returns their ids."""
        assert self._store is not None  # noqa: S101 - an exporter has a store
        store = self._store
        async with self._pg.transaction("archive") as connection:
            await self._fence.prove(connection, "storing")
            added = [(one.manifest, one.last.as_stored()) for one in some.objects]
            ids = await add_entries(connection, store.url, added, self._source.order)
        await each(some.objects, lambda one: _store(store, one))
        return ids

    def _tell(self, step: str, unit: Unit, rows: int, objects: int) -> None:
        self.rows += rows
        self.objects += objects
        if self._report is not None:
            name, sums = self._source.name, (self.rows, self.objects)
            self._report(Progress(name, step, str(unit), *sums, rows, objects))


async def _store(store: ObjectStore, one: Exported) -> None:
    """Write an object and its manifest, and read both back."""
    key = one.manifest.key
    await store.put(key, one.packed.blob)
    await store.put(manifest_key(key), one.manifest.encode())
    found = await read_back(store, key, one.packed.sha256)
    if found != one.packed.summary or await fetch_manifest(store, key) != one.manifest:
        raise ArchiveUnreadable(f"archive {key} does not read as it was written", op="archive")


def _is_changed(error: FaenaError) -> bool:
    """Whether rows were written by others meanwhile."""
    return isinstance(error, Changed) or isinstance(error.__cause__, pg_errors.SerializationFailure)
