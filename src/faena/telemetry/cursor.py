"""The position of a reader of events: in one stream, and in all of them."""

from __future__ import annotations

from typing import Final

import msgspec

CHUNK: Final = 50
"""Entries read in one call; each may have the events of a thousand jobs."""

START: Final = "0-0"


class Mark(msgspec.Struct, array_like=True, frozen=True):
    """The position in one stream."""

    id: str = START
    number: int | None = 0
    """The number of entries up to there since the stream was created; None if unknown."""
    begun: str = ""
    """The next entry, if some of its events were read,"""
    taken: int = 0
    """and how many."""

    def is_lost(self, trimmed: int, *, is_there: bool) -> bool:
        """Whether the stream is a new one, because the old one would still have the entry."""
        return self.number is not None and self.number > trimmed and not is_there

    def missed(self, trimmed: int, first: str) -> int | None:
        """The number of removed entries after the position; None if unknown."""
        if self.number is not None:
            return max(0, trimmed - self.number)
        is_missed = self.id != START and trimmed > 0 and _order(first) > _order(self.id)
        return None if is_missed else 0

    def counted(self, added: int, trimmed: int, found: int) -> int | None:
        """The number of entries up to the position, if it can be known now."""
        if self.number is not None:
            return self.number
        if self.id == START:
            return trimmed
        return added - found if found < CHUNK else None


class Cursor(msgspec.Struct, array_like=True, frozen=True):
    """The position in all streams, and in the entry that was read last."""

    marks: dict[str, Mark]
    at_ms: int
    """The position for streams that are not listed."""
    shard: str = ""
    entry: str = ""
    taken: int = 0


def mark_at(ms: float) -> Mark:
    """The position before the first entry of a millisecond, with an unknown number."""
    return Mark(f"{max(int(ms) - 1, 0)}-18446744073709551615", None)


def _order(entry: str) -> tuple[int, int]:
    ms, _, number = entry.partition("-")
    return int(ms), int(number)
