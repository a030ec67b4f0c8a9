"""Whether a claim is so fresh that its lease is surely held; and if it is not, whether it is."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence

from faena.engine.scripts import Claim
from faena.errors import FaenaError
from faena.worker.execute.attempt import Attempt

_FRESH = 2 / 3
"""Of a lease: with less of it left than the third between two beats, the next would be too late."""

_log = logging.getLogger("faena.worker")

Renew = Callable[[str, Sequence[tuple[str, str]], int], Awaitable[tuple[Collection[str], object]]]


class Freshness:
    """Looks after the claims of one shard until their handlers begin."""

    def __init__(self, shard: str, lease_us: int, renew: Renew) -> None:
        self._shard = shard
        self._lease_us = lease_us
        self._renew = renew
        self.lasts_s = lease_us * _FRESH / 1e6
        """How long after it was asked for a claim may begin unasked."""

    async def lost(self, claims: Sequence[Claim]) -> Collection[str]:
        """Renew leases; those that are another's by now, or of which nothing can be known."""
        leases = {claim.id: claim.lease for claim in claims}
        try:
            lost, _ = await self._renew(self._shard, [*leases.items()], self._lease_us)
        except FaenaError as error:
            _log.warning("shard %s: old claims are not started: %s", self._shard, error)
            return leases
        return lost

    async def still_holds(self, attempt: Attempt) -> bool:
        """Whether the lease of an attempt is held that could not begin while it was fresh."""
        while time.monotonic() >= attempt.fresh_until:
            attempt.fresh_until = time.monotonic() + self.lasts_s
            if await self.lost([attempt.claim]):
                return False
        return True
