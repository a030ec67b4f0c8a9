"""Checks before the start of a handler that its lease is still held.

A fresh claim needs no check. The lease of an older one is renewed first.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence

from faena.engine.scripts import Claim
from faena.errors import FaenaError
from faena.worker.execute.attempt_state import Attempt

_FRESH = 2 / 3
"""The part of a lease in which a claim is fresh: in its last third, the next beat may be too late.

The heartbeat renews leases every third of their length.
"""

_log = logging.getLogger("faena.worker")

Renew = Callable[[str, Sequence[tuple[str, str]], int], Awaitable[tuple[Collection[str], object]]]


class Freshness:
    """Checks the leases of one shard's claims until their handlers start."""

    def __init__(self, shard: str, lease_us: int, renew: Renew) -> None:
        self._shard = shard
        self._lease_us = lease_us
        self._renew = renew
        self.lasts_s = lease_us * _FRESH / 1e6
        """How many seconds after the request a claimed job may start without a check."""

    async def lost(self, claims: Sequence[Claim]) -> Collection[str]:
        """Renew leases; returns the ids of jobs whose lease is lost or unknown."""
        leases = {claim.id: claim.lease for claim in claims}
        try:
            lost, _ = await self._renew(self._shard, [*leases.items()], self._lease_us)
        except FaenaError as error:
            _log.warning("shard %s: old claims are not started: %s", self._shard, error)
            return leases
        return lost

    async def still_holds(self, attempt: Attempt) -> bool:
        """Whether the lease is still held, of an attempt that did not start while fresh."""
        while time.monotonic() >= attempt.fresh_until:
            attempt.fresh_until = time.monotonic() + self.lasts_s
            if await self.lost([attempt.claim]):
                return False
        return True
