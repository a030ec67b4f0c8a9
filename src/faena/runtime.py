"""An app's connection to its broker, for one event loop.

Settings come from the app; the address from the program, else from the environment, else from an
embedded server that this process starts or joins.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from faena.client import Client
from faena.embedded import Embedded
from faena.engine import Address, Engine, Wire
from faena.engine.engine import Clock
from faena.errors import StoreUnavailable
from faena.inspector import Inspector
from faena.services.doctor import refuse_eviction


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How an app reaches its broker."""

    name: str
    url: str | None
    namespace: str
    directory: Path
    allow_eviction: bool
    clock: Clock | None


class Broker:
    """The broker's address, found once per process; holds the embedded server if there is one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._embedded: Embedded | None = None
        self._address: Address | None = None

    def address(self, environ: Mapping[str, str]) -> Address:
        """Find the broker, or start one; blocks while an embedded server comes up."""
        if self._address is None:
            given = self._connection.url
            found = Address.parse(given) if given else Address.from_environ(environ)
            if found is None:
                self._embedded = Embedded.join(self._connection.directory)
                found = Address.parse(self._embedded.url)
            self._address = found
        return self._address

    @property
    def is_embedded(self) -> bool:
        """Whether the server is one that members of this program start and keep."""
        return self._embedded is not None

    async def revive(self) -> None:
        """Start the embedded server again if it died; when it will not start, the call fails."""
        if self._embedded is not None:
            with contextlib.suppress(StoreUnavailable):
                await asyncio.to_thread(self._embedded.ensure)

    def leave(self) -> None:
        """Let the embedded server go, if this process holds one."""
        self._address = None
        if self._embedded is not None:
            self._embedded.leave()
            self._embedded = None


class Runtime:
    """Engine, client and inspector on one event loop."""

    def __init__(self, connection: Connection, broker: Broker) -> None:
        self._connection = connection
        self._broker = broker
        self._settings: dict[str, Mapping[str, str]] = {}
        self._opening: asyncio.Future[None] | None = None
        self.engine: Engine
        self.client: Client
        self.inspector: Inspector

    def know(self, settings: Mapping[str, Mapping[str, str]]) -> None:
        """Learn of queues; those declared after the connection was opened too."""
        for queue, values in settings.items():
            if queue not in self._settings:
                self._settings[queue] = values
                if self._opening is not None:
                    self.engine.know(queue, values)

    async def open(self) -> None:
        """Connect at first use; concurrent first uses share one attempt."""
        if self._opening is None:
            address = await asyncio.to_thread(self._broker.address, os.environ)
            if self._opening is None:
                self._build(address)
                self._opening = asyncio.ensure_future(self._check())
        try:
            await asyncio.shield(self._opening)
        except BaseException:
            if self._opening.done():
                self._opening = None
            raise

    def _build(self, address: Address) -> None:
        self.engine = self.new_engine(address)()
        self.client = Client(self.engine)
        self.inspector = Inspector(self.engine)

    def new_engine(self, address: Address) -> Callable[[], Engine]:
        """A maker of further engines with connections of their own, for other threads."""

        def make() -> Engine:
            revive = self._broker.revive if self._broker.is_embedded else None
            engine = Engine(
                Wire(address, client_name=f"faena-{self._connection.name}", revive=revive),
                namespace=self._connection.namespace,
                clock=self._connection.clock,
            )
            for queue, values in self._settings.items():
                engine.know(queue, values)
            return engine

        return make

    async def _check(self) -> None:
        await refuse_eviction(self.engine.wire, allow=self._connection.allow_eviction)

    async def close(self) -> None:
        """Close every connection."""
        if self._opening is not None:
            self._opening = None
            await self.inspector.close()
            await self.engine.wire.close()
