"""How many more jobs each shard of a queue may start in this process.

Shards are grouped in pools: one for the shared shards of a queue, one for each dedicated shard. A
pool has the concurrency of its queue. The process may have a smaller total. Then one slot is left
for every pool that wants work and runs nothing. If there are fewer slots than such pools, the pools
take turns: each slot moves a pool back by its priority number. So a queue of priority 1 gets ten
turns for one turn of a queue of priority 10, and no queue starves.

Inside a pool, shards that want work at the same time get equal parts of its slots. The remainder
goes round: a shard takes no slot while another shard with fewer slots waits for one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class _Share:
    """The slots that one shard holds of its pool, and its turn in the pool."""

    pool: _Pool
    on_room: Callable[[], None]
    used: int = 0
    turn: int = 0
    """The shard with the smallest turn comes first."""
    has_ready_jobs: bool = False
    """Whether it is known to have ready jobs."""
    is_refused: bool = False
    """Whether it got fewer slots than requested, and must be notified of free ones."""
    is_gone: bool = False
    """Whether it is no longer served; it is kept until its slots are free."""


@dataclass(slots=True, eq=False)
class _Pool:
    """The slots that some shards share, and the pool's turn in the process."""

    name: str
    limit: int
    priority: int
    shards: list[_Share] = field(default_factory=list[_Share])
    used: int = 0
    turn: int = 0
    """The pool with the smallest turn comes first."""
    served: int = 0
    """The turn of the shard that was served last; a shard that joins starts from it."""

    @property
    def has_ready_jobs(self) -> bool:
        return any(share.has_ready_jobs for share in self.shards)

    def part(self, share: _Share, most: int, free: int) -> int:
        """How many of the pool's free slots one of its shards may take, up to `most`."""
        rivals = [one for one in self.shards if one.has_ready_jobs and one is not share]
        if not rivals:
            return min(most, free)
        even = -(-self.limit // (len(rivals) + 1))
        granted = 0
        while granted < min(most, even - share.used):
            mine = (share.used + granted, share.turn + granted)
            behind = sum((one.used, one.turn) < mine for one in rivals)
            if free - granted <= behind:
                break
            granted += 1
        return granted


class Slots:
    """The slots of one worker process."""

    def __init__(self, total: int | None = None) -> None:
        self._total = total
        self._shares: dict[str, _Share] = {}
        self._pools: dict[str, _Pool] = {}
        self._used = 0
        self._turn = 0
        """The turn of the pool that was served last; a pool that joins starts from it."""

    def add(
        self,
        shard: str,
        concurrency: int,
        priority: int,
        on_room: Callable[[], None],
        *,
        pool: str | None = None,
    ) -> None:
        """Serve a shard; its pool runs at most `concurrency` jobs at a time.

        `on_room` is called when there may be slots again after a refusal.
        """
        share = self._shares.get(shard)
        if share is not None:  # it was served before, and some of its jobs still run
            share.on_room, share.is_gone = on_room, False
            return
        name = shard if pool is None else pool
        joined = self._pools.setdefault(name, _Pool(name, concurrency, priority))
        share = self._shares[shard] = _Share(joined, on_room, turn=joined.served)
        joined.shards.append(share)

    def remove(self, shard: str) -> None:
        """Stop serving a shard; its slots become free as its jobs end."""
        share = self._shares[shard]
        share.is_gone, share.is_refused, share.has_ready_jobs = True, False, False
        self._notify_refused(share.pool)
        self._forget_if_over(shard, share)

    @property
    def most(self) -> int:
        """Jobs that may run at a time when every pool is busy."""
        together = sum(pool.limit for pool in self._pools.values())
        return together if self._total is None else min(together, self._total)

    def bound(self, concurrency: int) -> int:
        """How many jobs of a pool may run at a time while no other pool is busy."""
        return concurrency if self._total is None else min(concurrency, self._total)

    def used(self, shard: str) -> int:
        """Jobs of the shard that hold a slot."""
        return self._shares[shard].used

    def own(self, shard: str) -> int:
        """Slots of the pool that the shard itself does not hold, whatever others hold."""
        share = self._shares[shard]
        return share.pool.limit - share.used

    def free(self, shard: str) -> int:
        """Slots that the shard could take if no other shard had ready jobs."""
        pool = self._shares[shard].pool
        own = pool.limit - pool.used
        return own if self._total is None else min(own, self._total - self._used)

    def take(self, shard: str, most: int) -> int:
        """Reserve up to `most` slots, until `give` or `give_back`; returns how many."""
        share = self._shares[shard]
        pool = share.pool
        if not share.has_ready_jobs:
            self._queue_up(share)
        free = self.free(shard) - self._reserved(pool)
        granted = max(0, pool.part(share, most, free))
        share.is_refused = granted < most
        if granted:
            self._turn = max(self._turn, pool.turn)
            pool.served = max(pool.served, share.turn)
            self._move(share, granted)
        return granted

    def give(self, shard: str, number: int = 1) -> None:
        """Free slots whose jobs have ended."""
        share = self._shares[shard]
        pool = share.pool
        share.used -= number
        pool.used -= number
        self._used -= number
        if self._total is not None or len(pool.shards) > 1:
            self._notify_refused(pool)
        if share.is_gone:
            self._forget_if_over(shard, share)

    def give_back(self, shard: str, number: int) -> None:
        """Free slots that were never used; they cost the shard no turn."""
        share = self._shares[shard]
        self._move(share, -number)
        self._notify_refused(share.pool)

    def want(self, shard: str, *, has_ready_jobs: bool) -> None:
        """Set whether the shard is known to have ready jobs."""
        share = self._shares[shard]
        if has_ready_jobs and not share.has_ready_jobs:
            self._queue_up(share)
            share.has_ready_jobs = True
        elif share.has_ready_jobs and not has_ready_jobs:
            share.has_ready_jobs = False
            self._notify_refused(share.pool)  # a slot may have been left for it

    def _queue_up(self, share: _Share) -> None:
        """A shard that gets ready jobs saves up no turns from the time it wanted nothing."""
        pool = share.pool
        share.turn = max(share.turn, pool.served)
        if not pool.has_ready_jobs:
            pool.turn = max(pool.turn, self._turn)

    def _move(self, share: _Share, number: int) -> None:
        share.used += number
        share.turn += number
        share.pool.used += number
        share.pool.turn += number * share.pool.priority
        self._used += number

    def _notify_refused(self, pool: _Pool) -> None:
        """Notify the shards that were refused, once per refusal, so that they ask again."""
        if self._total is not None:
            concerned = [*self._shares.values()]
        elif len(pool.shards) > 1:
            concerned = pool.shards
        else:
            return  # the shard that freed the slot asks for itself
        for share in concerned:
            if share.is_refused:
                share.is_refused = False
                share.on_room()

    def _reserved(self, pool: _Pool) -> int:
        """Slots to leave for the pools with ready jobs that run nothing yet."""
        if self._total is None:
            return 0
        idle = [one for one in self._pools.values() if not one.used and one.has_ready_jobs]
        if pool.used:
            return len(idle)
        mine = (pool.turn, pool.priority)
        return sum((one.turn, one.priority) < mine for one in idle if one is not pool)

    def _forget_if_over(self, shard: str, share: _Share) -> None:
        if share.is_gone and not share.used:
            del self._shares[shard]
            share.pool.shards.remove(share)
            if not share.pool.shards:
                del self._pools[share.pool.name]
