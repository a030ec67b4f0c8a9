"""The routing table of a queue: its shards, and which lane is in which.

Lanes are spread over the shards; a lane may also have a shard of its own. To the engine, each shard
is a queue: `invoices` is the first shard, `invoices/1` the second, `invoices/@acme` the dedicated
shard of one tenant. The table determines the shard of each lane. It is stored in the first shard
and has an epoch. Producers send the epoch they know, and are refused if there is a later one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from faena.values.shards import own_shard, shard_index, shard_name

EDITED: Final = "edited"
_WORDS: Final = frozenset(
    {"epoch", "shards", "phase", "change", "before", "by", "at", "moved", EDITED}
)

ANNOUNCED: Final = "announced"
MOVING: Final = "moving"


class Shard(NamedTuple):
    """A part of a queue's lanes; to the engine, a queue."""

    name: str
    """Its name in the engine: the queue's own name, `invoices/1`, `invoices/@acme`."""

    pool: str
    """Shards of one pool share a worker's slots; a dedicated shard is a pool of its own."""


@lru_cache(maxsize=200_000)
def index_of(lane: str, shards: int) -> int:
    """The shard of a lane: the one with the highest weight (rendezvous hashing).

    When a shard is added, a lane stays in its shard or moves to the new one.
    """
    if shards == 1:
        return 0
    name = lane.encode()
    return max(range(shards), key=lambda shard: _weight(name, shard))


def _weight(name: bytes, shard: int) -> bytes:
    return hashlib.blake2b(name, digest_size=8, salt=shard.to_bytes(2, "big")).digest()


class Change(NamedTuple):
    """A change of the table: another number of shards, or a lane that gets or leaves its own."""

    shards: int = 0
    """The new number; 0 if the change is about a lane."""
    own: str = ""
    """The lane that gets a shard of its own."""
    shared: str = ""
    """The lane that returns to the shared shards."""

    @property
    def lane(self) -> str:
        """The lane of the change; empty if it is about all lanes."""
        return self.own or self.shared

    @property
    def words(self) -> str:
        """The change for people: `4 shards`, `own shard for tenant acme`; empty for none."""
        if self.shards:
            return f"{self.shards} shards"
        kind = "own" if self.own else "shared"
        return f"{kind} shard for tenant {self.lane[1:]}" if self.lane else ""

    def __str__(self) -> str:
        """As stored in the first shard: `shards 4`, `own @acme`, `shared @acme`; or empty."""
        return " ".join(f"{name} {value}" for name, value in self._asdict().items() if value)


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """The shards of all lanes in an epoch, and the current change."""

    epoch: int = 0
    shards: int = 1
    own: frozenset[str] = frozenset()
    """Lanes that have a shard of their own."""
    phase: str = ""
    """Empty, announced (no enqueue before it is published) or moving."""
    change: Change = Change()
    """The current change."""
    before: int = 1
    """The number of shards before the current change."""
    is_edited: bool = False
    """Whether an operator has set the number of shards; then code does not change it."""
    moved_at_us: int = 0
    """When the last change was finished, by the first shard's clock."""

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
        """The shared shard of a lane, even if it has a shard of its own."""
        return shard_name(queue, index_of(lane, self.shards))

    def all(self, queue: str) -> list[Shard]:
        """All shards, the first one first."""
        own = (own_shard(queue, lane) for lane in self.own)
        return self.shared(queue) + [Shard(name, name) for name in sorted(own)]

    def shared(self, queue: str) -> list[Shard]:
        """The shared shards."""
        return [Shard(shard_name(queue, shard), queue) for shard in range(self.shards)]

    def with_change(self, change: Change) -> Table:
        """The table after a change; the same table if nothing changes."""
        own = (self.own | {change.own}) - {change.shared, ""}
        return msgspec.structs.replace(self, shards=change.shards or self.shards, own=own)

    def following(self) -> Table:
        """The table after the announced change is published."""
        coming = self.with_change(self.change)
        return msgspec.structs.replace(
            coming, epoch=self.epoch + 1, phase=MOVING, before=self.shards
        )

    def former(self) -> Table:
        """The table before the change that is moving; itself if there is none."""
        if self.phase != MOVING:
            return self
        own = (self.own | {self.change.shared}) - {self.change.own, ""}
        return Table(epoch=self.epoch - 1, shards=self.before, own=own)


def read_table(fields: Mapping[str, str]) -> Table:
    """Read the table from the fields in the first shard."""
    return Table(
        epoch=int(fields.get("epoch", 0)),
        shards=int(fields.get("shards", 1)),
        own=frozenset(name for name in fields if name not in _WORDS),
        phase=fields.get("phase", ""),
        change=_read_change(fields.get("change", "")),
        before=int(fields.get("before", 1)),
        is_edited=EDITED in fields,
        moved_at_us=int(fields.get("moved", 0)),
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


def standing(shard: str, table: Table) -> Mapping[str, str]:
    """The epoch of a shard, and its part among the others, as settings."""
    index = shard_index(shard)
    if index is None or table.shards == 1:
        return {"epoch": str(table.epoch), "shards": "", "shard": ""}
    return {"epoch": str(table.epoch), "shards": str(table.shards), "shard": str(index)}
