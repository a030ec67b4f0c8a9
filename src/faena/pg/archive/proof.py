"""Are objects still what was read back, when their rows are about to end?

It may be long ago: a detachment waits for readers, a deletion for whoever has locked a row. So they
are read again as the last step of the transaction that ends the rows, when all its waiting is over.
Their lines were compared before; now the manifest and the checksum are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from faena.errors import ArchiveUnreadable, StoreRejected
from faena.pg.archive.catalogue import Entry, Wanted, read_entries
from faena.pg.archive.content import check_bytes, fetch_manifest
from faena.pg.archive.deletion import Changed
from faena.pg.archive.manifest import Manifest
from faena.pg.archive.restore import check_manifest
from faena.pg.archive.store import ObjectStore

if TYPE_CHECKING:
    from faena.pg.archive.archiver import Stores
    from faena.pg.postgres import Connection

_AT_ONCE: Final = 8
"""Objects that are stored or read back at a time."""
_STRETCH: Final = 32
"""Objects that are read while the transaction is idle; it ends if that lasts for a lease."""
_PAGE: Final = 1000

_log = logging.getLogger("faena.pg")

T = TypeVar("T")

Known: TypeAlias = tuple[ObjectStore, Entry | Manifest]
"""An object, and what it must be."""


async def prove_all(connection: Connection, stores: Stores, wanted: Wanted) -> None:
    """All objects of some entries; `Changed` if one is gone or another one."""
    after = 0
    while some := await read_entries(connection, wanted, after=after, limit=_PAGE):
        known = [(stores.at(one.store), one) for one in some]
        await prove(connection, wanted.table, known)
        after = some[-1].id


async def prove(connection: Connection, table: str, known: Sequence[Known]) -> None:
    """The same for objects that are known."""
    try:
        for place in range(0, len(known), _STRETCH):
            await each(known[place : place + _STRETCH], _look)
            await connection.execute("SELECT 1")
    except (ArchiveUnreadable, StoreRejected) as error:
        _log.warning("%s is exported again: %s", table, error)
        raise Changed(
            f"archives of {table} are not what was read back, and nothing was deleted: {error}",
            op="archive",
        ) from error


async def _look(known: Known) -> None:
    store, one = known
    check_manifest(await fetch_manifest(store, one.key), one)
    await check_bytes(store, one.key, one.sha256)


async def each(items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Some at a time; the first error ends all."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(item: T) -> None:
        async with room:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for item in items:
                group.create_task(one(item))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
