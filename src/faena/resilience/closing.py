"""What a process knows of upstreams that take no calls: which, whose calls, until when and why.

It holds whatever was granted before. Only here: groups of calls look it up when a call is about to
begin. A process that knows nothing, or something old, does no harm, because the server decides.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from faena.outcomes import UpstreamUnavailable

_SAME_S: Final = 0.01
"""What differs by less is the same closing, heard of twice."""
_MOST: Final = 10_000


class Closing(NamedTuple):
    """An upstream that takes no calls, or none of a tenant."""

    until: float
    """Of the monotonic clock."""
    upstream: str
    reason: str
    is_tenants: bool
    """Whether it is about the calls of one tenant only."""

    def refusal(self) -> UpstreamUnavailable:
        """What a call that would begin now is told."""
        wait_us = max(1, round((self.until - time.monotonic()) * 1e6))
        return UpstreamUnavailable(
            self.upstream, self.reason, wait_us, is_for_tenant=self.is_tenants
        )


class Closings:
    """All of them, in one event loop. Other threads may look one up, so what was stored of a scope
    is replaced, never changed."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], Mapping[str, float]] = {}
        """Upstream and tenant, or empty for all calls → reason → until when. Usually empty, which
        is what calls look at first."""

    def close(self, upstream: str, tenant: str, reason: str, until: float) -> bool:
        """Note one; False if that is known already. A shorter one ends no longer one, and reasons
        stand beside each other: when a breaker closes, the pause that was asked for goes on."""
        reasons = self.known.get((upstream, tenant), {})
        if until <= reasons.get(reason, 0.0) + _SAME_S:
            return False
        if len(self.known) >= _MOST:  # a tenant that is forgotten asks, and is refused again
            self.known = {scope: known for scope, known in self.known.items() if not scope[1]}
        self.known[upstream, tenant] = {**reasons, reason: until}
        return True

    def open(self, upstream: str, tenant: str, reasons: Collection[str]) -> None:
        """These reasons hold no more: for a tenant's calls, or for all without one."""
        for scope in [one for one in self.known if one[0] == upstream and tenant in {"", one[1]}]:
            known = self.known[scope].items()
            self._keep(scope, {why: until for why, until in known if why not in reasons})

    def forget_ended(self) -> None:
        """Drop those whose time is over, so that calls look nothing up."""
        now = time.monotonic()
        for scope, reasons in [*self.known.items()]:
            self._keep(scope, {why: until for why, until in reasons.items() if until > now})

    def clear(self) -> None:
        """Know nothing."""
        self.known.clear()

    def of(self, upstreams: Iterable[str], tenant: str) -> Closing | None:
        """The one that lasts longest for a tenant's calls that need all of these upstreams."""
        now = time.monotonic()
        found = [
            Closing(until, name, reason, bool(whose))
            for name in upstreams
            for whose in {"", tenant}
            for reason, until in self.known.get((name, whose), {}).items()
            if until > now
        ]
        return max(found, default=None)

    def _keep(self, scope: tuple[str, str], left: Mapping[str, float]) -> None:
        if left:
            self.known[scope] = left
        else:
            del self.known[scope]
