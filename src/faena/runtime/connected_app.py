"""The connection of an app: opened at first use, one for each event loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from faena.engine.engine import Clock
from faena.engine.wire.patience import within
from faena.errors import ConfigError, StoreUnavailable, shown
from faena.inspection.doctor import Finding, visit
from faena.options import QueueOptions
from faena.queue import Queue
from faena.resilience.feature_copy import FeatureCopy, FeatureFollower
from faena.runtime.connections import Connection, Links, Runtime
from faena.runtime.portal import Portal
from faena.telemetry.health import Health, check_health
from faena.telemetry.tracing.choice import chosen
from faena.values.duration import Duration, to_s, to_us
from faena.values.names import check_name

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from faena.telemetry.tracing.tracing import Tracing

T = TypeVar("T")

_TRY_S = 0.5
_LOG_EVERY_S = 5.0

_log = logging.getLogger("faena")


class AppPortal(Portal):
    """The portal of an app."""

    def __init__(self, app: ConnectedApp, links: Links, on_fork: Callable[[], None]) -> None:
        super().__init__(links, on_fork)
        self._app = app

    def health(self, *, timeout: Duration = "2s") -> Health:
        """The health of the broker and the queues; see `Faena.health`."""
        return self.run(self._app.health(timeout=timeout))

    def doctor(self) -> list[Finding]:
        """Check the broker; see `Faena.doctor`."""
        return self.run(self._app.doctor())

    def counts(self, queue: Queue) -> dict[str, int]:
        """Jobs by state; see `Queue.counts`."""
        return self.run(_known(queue).counts())

    def pause(
        self,
        queue: Queue,
        *,
        reason: str = "pause",
        lasting: Duration | None = None,
        by: str = "operator",
    ) -> bool:
        """Serve no more jobs until `resume`, or for a time; see `Queue.pause`."""
        return self.run(_known(queue).pause(reason=reason, lasting=lasting, by=by))

    def resume(self, queue: Queue, *, reason: str = "pause", by: str = "operator") -> bool:
        """End a hold; see `Queue.resume`."""
        return self.run(_known(queue).resume(reason=reason, by=by))


def _known(given: Any) -> Queue:
    if not isinstance(given, Queue):
        raise ConfigError(
            f"queue must be a Queue, got {shown(given)}; use app.queues[name]",
            field="queue",
            value=given,
        )
    return given


class ConnectedApp:
    """An app's access to one broker."""

    def __init__(self, connection: Connection, on_fork: Callable[[], None]) -> None:
        """Nothing is connected yet; `on_fork` is passed to the portal."""
        self._options: dict[str, QueueOptions | None] = {}
        """Queue → options to declare on the server; None: another program declares the queue."""
        self._on_fork = on_fork
        self._links = Links(connection)
        self._portal = AppPortal(self, self._links, on_fork)
        self._trace_with: bool | TracerProvider | None = None
        self._tracing: Tracing | None = None
        self.is_traced = True
        """Whether spans may be made; False once it is known that none are."""

    @property
    def tracing(self) -> Tracing | None:
        """What makes the spans of this app; chosen when it is first needed."""
        if self._tracing is None and self.is_traced:
            self._tracing = chosen(self._trace_with)
            self.is_traced = self._tracing is not None
        return self._tracing

    async def runtime(self) -> Runtime:
        """The open connection of the running event loop."""
        return self.at_hand() or await self._links.here(self._options)

    def at_hand(self) -> Runtime | None:
        """The same, if it is open already."""
        return self._links.at_hand(self._options)

    async def feature_follower(self) -> FeatureFollower:
        """What reads features on the running event loop."""
        return (await self.runtime()).features

    def feature_copy(self) -> FeatureCopy:
        """What this process knows of features."""
        return self._links.feature_copy

    async def connect(self) -> Self:
        """Connect now instead of at first use."""
        await self.runtime()
        return self

    async def await_broker(self) -> None:
        """Connect, however long that takes: a worker may be started before its broker.

        While the broker is unreachable, this is logged immediately, and then now and then.
        """
        log_at = 0.0
        while True:
            try:
                with within(_TRY_S):
                    await self.connect()
            except StoreUnavailable as error:
                if error.op == "join":  # waiting does not help if an embedded server cannot start
                    raise
                if time.monotonic() >= log_at:
                    log_at = time.monotonic() + _LOG_EVERY_S
                    _log.warning("waiting for the broker: %s", error)
                await asyncio.sleep(_TRY_S)
            else:
                return

    async def close(self) -> None:
        """Close this event loop's connections, and leave an embedded server."""
        await self._links.release()
        await asyncio.to_thread(self._links.leave)

    @contextmanager
    def patience(self, patience: Duration) -> Generator[None]:
        """Set how long all calls inside the `with` block may try together.

        Applies to handles, queues, tenants, schedules and the desk, and to `app.sync`. An enqueue
        with its own patience uses that, and `handle.result(timeout=…)` uses its timeout.
        """
        with within(to_us("patience", patience, least_us=1) / 1e6):
            yield

    @property
    def namespace(self) -> str:
        """The prefix of every key."""
        return self._links.connection.namespace

    @property
    def directory(self) -> Path:
        """Where embedded servers keep their data."""
        return self._links.connection.directory

    async def broker(self) -> str:
        """The broker, without its password, and the namespace, for a log line.

        Starts an embedded server if needed; connects to no other server.
        """
        return await self._links.describe()

    async def health(self, *, timeout: Duration = "2s") -> Health:
        """Whether the broker runs scripts, and the state of the queues; within `timeout`.

        An unreachable broker is reported in the answer, not raised.
        """
        own = [name for name, options in self._options.items() if options is not None]
        remote = [name for name in self._options if name not in own]
        within_s = to_s("timeout", timeout)
        return await check_health(self.runtime, own, remote, within_s)

    async def doctor(self) -> list[Finding]:
        """Check the broker as `faena doctor` does, even if the app cannot connect to it."""
        address = await self._links.address()
        is_embedded = self._links.is_embedded
        return await visit(address, namespace=self.namespace, is_embedded=is_embedded)

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def sync(self) -> AppPortal:
        """The same operations for code without an event loop: Django, Flask, scripts."""
        return self._portal

    @contextmanager
    def override(
        self,
        *,
        url: str | None = None,
        namespace: str | None = None,
        clock: Clock | None = None,
        is_alone: bool = False,
    ) -> Generator[Self]:
        """Use another broker inside the `with` block, as `faena.testing` does.

        Omitted values are unchanged; with `is_alone`, the app declares remote queues as well. The
        app's own connections stay open meanwhile. The caller must close the connections opened
        inside, with `close()`, before the end of the block.
        """
        kept = self._links, self._portal, self.is_traced, self._tracing
        now = self._links.connection
        self._links = Links(
            replace(
                now,
                url=url or now.url,
                namespace=check_name("namespace", namespace or now.namespace),
                clock=clock or now.clock,
                is_alone=is_alone,
            )
        )
        self._portal = AppPortal(self, self._links, self._on_fork)
        try:
            yield self
        finally:
            self._portal.close()
            self._links, self._portal, self.is_traced, self._tracing = kept
