"""What an app tells about itself: how all of its queues do."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from faena.engine.wire.patience import Shared
from faena.limits import Limit
from faena.options.fields import check_is
from faena.options.metrics import Metrics
from faena.resilience.feature_views import FeatureView
from faena.runtime.connections import Connection, Runtime
from faena.telemetry.advice.scaling import Scaling
from faena.telemetry.measured import Measurements
from faena.telemetry.metrics.exposition import Exposition
from faena.telemetry.metrics.page import page_of
from faena.telemetry.snapshot import Snapshot
from faena.telemetry.snapshot_reader import SnapshotReader
from faena.telemetry.statistics_reader import LONGEST_US
from faena.upstream_registry import UpstreamRegistry
from faena.values.duration import Duration, to_s, to_us
from faena.values.keywords import known_keywords

if TYPE_CHECKING:  # a program that only enqueues does not load how advice is made
    from faena.queue import Queue
    from faena.telemetry.advice.adviser import Adviser
    from faena.telemetry.advice.queue_advice import QueueAdvice
    from faena.telemetry.advice.replay import WhatIf
    from faena.telemetry.advice.scaling_reader import ScalingReader

_MINUTE_US = 60_000_000
_LONGEST_REPLAY_US = 24 * 60 * _MINUTE_US


class TelemetryRegistry(UpstreamRegistry):
    """The part of an app that reads and shows what happens in it."""

    def __init__(self, name: str, connection: Connection, on_fork: Callable[[], None]) -> None:
        super().__init__(name, connection, on_fork)
        self._snapshots: WeakKeyDictionary[Runtime, dict[bool, _Snapshots]] = WeakKeyDictionary()
        """Of each event loop; apart with and without tenants."""
        self.metric_options = Metrics()
        self._scaling: WeakKeyDictionary[Runtime, ScalingReader] = WeakKeyDictionary()

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
            lambda: self._with_scaling(has_tenants=tenants),
            measured,
            openmetrics=openmetrics,
        )

    # -- advice -----------------------------------------------------------------------------------

    async def advice(
        self, queue: Queue | str | None = None, *, window: Duration = "1h"
    ) -> tuple[QueueAdvice, ...]:
        """How many slots a queue needs, or each queue: by what came in the last `window`.

        See docs/capacity.md. Windows are those of `queue.statistics`.
        """
        window_us = to_us("window", window, least_us=_MINUTE_US, most_us=LONGEST_US)
        chosen = list(self.queues.values()) if queue is None else [self.known(queue)]
        advisers = await self._advisers(chosen, has_tenants=False)
        return tuple([await one.advice(window_us) for one in advisers])

    @known_keywords("what_if")
    async def what_if(
        self,
        queue: Queue | str,
        *,
        slots: int | None = None,
        limits: Sequence[Limit] | None = None,
        weights: Mapping[str, float] | None = None,
        window: Duration = "1h",
        report: Callable[[int], None] | None = None,
    ) -> WhatIf:
        """Replay what came to a queue in the last `window`, as things are and with a change.

        `slots` are those of all workers together, `limits` the queue's, `weights` those of tenants
        by name. `report` is called, in another thread, with the number of jobs replayed so far.
        See docs/capacity.md.
        """
        from faena.telemetry.advice.what_if import Change  # noqa: PLC0415 - see above

        window_us = to_us("window", window, least_us=_MINUTE_US, most_us=_LONGEST_REPLAY_US)
        change = Change(slots=slots, limits=limits, weights=weights)
        (adviser,) = await self._advisers([self.known(queue)], has_tenants=True)
        return await adviser.what_if(window_us, change, report or (lambda _: None))

    async def scaling(self) -> Scaling:
        """A signal for autoscalers: predicted wait ÷ objective of each queue, and slots wanted.

        `to_dict()` is the document that KEDA's metrics-api scaler reads.
        """
        seen = await self._with_scaling(has_tenants=False)
        return Scaling(at=seen.at, queues={one.queue: one for one in seen.scaling})

    async def _advisers(self, queues: Sequence[Queue], *, has_tenants: bool) -> list[Adviser]:
        from faena.telemetry.advice.adviser import Adviser  # noqa: PLC0415 - see above

        runtime = await self.runtime()
        reader = SnapshotReader(runtime.engine, runtime.routers, _nothing, _nothing)
        seen = await reader.read([one.name for one in queues], has_tenants=has_tenants)
        found = {one.queue: one for one in seen.queues}
        return [Adviser(runtime, one.options, found[one.name]) for one in queues]

    async def _with_scaling(self, *, has_tenants: bool) -> Snapshot:
        from faena.telemetry.advice.scaling_reader import ScalingReader  # noqa: PLC0415 - as above

        seen, runtime = await self.snapshot(tenants=has_tenants), await self.runtime()
        if runtime not in self._scaling:
            self._scaling[runtime] = ScalingReader(
                runtime.engine, runtime.routers, lambda name: self.queues[name].options
            )
        return replace(seen, scaling=await self._scaling[runtime].read(seen))

    async def _feature_views(self) -> Sequence[FeatureView]:
        return [*(await self.features()).features.values()]


async def _nothing() -> tuple[()]:
    """Advice needs no upstreams and no features."""
    return ()


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
