"""All operations."""

from __future__ import annotations

from typing import Final

from faena.web.operation import (
    access,
    alert,
    bulk,
    dead,
    enqueue,
    feature,
    flow,
    job,
    queue,
    schedule,
    setting,
    tenant,
    upstream,
    view,
)
from faena.web.operation.operation import Operation

OPERATIONS: Final[tuple[Operation, ...]] = (
    *queue.OPERATIONS,
    *setting.OPERATIONS,
    *job.OPERATIONS,
    *enqueue.OPERATIONS,
    *dead.OPERATIONS,
    *upstream.OPERATIONS,
    *feature.OPERATIONS,
    *alert.OPERATIONS,
    *access.OPERATIONS,
    *tenant.OPERATIONS,
    *schedule.OPERATIONS,
    *flow.OPERATIONS,
    *bulk.OPERATIONS,
    *view.OPERATIONS,
)
