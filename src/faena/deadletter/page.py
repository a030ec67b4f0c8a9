"""Pages of the desk over any number of homes, in one order of death, and the cursors between them.

All homes are gone through side by side. A cursor is a place in that order, bound to the filter and
the direction of its page: homes may come and go between two pages, and so may the jobs.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from faena.engine.desk import DeskCalls, Filter, Found, Place
from faena.errors import ConfigError

_LOOKS: Final = 25
"""Calls for one page at most: a filter that fits hardly anything must not read everything."""


class Wanted(NamedTuple):
    """What a page is about."""

    queues: tuple[str, ...]
    filter: Filter
    ages: tuple[int | None, int | None]
    """Older than, newer than, as they were asked for; the filter has them as instants."""
    is_newest_first: bool

    def digest(self) -> bytes:
        """What cursors are bound to."""
        words = repr((self.queues, self.filter[:5], self.ages, self.is_newest_first))
        return hashlib.blake2b(words.encode(), digest_size=6).digest()


class Walker:
    """One home, gone through slice by slice."""

    def __init__(self, calls: DeskCalls, queue: str, home: str, wanted: Wanted) -> None:
        self._calls = calls
        self._wanted = wanted
        self.queue = queue
        self.home = home
        self._found: list[Found] = []
        self._is_over = False
        self._reached = Place()

    def start(self, after: Place) -> None:
        """Begin behind a place."""
        self._reached = after

    @property
    def is_over(self) -> bool:
        """Whether nothing is left here."""
        return self._is_over and not self._found

    @property
    def is_hungry(self) -> bool:
        """Whether nobody knows what comes next."""
        return not self._found and not self._is_over

    @property
    def front(self) -> Place:
        """Nothing is left before this."""
        return self._found[0].place if self._found else self._reached

    async def look(self, limit: int) -> None:
        """Read the next slice."""
        part = await self._calls.page(
            self.home,
            self._wanted.filter,
            after=self._reached,
            is_reverse=self._wanted.is_newest_first,
            limit=limit,
        )
        self._found, self._reached, self._is_over = part.found, part.reached, part.is_over

    def take(self) -> Found:
        """The next one."""
        return self._found.pop(0)


class Gathered(NamedTuple):
    """The jobs of a page with the walkers that found them, and where the next page begins."""

    found: list[tuple[Walker, Found]]
    reached: Place | None
    """None when nothing is left."""


async def gather(
    walkers: Sequence[Walker], after: Place, limit: int, *, is_newest_first: bool
) -> Gathered:
    """The next jobs of all homes together."""
    for walker in walkers:
        walker.start(after)
    found: list[tuple[Walker, Found]] = []
    looks = max(_LOOKS, 2 * len(walkers))
    while left := [walker for walker in walkers if not walker.is_over]:
        first = _first(left, is_newest_first=is_newest_first)
        if first.is_hungry and looks == 0:
            return Gathered(found, first.front)
        if first.is_hungry:
            looks -= 1
            await first.look(limit)
        elif len(found) == limit:
            return Gathered(found, found[-1][1].place)
        else:
            found.append((first, first.take()))
    return Gathered(found, None)


def _first(walkers: Sequence[Walker], *, is_newest_first: bool) -> Walker:
    """Whose next job would be the first; one that has not begun must be asked before."""
    fresh = [walker for walker in walkers if not walker.front.id]
    if fresh:
        return fresh[0]
    pick = max if is_newest_first else min
    return pick(walkers, key=lambda one: one.front.key())


# -- cursors ------------------------------------------------------------------------------------


class _Cursor(msgspec.Struct, array_like=True):
    digest: bytes
    score: str
    id: str
    died_from: int | None
    died_to: int | None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Cursor).decode


def write_cursor(wanted: Wanted, reached: Place) -> str:
    """A text that continues behind a place."""
    bounds = wanted.filter.died_from, wanted.filter.died_to
    packed = _encode(_Cursor(wanted.digest(), reached.score, reached.id, *bounds))
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def read_cursor(cursor: Any, wanted: Wanted) -> tuple[Wanted, Place]:
    """The same page at the place a cursor names, with ages counted from its first page on."""
    try:
        packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        read = _decode(packed)
        float(read.score or 0)
    except (binascii.Error, msgspec.MsgspecError, TypeError, ValueError):
        read = None
    if read is None or read.digest != wanted.digest():
        raise ConfigError(
            f"cursor must come from a page of the same filter and direction, got {cursor!r}; "
            f"leave it out for the first page",
            field="cursor",
            value=cursor,
        )
    bounds = wanted.filter._replace(died_from=read.died_from, died_to=read.died_to)
    return wanted._replace(filter=bounds), Place(read.score, read.id)
