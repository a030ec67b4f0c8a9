"""Removes script libraries that no worker uses any more, so that they do not pile up.

Each version of Faena loads its own library of about 250 kB into the servers. A server does not tell
which libraries are in use. Workers name theirs (key `about`); producers, and other apps on the same
server, do not. So a library is removed if no worker of this app has named it for an hour. A program
that still needs it loads it again with the first call that finds it missing. This process then
knows that the library is in use, and does not remove it again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from faena.engine import Engine
from faena.engine.script_library import library_name
from faena.engine.scripts import pairs
from faena.engine.wire.address import Node
from faena.errors import StoreError

_EVERY_S: Final = 3600.0

_OURS = re.compile(rb"faena_[0-9a-f]{10}")


class OldLibraries:
    """Checks the libraries of all servers once an hour."""

    def __init__(
        self,
        engine: Engine,
        shards: Callable[[], Awaitable[Iterable[str]]],
    ) -> None:
        self._engine = engine
        self._shards = shards
        self._unnamed: dict[Node, set[str]] = {}
        """Libraries that no worker named at the last check."""
        self._removed: set[tuple[Node, str]] = set()

    async def run(self) -> None:
        """Check until cancelled; a server that refuses the commands keeps its libraries."""
        while True:
            await self.look()
            await asyncio.sleep(_EVERY_S)

    async def look(self) -> list[str]:
        """Remove libraries not named since the last check; returns their names."""
        gone: list[str] = []
        try:
            named = await self._named()
            nodes = await self._engine.wire.nodes()
        except StoreError:
            return []
        for node in nodes:
            try:
                gone += await self._remove(node, named)
            except StoreError:
                self._unnamed.pop(node, None)
        return gone

    async def _remove(self, node: Node, named: set[str]) -> list[str]:
        unnamed = {name for name in await self._loaded(node) if name not in named}
        old = unnamed & self._unnamed.get(node, set())
        self._unnamed[node] = unnamed
        gone = sorted(name for name in old if (node, name) not in self._removed)
        for name in gone:
            self._removed.add((node, name))
            await self._engine.wire.call("FUNCTION", "DELETE", name, node=node)
        return gone

    async def _loaded(self, node: Node) -> list[str]:
        listed = await self._engine.wire.call(
            "FUNCTION", "LIST", "LIBRARYNAME", "faena_*", node=node
        )
        names = [pairs(library)["library_name"] for library in listed]
        return [name.decode() for name in names if _OURS.fullmatch(name)]

    async def _named(self) -> set[str]:
        """Libraries named by workers that are alive, or were a moment ago."""
        named = {library_name()}
        for shard in await self._shards():
            about = pairs(await self._engine.command("HGETALL", shard, "about"))
            named |= {said.decode().split(" ")[3] for said in about.values()}
        return named
