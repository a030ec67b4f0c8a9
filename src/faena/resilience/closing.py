"""What a process knows of upstreams that take no calls: which, whose calls, until when and why.

It holds whatever was granted before. Only here: groups of calls look it up when a call is about to
begin. A process that knows nothing, or something old, does no harm, because the server decides.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
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
    """All of them, in one event loop."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], dict[str, float]] = {}
        """Upstream and tenant, or empty for all calls → reason → until when. Usually empty, which
        is what calls look at first."""

    def close(self, upstream: str, tenant: str, reason: str, until: float) -> bool:
        """Note one; False if that is known already. A shorter one ends no longer one, and reasons
        stand beside each other: when a breaker closes, the pause that was asked for goes on."""
        reasons = self.known.get((upstream, tenant))
        if reasons is None:
            self._make_room()
            reasons = self.known[upstream, tenant] = {}
        if until <= reasons.get(reason, 0.0) + _SAME_S:
            return False
        reasons[reason] = until
        return True

    def open(self, upstream: str, tenant: str, reasons: Collection[str]) -> None:
        """These reasons hold no more: for a tenant's calls, or for all without one."""
        for scope in [one for one in self.known if one[0] == upstream and tenant in {"", one[1]}]:
            left = {why: at for why, at in self.known[scope].items() if why not in reasons}
            self._keep(scope, left)

    def clear(self) -> None:
        """Know nothing."""
        self.known.clear()

    def of(self, upstreams: Iterable[str], tenant: str) -> Closing | None:
        """The one that lasts longest for a tenant's calls that need all of these upstreams."""
        if not self.known:
            return None
        now = time.monotonic()
        found = [
            Closing(until, name, reason, bool(whose))
            for name in upstreams
            for whose in {"", tenant}
            for reason, until in self._lasting((name, whose), now).items()
        ]
        return max(found, default=None)

    def _lasting(self, scope: tuple[str, str], now: float) -> dict[str, float]:
        reasons = self.known.get(scope)
        if reasons is None:
            return {}
        left = {why: until for why, until in reasons.items() if until > now}
        self._keep(scope, left)
        return left

    def _keep(self, scope: tuple[str, str], left: dict[str, float]) -> None:
        if left:
            self.known[scope] = left
        else:
            self.known.pop(scope, None)

    def _make_room(self) -> None:
        """Tenants come and go. One that is forgotten asks the server, and is refused again."""
        if len(self.known) >= _MOST:
            now = time.monotonic()
            for scope in [*self.known]:
                self._lasting(scope, now)
        if len(self.known) >= _MOST:
            self.known = {scope: reasons for scope, reasons in self.known.items() if not scope[1]}
