"""How long each shard of a worker has waited for the broker, or for its own fetcher.

    unanswered   an exchange was sent and is not answered
    stalled      slots are free, and no claim was answered

Both are false alarms for a moment; every sweep brings an answered claim where slots are free. Time
is counted in looks, a second each: while a machine is frozen, none passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from faena.worker.fetch.fetcher import Fetcher

EVERY_S: Final = 1.0
UNANSWERED_S: Final = 5.0
"""Longer than a wait for jobs (2 s) with its grace (1 s); a call is given up after 4 s."""
_LATE_S: Final = 5.0
"""How late the claim of a sweep may be."""


class Wait(NamedTuple):
    """How long a shard has waited."""

    shard: str
    seconds: float


class _Seen(NamedTuple):
    """A shard at the last look, and for how long it has been so."""

    call: str | None = None
    unanswered_s: float = 0.0
    claims: int = 0
    idle_s: float = 0.0


class Progress:
    """Watches the fetchers of a worker; `look` is called once in `EVERY_S`."""

    def __init__(self, fetchers: Mapping[str, Fetcher], sweep_s: Callable[[], float]) -> None:
        self._fetchers = fetchers
        self._sweep_s = sweep_s
        self._seen: dict[str, _Seen] = {}

    def look(self) -> None:
        """Look at each fetcher."""
        seen = self._seen
        self._seen = {
            shard: _look(fetcher, seen.get(shard, _Seen()))
            for shard, fetcher in self._fetchers.items()
        }

    @property
    def unanswered(self) -> Wait | None:
        """The shard whose oldest exchange has waited for longest, if it is too long."""
        waits = (Wait(shard, one.unanswered_s) for shard, one in self._seen.items())
        longest = max(waits, key=lambda wait: wait.seconds, default=None)
        return longest if longest is not None and longest.seconds >= UNANSWERED_S else None

    @property
    def stalled(self) -> list[Wait]:
        """Shards where nothing was claimed for longer than a sweep, though there is room."""
        most_s = self._sweep_s() + _LATE_S
        waits = (Wait(shard, one.idle_s) for shard, one in self._seen.items())
        return [wait for wait in waits if wait.seconds > most_s]


def _look(fetcher: Fetcher, before: _Seen) -> _Seen:
    call = next(iter(fetcher.asked), None)
    is_same = call is not None and call == before.call
    is_idle = fetcher.has_room and call is None and fetcher.claims_answered == before.claims
    return _Seen(
        call=call,
        unanswered_s=before.unanswered_s + EVERY_S if is_same else 0.0,
        claims=fetcher.claims_answered,
        idle_s=before.idle_s + EVERY_S if is_idle else 0.0,
    )
