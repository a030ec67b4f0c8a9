"""All readings."""

from __future__ import annotations

from typing import Final

from faena.web.reading import (
    access,
    advice,
    broker,
    dead,
    event,
    flow,
    job,
    queue,
    tenant,
    upstream,
)
from faena.web.reading.reading import Reading

READINGS: Final[tuple[Reading, ...]] = (
    *broker.READINGS,
    *queue.READINGS,
    *tenant.READINGS,
    *job.READINGS,
    *dead.READINGS,
    *flow.READINGS,
    *upstream.READINGS,
    *advice.READINGS,
    *event.READINGS,
    *access.READINGS,
)
