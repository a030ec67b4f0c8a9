"""The calls of bulk actions: their records, and a rerun that spares what has ended since.

Records live in a shard of their own: a bulk action may be about all queues.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from faena.engine.engine import Engine
from faena.engine.requester import requester
from faena.engine.scripts import once, pairs, texts

SHARD: Final = "@bulk"
"""No queue can have this name."""
LEASE_US: Final = 15_000_000
"""How long the one who drives a bulk action has it to itself after each note."""


class BulkRecord(msgspec.Struct, frozen=True):
    """What the broker keeps of a bulk action; the field names are the script's."""

    state: str
    at: float
    owner: str
    lease_until: float
    plan: str
    """JSON, as the progress."""
    progress: str
    ended_at: float | None = None


_read = msgspec.msgpack.Decoder(BulkRecord, strict=False).decode


class BulkCalls:
    """The calls."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def ask(self, verb: str, ident: str = "", **named: str | bytes) -> BulkRecord | None:
        """The bulk action afterwards; None if there is none, or if it belongs to another."""
        reply = await self.engine.ask(
            "bulk", SHARD, verb=verb, id=ident, lease_us=LEASE_US, **named
        )
        return _record(reply[1]) if reply else None

    async def all(self) -> dict[str, BulkRecord]:
        """All that are remembered."""
        reply = await self.engine.ask("bulk", SHARD, verb="list")
        return {ident: _record(one) for ident, one in pairs(reply).items()}

    async def rerun(self, shard: str, ids: Sequence[str], ended_to: int) -> list[str]:
        """Run jobs again, but for those that have ended later than this."""
        named = {**once("rerun"), "by": requester(), "ended_to": ended_to}
        return texts(await self.engine.ask_declared("rerun", shard, *ids, **named))


def _record(packed: bytes) -> BulkRecord:
    return _read(packed)
