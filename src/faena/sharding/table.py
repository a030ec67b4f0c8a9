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

import msgspec

from faena.values.shards import own_shard, shard_name

EDITED: Final = "edited"
_WORDS: Final = frozenset({"epoch", "shards", "phase", "change", "before", "by", "at", EDITED})

ANNOUNCED: Final = "announced"
MOVING: Final = "moving"


class Shard(NamedTuple):
    """Where some lanes of a queue wait and run; to the engine it is a queue by itself."""

    name: str
    """What the engine calls it: the queue's own name, `invoices/1`, `invoices/@acme`."""

    pool: str
    """Shards of one pool share a worker's slots; a dedicated tenant's is a pool of its own."""


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


class Change(NamedTuple):
    """What becomes different: the number of shards, or whether a lane has one of its own."""

    shards: int = 0
    """How many there will be; 0 when it is about a lane."""
    own: str = ""
    """The lane that gets a shard of its own."""
    shared: str = ""
    """The lane that shares one with others again."""

    @property
    def lane(self) -> str:
        """The lane that it is about; empty when it is about all of them."""
        return self.own or self.shared

    @property
    def words(self) -> str:
        """For who reads of it: `4 shards`, `own shard for tenant acme`; empty for none."""
        if self.shards:
            return f"{self.shards} shards"
        kind = "own" if self.own else "shared"
        return f"{kind} shard for tenant {self.lane[1:]}" if self.lane else ""

    def __str__(self) -> str:
        """As the first shard keeps it: `shards 4`, `own @acme`, `shared @acme`; empty for none."""
        return " ".join(f"{name} {value}" for name, value in self._asdict().items() if value)


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Who lives where, as of an epoch, and the change that is under way."""

    epoch: int = 0
    shards: int = 1
    own: frozenset[str] = frozenset()
    """Lanes that have a shard of their own."""
    phase: str = ""
    """Empty, announced (nobody may enqueue before it is published) or moving."""
    change: Change = Change()
    """What is under way."""
    before: int = 1
    """The shards before a change that is moving."""
    is_edited: bool = False
    """Whether somebody has set the number of shards, which then is not code's to change."""

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
        return shard_name(queue, index_of(lane, self.shards))

    def all(self, queue: str) -> list[Shard]:
        """All shards, the first one first."""
        own = (own_shard(queue, lane) for lane in self.own)
        return self.shared(queue) + [Shard(name, name) for name in sorted(own)]

    def shared(self, queue: str) -> list[Shard]:
        """The shards."""
        return [Shard(shard_name(queue, shard), queue) for shard in range(self.shards)]

    def with_change(self, change: Change) -> Table:
        """With the shards that a change asks for; itself when it has them."""
        own = (self.own | {change.own}) - {change.shared, ""}
        return msgspec.structs.replace(self, shards=change.shards or self.shards, own=own)

    def following(self) -> Table:
        """As it will be when the announced change is published."""
        coming = self.with_change(self.change)
        return msgspec.structs.replace(
            coming, epoch=self.epoch + 1, phase=MOVING, before=self.shards
        )

    def former(self) -> Table:
        """As it was before the change that is moving now; itself when nothing is."""
        if self.phase != MOVING:
            return self
        own = (self.own | {self.change.shared}) - {self.change.own, ""}
        return Table(epoch=self.epoch - 1, shards=self.before, own=own)


def read_table(fields: Mapping[str, str]) -> Table:
    """The table as the first shard keeps it."""
    return Table(
        epoch=int(fields.get("epoch", 0)),
        shards=int(fields.get("shards", 1)),
        own=frozenset(name for name in fields if name not in _WORDS),
        phase=fields.get("phase", ""),
        change=_read_change(fields.get("change", "")),
        before=int(fields.get("before", 1)),
        is_edited=EDITED in fields,
    )


def _read_change(text: str) -> Change:
    kind, _, what = text.partition(" ")
    match kind:
        case "shards":
            return Change(shards=int(what))
        case "own":
            return Change(own=what)
        case _:
            return Change(shared=what)
