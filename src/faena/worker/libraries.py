"""Removes libraries of scripts that no worker runs any more, so that upgrades do not pile up.

Each version of Faena loads a library of its own into the servers, about 250 kB, and nobody unloads
it. A server does not tell who uses one, and when: a worker says it of itself (`about`), a producer
or another app on the same server does not. So a library goes when no worker of this app has named
it for an hour. Whoever needs it all the same loads it again with the call that finds it missing;
and since it then is in use, this process lets it be from then on.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from faena.engine import Engine
from faena.engine.loader import library_name
from faena.engine.scripts import pairs
from faena.engine.wire.address import Node
from faena.errors import StoreError

_EVERY_S: Final = 3600.0

_OURS = re.compile(rb"faena_[0-9a-f]{10}")


class OldLibraries:
    """Looks at the libraries of all servers once an hour."""

    def __init__(
        self,
        engine: Engine,
        shards: Callable[[], Awaitable[Iterable[str]]],
    ) -> None:
        self._engine = engine
        self._shards = shards
        self._unnamed: dict[Node, set[str]] = {}
        """Those that nobody named at the last look."""
        self._removed: set[tuple[Node, str]] = set()

    async def run(self) -> None:
        """Look again and again; a server that refuses it keeps what it has."""
        while True:
            await self.look()
            await asyncio.sleep(_EVERY_S)

    async def look(self) -> list[str]:
        """Remove what nobody has named since the last look; returns the names."""
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
        """By any worker that is there, or was a moment ago."""
        named = {library_name()}
        for shard in await self._shards():
            about = pairs(await self._engine.command("HGETALL", shard, "about"))
            named |= {said.decode().split(" ")[3] for said in about.values()}
        return named
