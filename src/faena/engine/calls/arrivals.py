"""Leaves lone jobs where the next script takes them in, by plain commands.

A script costs the server, and whoever waits for it, more than the way there. For a job that is
taken in whatever is there already, nothing has to be asked: it is appended to the stream
`arrivals`, and every script begins with what it finds there. While the stream is missing,
a job goes by the script `enqueue`, which makes it where that is right (see
lua/lib/producing/arrivals_stream.lua).

What was left there has a caller and a call like any other: whatever is unknown after a failure is
sent again under the same name, by the script, and nothing is taken in twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import hiredis

from faena.engine.engine import Engine
from faena.engine.envelope import NewJob
from faena.engine.keys import Keys
from faena.engine.wire.link import pack
from faena.engine.wire.wire import Wire

_LARGEST: Final = 16384
"""Bytes of a job that may be left: those that wait are read by one call."""

_MOST: Final = 100
"""Jobs that may lie there before a producer goes by the script, which takes them in."""

_CLOSED_S: Final = 10.0
"""How long a producer believes that it is closed."""

_PLAIN: Final = frozenset({"lane", "chain", "key"})
"""Facts that ask nothing of the server."""


def arrivals_of(engine: Engine, queue: str) -> Arrivals | None:
    """The stream of a queue; None by another clock than the server's, which says when jobs came."""
    return Arrivals(engine.wire, Keys(engine.namespace, queue)) if engine.clock is None else None


class Arrivals:
    """The stream by which lone jobs of one queue come in without a script."""

    def __init__(self, wire: Wire, keys: Keys) -> None:
        self._wire = wire
        self._prefix = keys.prefix
        self._head = ("XADD", keys("arrivals"), "NOMKSTREAM", "*")
        length, wake = ("XLEN", keys("arrivals")), ("ZADD", keys("wake"), 0, "work")
        self._tail = pack(length) + pack(wake)
        self._is_open = False
        self._closed_until = 0.0

    def is_for(self, jobs: Sequence[NewJob], epoch: int) -> bool:
        """Whether these may be left there, as far as is known here."""
        if not self._is_open or len(jobs) != 1 or epoch:
            return False
        _, spec, facts = jobs[0]
        return len(spec) <= _LARGEST and (not facts or facts.keys() <= _PLAIN)

    def passed(self) -> None:
        """The script was called: it has taken in what lay there."""
        self._is_open = asyncio.get_running_loop().time() >= self._closed_until

    async def leave(self, caller: str, call: str, job: NewJob, patience_s: float) -> bool | None:
        """Whether the job was left there; None where it may have been."""
        data = pack((*self._head, job.id, job.spec, caller, call)) + self._tail
        replies = await self._wire.push(data, 3, self._prefix, patience_s)
        if not replies:
            self._is_open = False
            return replies if replies is None else False
        entry, length, _ = replies
        if entry is None or any(isinstance(reply, hiredis.ReplyError) for reply in replies):
            self._is_open = False
            self._closed_until = asyncio.get_running_loop().time() + _CLOSED_S
            return None if isinstance(entry, bytes) else False  # nobody may have been woken
        self._is_open = length < _MOST
        return True
