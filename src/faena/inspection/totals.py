"""What the shards of a queue have together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from faena.engine.overview import Overview
from faena.inspection.workers import merged


def add_up(parts: Sequence[Overview]) -> Overview:
    """One queue out of its shards, which share their settings and hear of the same holds."""
    first = parts[0]
    holds = {hold.reason: hold for part in parts for hold in part.holds}
    return msgspec.structs.replace(
        first,
        counts=_sums([part.counts for part in parts]),
        dealt_with=_sums([part.dealt_with for part in parts]),
        holds=tuple(holds.values()),
        workers=merged(worker for part in parts for worker in part.workers),
        enqueued=sum(part.enqueued for part in parts),
        removed=sum(part.removed for part in parts),
    )


def _sums(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(part[name] for part in parts) for name in parts[0]}
