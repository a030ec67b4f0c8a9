"""Where the jobs of a queue live: one shard, or several that together are the queue.

Lanes are spread over the shards; a lane may have a shard of its own beside them. To the engine each
shard is a queue: `invoices` is the first shard, `invoices/1` the second, `invoices/@acme` the shard
of one tenant. Who lives where is a function of the table, which is kept at the first shard and has
an epoch: whoever enqueues names the epoch it knows, and is refused when there is a later one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

_WORDS: Final = frozenset({"epoch", "shards", "phase", "change", "before", "by", "at"})

ANNOUNCED: Final = "announced"
MOVING: Final = "moving"


class Shard(NamedTuple):
    """Where some lanes of a queue wait and run; to the engine it is a queue by itself."""

    name: str
    """What the engine calls it: the queue's own name, `invoices/1`, `invoices/@acme`."""

    pool: str
    """Shards of one pool share a worker's slots; a dedicated tenant's is a pool of its own."""


def queue_of(shard: str) -> str:
    """The queue that a shard belongs to."""
    return shard.partition("/")[0]


@lru_cache(maxsize=200_000)
def index_of(lane: str, shards: int) -> int:
    """The shard of a lane: the one that it weighs most with.

    When one more shard is there, a lane stays where it is or goes to the new one.
    """
    if shards == 1:
        return 0
    name = lane.encode()
    return max(range(shards), key=lambda shard: _weight(name, shard))


def _weight(name: bytes, shard: int) -> bytes:
    return hashlib.blake2b(name, digest_size=8, salt=shard.to_bytes(2, "big")).digest()


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Who lives where, as of an epoch, and the change that is under way."""

    epoch: int = 0
    shards: int = 1
    own: frozenset[str] = frozenset()
    """Lanes that have a shard of their own."""
    phase: str = ""
    """Empty, announced (nobody may enqueue before it is published) or moving."""
    change: str = ""
    """What is under way: `shards 4`, `own @acme` or `shared @acme`."""
    before: int = 1
    """The shards before a change that is moving."""

    @property
    def is_single(self) -> bool:
        """Whether the queue has its first shard only."""
        return self.shards == 1 and not self.own

    @property
    def dedicated(self) -> tuple[str, ...]:
        """Tenants that have a shard of their own; "" stands for the jobs without a tenant."""
        return tuple(sorted(lane[1:] for lane in self.own))

    def shard_of(self, queue: str, lane: str) -> str:
        """The shard of a lane."""
        return own_shard(queue, lane) if lane in self.own else self.shared_shard(queue, lane)

    def shared_shard(self, queue: str, lane: str) -> str:
        """The shard that a lane shares with others, whether or not it lives there."""
        return _shard_name(queue, index_of(lane, self.shards))

    def all(self, queue: str) -> list[Shard]:
        """All shards, the first one first."""
        own = (own_shard(queue, lane) for lane in self.own)
        return self.shared(queue) + [Shard(name, name) for name in sorted(own)]

    def shared(self, queue: str) -> list[Shard]:
        """The shards."""
        return [Shard(_shard_name(queue, shard), queue) for shard in range(self.shards)]

    def following(self) -> Table:
        """As it will be when the announced change is published."""
        kind, _, what = self.change.partition(" ")
        shards, own = self.shards, self.own
        match kind:
            case "shards":
                shards = int(what)
            case "own":
                own |= {what}
            case _:
                own -= {what}
        return Table(
            epoch=self.epoch + 1,
            shards=shards,
            own=own,
            phase=MOVING,
            change=self.change,
            before=self.shards,
        )

    def former(self) -> Table:
        """As it was before the change that is moving now; itself when nothing is."""
        if self.phase != MOVING:
            return self
        kind, _, what = self.change.partition(" ")
        own = self.own - {what} if kind == "own" else self.own
        own |= {what} if kind == "shared" else frozenset[str]()
        return Table(epoch=self.epoch - 1, shards=self.before, own=own)

    @property
    def lane(self) -> str:
        """The lane that the change is about; empty when it is about all of them."""
        kind, _, what = self.change.partition(" ")
        return "" if kind == "shards" else what


def own_shard(queue: str, lane: str) -> str:
    """The name of a lane's own shard; a tenant's name may have any printable character."""
    return f"{queue}/@{quote(lane[1:], safe='')}"


def _shard_name(queue: str, shard: int) -> str:
    return f"{queue}/{shard}" if shard else queue


def shard_index(shard: str) -> int | None:
    """The number of a shared shard; None for a tenant's own."""
    _, _, rest = shard.partition("/")
    return None if rest.startswith("@") else int(rest or 0)


def read_table(fields: Mapping[str, str]) -> Table:
    """The table as the first shard keeps it."""
    return Table(
        epoch=int(fields.get("epoch", 0)),
        shards=int(fields.get("shards", 1)),
        own=frozenset(name for name in fields if name not in _WORDS),
        phase=fields.get("phase", ""),
        change=fields.get("change", ""),
        before=int(fields.get("before", 1)),
    )
