"""An app's connections to its broker: one `Runtime` for each event loop, managed by `Links`.

Settings come from the app. The address comes from the program, else from the environment, else from
an embedded server that this process starts or joins.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

from faena.embedded import Embedded
from faena.engine import Address, Engine, Wire
from faena.engine.engine import Clock
from faena.engine.settings import UNSERVED, declaration
from faena.engine.wire.patience import joined
from faena.errors import ConfigError, StoreUnavailable
from faena.flows.relay import Relay
from faena.inspection.doctor import refuse_eviction
from faena.inspection.inspector import Inspector
from faena.inspection.past import PastJobs
from faena.options import QueueOptions
from faena.producing.batcher import CallIds
from faena.producing.client import Client
from faena.resilience.cached_read import CachedReads
from faena.resilience.feature_copy import DeclaredFeatures, FeatureCopy, FeatureFollower
from faena.resilience.gate import Gate
from faena.resilience.push import UpstreamPush
from faena.sharding.router import Queues, Routers

_ENVIRONMENT = "FAENA_ENV"
_FOR_EMBEDDED = ("development", "test")
"""Environments in which an app without an address uses an embedded server; also if none is set."""

_log = logging.getLogger("faena")


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How an app connects to its broker."""

    name: str
    url: str | None
    namespace: str
    directory: Path
    allow_eviction: bool
    patience_s: float
    """How long a producer or a reader tries to reach the broker; workers try longer."""
    clock: Clock | None
    is_alone: bool = False
    """Whether this program also declares queues of other programs; used in tests."""
    upstreams: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """The settings of upstreams by name; more may be declared later."""
    features: DeclaredFeatures = field(default_factory=DeclaredFeatures)
    past: PastJobs = field(default_factory=PastJobs)
    """Where jobs are read that the broker does not have any more."""


class Broker:
    """The broker's address, found once per process; holds the embedded server if there is one."""

    def __init__(self, connection: Connection) -> None:
        self._directory = connection.directory
        self._given = None if connection.url is None else Address.parse(connection.url)
        self._embedded: Embedded | None = None
        self._address: Address | None = None
        self._lock = threading.Lock()

    def address(self, environ: Mapping[str, str]) -> Address:
        """Find the broker, or start one; blocks while an embedded server starts."""
        with self._lock:  # several threads may be first, and each join needs one leave
            if self._address is None:
                self._address = self._find(environ)
            return self._address

    def _find(self, environ: Mapping[str, str]) -> Address:
        found = self._given or Address.from_environ(environ)
        if found is None:
            _refuse_embedded(environ)
            self._embedded = Embedded.join(self._directory)
            found = Address.parse(self._embedded.url)
            _log.warning(
                "no FAENA_URL: using %s; for production set FAENA_URL=valkey://host:6379",
                self._words(found),
            )
        return found

    def describe(self, environ: Mapping[str, str]) -> str:
        """The broker for a log line, without a password."""
        return self._words(self.address(environ))

    def _words(self, address: Address) -> str:
        if self._embedded is None:
            return str(address)
        return f"an embedded Valkey in {self._directory.resolve()}"

    @property
    def is_embedded(self) -> bool:
        """Whether the server is an embedded one."""
        return self._embedded is not None

    async def restart(self) -> None:
        """Start the embedded server again if it died; if it cannot start, the call fails."""
        if self._embedded is not None:
            with contextlib.suppress(StoreUnavailable):
                await asyncio.to_thread(self._embedded.ensure)

    def forked(self) -> None:
        """Reset the lock in a forked child: another thread of the parent may have held it."""
        self._lock = threading.Lock()

    def leave(self) -> None:
        """Leave the embedded server, if this process has joined one."""
        with self._lock:
            self._address = None
            if self._embedded is not None:
                self._embedded.leave()
                self._embedded = None


def _refuse_embedded(environ: Mapping[str, str]) -> None:
    """An app whose address is missing by mistake must not silently use an embedded server."""
    if not environ.get("FAENA_URL", "unset").strip():
        raise ConfigError(
            "FAENA_URL must be an address such as valkey://localhost:6379/0, got an empty string: "
            "unset it to use an embedded Valkey",
            field="FAENA_URL",
            value="",
        )
    where = environ.get(_ENVIRONMENT, "").strip()
    if where and where not in _FOR_EMBEDDED:
        raise ConfigError(
            f"with {_ENVIRONMENT}={where} an app must have a broker: set FAENA_URL (an embedded "
            f"Valkey needs {_ENVIRONMENT} unset, or one of {', '.join(_FOR_EMBEDDED)})",
            field="FAENA_URL",
        )


class Runtime:
    """Engine, client and inspector on one event loop."""

    def __init__(self, connection: Connection, broker: Broker, copy: FeatureCopy) -> None:
        """`copy` is what this process knows of features, in all event loops."""
        self._connection = connection
        self._broker = broker
        self._feature_copy = copy
        self._queues: dict[str, QueueOptions | None] = {}
        self._opening: asyncio.Future[None] | None = None
        self._is_open = False
        self.engine: Engine
        self.patient_engine: Engine
        """The same for workers, which wait longer before they fail."""
        self.routers: Routers
        self.client: Client
        self.inspector: Inspector
        self.relay: Relay
        self.gate: Gate
        self.reads: CachedReads
        self.upstream_push: UpstreamPush
        self.features: FeatureFollower

    def is_ready(self, queues: Queues) -> bool:
        """Whether it is open and knows these queues; queues are never removed."""
        return self._is_open and len(queues) == len(self._queues)

    def know(self, queues: Queues) -> None:
        """Add queues, also those declared after the connection was opened."""
        for queue, options in queues.items():
            if queue not in self._queues:
                is_taken = options is None and self._connection.is_alone
                self._queues[queue] = QueueOptions() if is_taken else options
                if self._opening is not None:
                    self.engine.know(queue, _declaration(self._queues[queue]))

    async def open(self) -> None:
        """Connect at first use; concurrent first uses share one attempt."""
        address = await asyncio.to_thread(self._broker.address, os.environ)
        await joined(self._opening, lambda: self._begin(address), self._connection.patience_s)
        self._is_open = self._opening is not None and self._opening.done()  # not closed meanwhile

    def _begin(self, address: Address) -> asyncio.Future[None]:
        if self._opening is None:
            self._build(address)
            self._opening = asyncio.ensure_future(self._check())
            self._opening.add_done_callback(self._opened)
        return self._opening

    def _opened(self, opening: asyncio.Future[None]) -> None:
        """Forget a failed attempt, so that the next one can start."""
        has_failed = opening.cancelled() or opening.exception() is not None
        if has_failed and self._opening is opening:
            self._opening = None

    def _build(self, address: Address) -> None:
        self.patient_engine = self.new_engine(address)()
        self.engine = _with_patience(self.patient_engine, self._connection.patience_s)
        self.routers = Routers(self.engine, self._queues)
        self.client = Client(self.engine, self.routers)
        self.inspector = Inspector(self.engine, self.routers, self._connection.past)
        self.relay = Relay(self.engine, self.client)
        upstreams = self._connection.upstreams
        self.gate = Gate(self.engine, upstreams, CallIds())
        self.reads = CachedReads(self.engine)
        self.upstream_push = UpstreamPush(self.engine, self.gate, upstreams)
        self.features = FeatureFollower(self.engine, self._connection.features, self._feature_copy)

    def new_engine(self, address: Address) -> Callable[[], Engine]:
        """A function that creates engines with their own connections, for other threads."""

        def make() -> Engine:
            restart = self._broker.restart if self._broker.is_embedded else None
            engine = Engine(
                Wire(address, client_name=f"faena-{self._connection.name}", restart=restart),
                namespace=self._connection.namespace,
                clock=self._connection.clock,
            )
            for queue, options in self._queues.items():
                engine.know(queue, _declaration(options))
            return engine

        return make

    async def _check(self) -> None:
        try:
            await refuse_eviction(
                self.engine.wire,
                allow=self._connection.allow_eviction,
                patience_s=self._connection.patience_s,
            )
        except BaseException:
            await self.engine.wire.close()
            raise

    async def close(self) -> None:
        """Close every connection."""
        opening = self._opening
        if opening is not None:
            self._opening, self._is_open = None, False
            opening.cancel()  # its caller may no longer wait for it
            await asyncio.wait([opening])
            await self.reads.close()
            await self.client.close()
            await self.features.close()
            await self.inspector.close()
            await self.upstream_push.close()
            await self.routers.close()
            await self.engine.wire.close()


def _with_patience(engine: Engine, patience_s: float) -> Engine:
    """A copy of an engine with another patience; both share connections and settings."""
    twin = copy.copy(engine)
    twin.patience_s = patience_s
    return twin


def _declaration(options: QueueOptions | None) -> Mapping[str, str] | None:
    return None if options is None else {**declaration(options), **UNSERVED}


class Links:
    """Everything an app has open: the broker, and a runtime for each event loop."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._broker = Broker(connection)
        self.feature_copy = FeatureCopy()
        self._runtimes: WeakKeyDictionary[asyncio.AbstractEventLoop, Runtime] = WeakKeyDictionary()
        self._last: tuple[ReferenceType[asyncio.AbstractEventLoop], Runtime] | None = None
        """The last loop and its runtime, because most programs have only one."""
        self._parents: list[object] = []

    def at_hand(self, queues: Queues) -> Runtime | None:
        """The runtime of `here`, if it is open already."""
        last, loop = self._last, asyncio.get_running_loop()
        if last is None or last[0]() is not loop:
            if (runtime := self._runtimes.get(loop)) is None:
                return None
            last = self._last = ref(loop), runtime
        return last[1] if last[1].is_ready(queues) else None

    async def here(self, queues: Queues) -> Runtime:
        """The open runtime of the running event loop, which knows these queues."""
        loop = asyncio.get_running_loop()
        runtime = self._runtimes.get(loop)
        if runtime is None:
            runtime = self._runtimes[loop] = Runtime(
                self.connection, self._broker, self.feature_copy
            )
        runtime.know(queues)
        await runtime.open()
        return runtime

    async def address(self) -> Address:
        """The broker's address; an embedded server that died is started again."""
        return await asyncio.to_thread(self._broker.address, os.environ)

    @property
    def is_embedded(self) -> bool:
        """Whether the broker is an embedded one, once its address was asked for."""
        return self._broker.is_embedded

    async def describe(self) -> str:
        """The broker and the namespace for a log line, without a password."""
        broker = await asyncio.to_thread(self._broker.describe, os.environ)
        return f"{broker}, namespace {self.connection.namespace}"

    async def release(self) -> None:
        """Close the connections of the running event loop."""
        self._last = None
        runtime = self._runtimes.pop(asyncio.get_running_loop(), None)
        if runtime is not None:
            await runtime.close()

    def leave(self) -> None:
        """Leave an embedded server unless another event loop uses it; blocks while it ends."""
        if all(loop.is_closed() for loop in self._runtimes):
            self._broker.leave()

    def forked(self, *others: object) -> None:
        """In a forked child: keep the parent's connections untouched, and open new ones.

        The child shares the parent's sockets and selectors, also those of `others`. If they were
        garbage-collected here, that would close or change them for the parent as well.
        """
        self._broker.forked()
        self._parents += [self._runtimes, *self._runtimes, *others]
        self._runtimes, self._last = WeakKeyDictionary(), None
