"""Everything that is known of all queues at one instant: for metrics, alerts and the status screen.

One script call for each shard, however many processes and readers use what was read.
"""

from __future__ import annotations

from faena.engine.calls.upstreams import UpstreamView
from faena.engine.overview import Hold, WorkerView
from faena.resilience.feature_views import FeatureView
from faena.telemetry.advice.scaling import QueueScaling
from faena.values.view import View


class TenantSnapshot(View, frozen=True, kw_only=True):
    """A tenant among those with the most live jobs in a queue."""

    tenant: str
    live: int
    running: int


class QueueSnapshot(View, frozen=True, kw_only=True):
    """One queue, over all of its shards."""

    also = ("depth", "utilization")

    queue: str
    counts: dict[str, int]
    """Jobs by state; `dead` counts only pending ones."""
    oldest_us: int | None
    """How long the job that comes first has been ready; None if none is."""
    oldest_dead_us: int | None = None
    """How long ago the dead job died that nobody has dealt with for longest; None if none is."""
    totals: dict[str, int]
    """How often each transition ever happened, by the name of its event: never decreases."""
    holds: tuple[Hold, ...]
    workers: tuple[WorkerView, ...]
    slots: int
    """Room for running jobs in all workers of the queue."""
    is_open: bool = True
    """Whether a worker with room would be given one of the ready jobs; not while the queue, or each
    tenant that has one, is at its `max_running`, at a limit or held."""
    tenants: tuple[TenantSnapshot, ...]
    """Those with the most live jobs, at most fifty; empty in a queue without lanes."""
    other_tenants: TenantSnapshot | None
    """All other tenants added up, under an empty name."""

    @property
    def depth(self) -> int:
        """Jobs that could start, are to start later, or run."""
        return self.counts["ready"] + self.counts["delayed"] + self.counts["running"]

    @property
    def utilization(self) -> float | None:
        """The part of all slots that is in use; None without workers."""
        return self.counts["running"] / self.slots if self.slots else None


class NodeSnapshot(View, frozen=True, kw_only=True):
    """One node of the broker."""

    node: str
    latency_ms: float | None
    """The round trip of a script; None if the node cannot be reached."""
    memory_used: int | None
    memory_max: int | None
    """In bytes; None if the server has no bound, or hides it."""


class Snapshot(View, frozen=True, kw_only=True):
    """All queues of an app, its broker, its upstreams and features."""

    at: int
    """The server's microseconds."""
    queues: tuple[QueueSnapshot, ...]
    nodes: tuple[NodeSnapshot, ...]
    missed_schedules: int
    """Instants that did not fire in time, ever, in all queues."""
    upstreams: tuple[UpstreamView, ...]
    """With their breakers, limits and budgets."""
    features: tuple[FeatureView, ...]
    scaling: tuple[QueueScaling, ...] = ()
    """For pages of metrics: what autoscalers go by; empty otherwise."""
