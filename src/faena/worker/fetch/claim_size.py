"""How many jobs one claim of a shard asks for.

Where upstreams refuse some of the jobs that were claimed, the next claim asks for as many as were
permitted, and for twice as many each time all of them were. So nobody claims in vain while a
breaker probes or recovers, or a limit is used up.
"""

from __future__ import annotations


class ClaimSize:
    """Of one fetcher."""

    __slots__ = ("_share", "most")

    def __init__(self, share: int) -> None:
        """`share` is what a claim asks for where nothing is refused."""
        self._share = share
        self.most = share

    def admitted(self, granted: int, refused: int) -> None:
        """Upstreams have answered for the jobs of a claim."""
        self.most = max(1, granted) if refused else min(2 * self.most, self._share)
