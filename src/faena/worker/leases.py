"""The leases a worker holds, shared by the event loop, which takes and ends them, and the heartbeat
thread, which renews them. Single dict operations are atomic, so neither needs a lock."""

from __future__ import annotations

import time
from typing import NamedTuple


class Held(NamedTuple):
    """One lease and the monotonic instant after which it is no longer renewed."""

    lease: str
    until: float


class Leases:
    """id → lease, by home."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, Held]] = {}

    def take(self, home: str, job_id: str, lease: str, until: float) -> None:
        """Hold a lease until it ends, or its handler's time is so long over that it is stuck."""
        self._held.setdefault(home, {})[job_id] = Held(lease, until)

    def end(self, home: str, job_id: str, lease: str) -> None:
        """Forget a lease that was settled or lost; a newer one on the same job stays."""
        jobs = self._held.get(home, {})
        held = jobs.get(job_id)
        if held is not None and held.lease == lease:
            del jobs[job_id]

    def lease_of(self, home: str, job_id: str) -> str | None:
        """The lease held on a job, if any."""
        held = self._held.get(home, {}).get(job_id)
        return held.lease if held else None

    def forget(self, home: str) -> None:
        """Keep nothing of a home where nothing is held."""
        if not self._held.get(home):
            self._held.pop(home, None)

    def to_renew(self) -> dict[str, list[tuple[str, str]]]:
        """(id, lease) pairs by home, without those whose handler is stuck."""
        now = time.monotonic()
        return {
            home: [(job, held.lease) for job, held in dict(jobs).items() if held.until > now]
            for home, jobs in dict(self._held).items()
        }

    def __len__(self) -> int:
        return sum(map(len, dict(self._held).values()))
