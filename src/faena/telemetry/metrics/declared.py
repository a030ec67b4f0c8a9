"""All metrics that Faena has."""

from __future__ import annotations

from typing import Final

from faena.telemetry.metrics.broker_metric import BROKER
from faena.telemetry.metrics.counter_metric import COUNTERS
from faena.telemetry.metrics.metric import Metric
from faena.telemetry.metrics.queue_metric import QUEUES
from faena.telemetry.metrics.scaling_metric import SCALING
from faena.telemetry.metrics.upstream_metric import FEATURES, UPSTREAMS
from faena.telemetry.metrics.worker_metric import WORKERS

METRICS: Final[tuple[Metric, ...]] = (
    *BROKER,
    *QUEUES,
    *SCALING,
    *COUNTERS,
    *WORKERS,
    *UPSTREAMS,
    *FEATURES,
)
