"""What an app tells about itself: how all of its queues do."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from faena.engine.wire.patience import Shared
from faena.options.fields import check_is
from faena.options.metrics import Metrics
from faena.resilience.feature_views import FeatureView
from faena.runtime.connections import Connection, Runtime
from faena.telemetry.measured import Measurements
from faena.telemetry.metrics.exposition import Exposition
from faena.telemetry.metrics.page import page_of
from faena.telemetry.snapshot import Snapshot
from faena.telemetry.snapshot_reader import SnapshotReader
from faena.upstream_registry import UpstreamRegistry
from faena.values.duration import Duration, to_s


class TelemetryRegistry(UpstreamRegistry):
    """The part of an app that reads and shows what happens in it."""

    def __init__(self, name: str, connection: Connection, on_fork: Callable[[], None]) -> None:
        super().__init__(name, connection, on_fork)
        self._snapshots: WeakKeyDictionary[Runtime, dict[bool, _Snapshots]] = WeakKeyDictionary()
        """Of each event loop; apart with and without tenants."""
        self.metric_options = Metrics()

    async def snapshot(self, *, max_age: Duration = "1s", tenants: bool = True) -> Snapshot:
        """All queues at one instant, with the broker, upstreams and features.

        However many callers ask, the broker is asked once in `max_age`. Tenants take a call for
        about five hundred of them; without, `tenants` of each queue is empty.
        """
        check_is("tenants", tenants, bool)
        age_s = to_s("max_age", max_age)
        runtime = await self.runtime()
        kinds = self._snapshots.setdefault(runtime, {})
        if tenants not in kinds:
            reader = SnapshotReader(
                runtime.engine, runtime.routers, self.upstream_views, self._feature_views
            )
            kinds[tenants] = _Snapshots(reader, lambda: list(self.queues), has_tenants=tenants)
        return await kinds[tenants].latest(age_s, runtime.engine.patience_s)

    async def metrics(
        self, *, measured: Measurements | None = None, openmetrics: bool = False
    ) -> Exposition:
        """A page for Prometheus: all queues, the broker, upstreams and features; see
        docs/metrics.md.

        `measured` is what a worker of this process has measured (`worker.measured`). In OpenMetrics
        the page has exemplars. It is there within five seconds, whatever the broker does.
        """
        check_is("openmetrics", openmetrics, bool)
        tenants = self.metric_options.tenants > 0
        return await page_of(
            self.name,
            self.metric_options,
            lambda: self.snapshot(tenants=tenants),
            measured,
            openmetrics=openmetrics,
        )

    async def _feature_views(self) -> Sequence[FeatureView]:
        return [*(await self.features()).features.values()]


class _Snapshots:
    """The last snapshot, and the one that is being read."""

    def __init__(
        self, reader: SnapshotReader, queues: Callable[[], list[str]], *, has_tenants: bool
    ) -> None:
        self._reader, self._queues, self._has_tenants = reader, queues, has_tenants
        self._last: tuple[float, Snapshot] | None = None
        self._reading = Shared(self._read)

    async def latest(self, max_age_s: float, patience_s: float) -> Snapshot:
        if self._last is not None and time.monotonic() - self._last[0] <= max_age_s:
            return self._last[1]
        return await self._reading.outcome(patience_s)

    async def _read(self) -> Snapshot:
        began = time.monotonic()
        found = await self._reader.read(self._queues(), has_tenants=self._has_tenants)
        self._last = (began, found)
        return found
