"""How far a reader of events has come: in one stream, and in all of them."""

from __future__ import annotations

from typing import Final

import msgspec

CHUNK: Final = 50
"""Entries that one call reads; each may be of a thousand jobs."""

START: Final = "0-0"


class Mark(msgspec.Struct, array_like=True, frozen=True):
    """How far one stream was read."""

    id: str = START
    number: int | None = 0
    """Entries up to there since the stream exists; None where it is unknown."""
    begun: str = ""
    """The entry behind it of which some events were taken,"""
    taken: int = 0
    """and how many."""

    def is_lost(self, trimmed: int, *, is_there: bool) -> bool:
        """Whether the stream is another one: it would still have the marked entry."""
        return self.number is not None and self.number > trimmed and not is_there

    def missed(self, trimmed: int, first: str) -> int | None:
        """Entries behind it that are gone: 0 for none, None for an unknown number."""
        if self.number is not None:
            return max(0, trimmed - self.number)
        is_missed = self.id != START and trimmed > 0 and _order(first) > _order(self.id)
        return None if is_missed else 0

    def counted(self, added: int, trimmed: int, found: int) -> int | None:
        """How many entries there were up to it, if that can be known by now."""
        if self.number is not None:
            return self.number
        if self.id == START:
            return trimmed
        return added - found if found < CHUNK else None


class Cursor(msgspec.Struct, array_like=True, frozen=True):
    """How far all streams were read, and how many events more of the entry read last."""

    marks: dict[str, Mark]
    at_ms: int
    """For queues that are not among them."""
    shard: str = ""
    entry: str = ""
    taken: int = 0


def mark_at(ms: float) -> Mark:
    """Before the first entry of a millisecond; how many there were is unknown."""
    return Mark(f"{max(int(ms) - 1, 0)}-18446744073709551615", None)


def _order(entry: str) -> tuple[int, int]:
    ms, _, number = entry.partition("-")
    return int(ms), int(number)
