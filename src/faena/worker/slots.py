"""How many more jobs each queue may start in this process.

Every queue has its own concurrency; the process may have a smaller total. Then queues of higher
priority are served first, but one slot is left for every other queue that wants work and runs
nothing, and a queue that was refused comes first next time: the last one never starves.
"""

from __future__ import annotations


class Slots:
    """The slots of one worker process."""

    def __init__(self, total: int | None = None) -> None:
        self._total = total
        self._limit: dict[str, int] = {}
        self._priority: dict[str, int] = {}
        self._used: dict[str, int] = {}
        self._refused: dict[str, int] = {}
        self._hungry: set[str] = set()

    def add(self, queue: str, concurrency: int, priority: int) -> None:
        """Serve a queue with at most `concurrency` jobs at a time."""
        self._limit[queue] = concurrency
        self._priority[queue] = priority
        self._used[queue] = 0

    def used(self, queue: str) -> int:
        """Jobs of the queue that hold a slot."""
        return self._used[queue]

    def free(self, queue: str) -> int:
        """Slots the queue could take were it alone."""
        own = self._limit[queue] - self._used[queue]
        return own if self._total is None else min(own, self._total - sum(self._used.values()))

    def take(self, queue: str, most: int) -> int:
        """Reserve up to `most` slots; they are the caller's until given back."""
        granted = max(0, min(most, self.free(queue) - self._reserved(queue)))
        if granted:
            self._refused.pop(queue, None)
            self._used[queue] += granted
        elif most:
            self._refused[queue] = self._refused.get(queue, 0) + 1
        return granted

    def give(self, queue: str, number: int = 1) -> None:
        """Free slots."""
        self._used[queue] -= number

    def want(self, queue: str, *, is_hungry: bool) -> None:
        """Say whether the queue is known to have work waiting."""
        if is_hungry:
            self._hungry.add(queue)
        else:
            self._hungry.discard(queue)
            self._refused.pop(queue, None)

    def _reserved(self, queue: str) -> int:
        """Slots to leave for the hungry queues that run nothing yet."""
        if self._total is None:
            return 0
        idle = [other for other in self._hungry if other != queue and not self._used[other]]
        if self._used[queue]:
            return len(idle)
        return sum(self._rank(other) < self._rank(queue) for other in idle)

    def _rank(self, queue: str) -> tuple[int, int, str]:
        return (-self._refused.get(queue, 0), self._priority[queue], queue)
