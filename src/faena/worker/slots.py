"""How many more jobs each queue may start in this process.

Every queue has its own concurrency; the process may have a smaller total. Then one slot is left for
every queue that wants work and runs nothing, and when there are fewer slots than such queues they
take turns: each slot granted puts a queue further back, by the number of its priority, so that a
queue of priority 1 gets ten turns for one of a queue of priority 10, and the last never starves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class _Share:
    """What one queue has of the slots, and its place in the turns."""

    limit: int
    priority: int
    on_room: Callable[[], None]
    used: int = 0
    turn: int = 0
    """Queues of a smaller one come first."""
    is_hungry: bool = False
    """Whether work is known to wait for it."""
    is_refused: bool = False
    """Whether it got less than it asked for, and is to be told of room."""


class Slots:
    """The slots of one worker process."""

    def __init__(self, total: int | None = None) -> None:
        self._total = total
        self._shares: dict[str, _Share] = {}
        self._used = 0
        self._turn = 0
        """The turn of whoever was served last: one that comes later has no older claim."""

    def add(self, queue: str, concurrency: int, priority: int, on_room: Callable[[], None]) -> None:
        """Serve a queue with at most `concurrency` jobs at a time; `on_room` ends a refusal."""
        self._shares[queue] = _Share(concurrency, priority, on_room)

    def used(self, queue: str) -> int:
        """Jobs of the queue that hold a slot."""
        return self._shares[queue].used

    def own(self, queue: str) -> int:
        """Slots that the queue's own concurrency leaves it, whatever the others hold."""
        share = self._shares[queue]
        return share.limit - share.used

    def free(self, queue: str) -> int:
        """Slots the queue could take were it alone."""
        own = self.own(queue)
        return own if self._total is None else min(own, self._total - self._used)

    def take(self, queue: str, most: int) -> int:
        """Reserve up to `most` slots; they are the caller's until given back."""
        share = self._shares[queue]
        if not share.is_hungry:
            share.turn = max(share.turn, self._turn)
        granted = max(0, min(most, self.free(queue) - self._reserved(share)))
        share.is_refused = granted < most
        if granted:
            self._turn = max(self._turn, share.turn)
            self._move(share, granted)
        return granted

    def give(self, queue: str, number: int = 1) -> None:
        """Free slots whose jobs have ended."""
        share = self._shares[queue]
        share.used -= number
        self._used -= number
        self._tell()

    def give_back(self, queue: str, number: int) -> None:
        """Free slots that were never used; they cost the queue no turn."""
        self._move(self._shares[queue], -number)
        self._tell()

    def want(self, queue: str, *, is_hungry: bool) -> None:
        """Say whether the queue is known to have work waiting."""
        share = self._shares[queue]
        was_hungry, share.is_hungry = share.is_hungry, is_hungry
        if is_hungry and not was_hungry:
            share.turn = max(share.turn, self._turn)
        elif was_hungry and not is_hungry:
            self._tell()  # a slot may have been left for it

    def _move(self, share: _Share, number: int) -> None:
        share.used += number
        self._used += number
        share.turn += number * share.priority

    def _tell(self) -> None:
        """Have those who were refused ask again; each refusal is ended once."""
        if self._total is None:
            return
        for share in self._shares.values():
            if share.is_refused:
                share.is_refused = False
                share.on_room()

    def _reserved(self, share: _Share) -> int:
        """Slots to leave for the hungry queues that run nothing yet."""
        if self._total is None:
            return 0
        idle = [one for one in self._shares.values() if one.is_hungry and not one.used]
        if share.used:
            return len(idle)
        mine = (share.turn, share.priority)
        return sum((one.turn, one.priority) < mine for one in idle if one is not share)
