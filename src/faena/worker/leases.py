"""The leases a worker holds, shared by the event loop, which takes and ends them, and the heartbeat
thread, which renews them. Single dict operations are atomic, so neither needs a lock."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from faena.engine.scripts import Settlement


class Held(NamedTuple):
    """One lease and the monotonic instant after which it is no longer renewed."""

    lease: str
    until: float


class Leases:
    """id → lease, by shard."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, Held]] = {}

    def take(self, shard: str, lease: str, jobs: Iterable[tuple[str, float]]) -> None:
        """Hold a lease on jobs, given as (id, until) pairs.

        After `until` a handler counts as stuck, and its lease is no longer renewed.
        """
        mine = self._held.setdefault(shard, {})
        held = Held(lease, 0.0)
        for job_id, until in jobs:
            if held.until != until:
                held = Held(lease, until)
            mine[job_id] = held

    def end(self, shard: str, job_id: str, lease: str) -> None:
        """Forget a lease that was settled or lost; a newer one on the same job stays."""
        jobs = self._held.get(shard, {})
        held = jobs.get(job_id)
        if held is not None and held.lease == lease:
            del jobs[job_id]

    def settled(self, shard: str, settlements: Iterable[Settlement]) -> None:
        """End the leases of jobs that are settled."""
        jobs = self._held.get(shard, {})
        for job_id, lease, _ in settlements:
            held = jobs.get(job_id)
            if held is not None and held.lease == lease:
                del jobs[job_id]

    def held(self, shard: str, ids: Iterable[str]) -> list[tuple[str, str]]:
        """(id, lease) pairs of those jobs on which a lease is held."""
        jobs = self._held.get(shard)
        return [(job, jobs[job].lease) for job in ids if job in jobs] if jobs else []

    def lease_of(self, shard: str, job_id: str) -> str | None:
        """The lease held on a job, if any."""
        held = self._held.get(shard, {}).get(job_id)
        return held.lease if held else None

    def forget(self, shard: str) -> None:
        """Drop the entry of a shard if no lease is held there."""
        if not self._held.get(shard):
            self._held.pop(shard, None)

    def to_renew(self) -> dict[str, list[tuple[str, str]]]:
        """(id, lease) pairs by shard, without those whose handler is stuck."""
        now = time.monotonic()
        return {
            shard: [(job, held.lease) for job, held in dict(jobs).items() if held.until > now]
            for shard, jobs in dict(self._held).items()
        }

    def __len__(self) -> int:
        return sum(map(len, dict(self._held).values()))
