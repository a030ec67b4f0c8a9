"""Appends single jobs to a stream with plain commands; the next script stores them.

A script takes more of the server's time than the trip to it. A job that is accepted in any case
needs no script: it is appended to the stream `arrivals`, and every script first stores the jobs it
finds there. If the stream does not exist, the job is sent with the script `enqueue`, which creates
the stream if allowed (see lua/lib/producing/arrivals_stream.lua).

An entry has a caller and a call id like any other call. If the outcome is unknown after a failure,
the job is sent again with the script, under the same call id, so it is never stored twice.
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
"""The most bytes of a job in the stream, because one call reads all of them."""

_MOST: Final = 100
"""The most jobs in the stream; then producers use the script, which stores them."""

_CLOSED_S: Final = 10.0
"""How long a producer assumes that the stream is closed."""

_PLAIN: Final = frozenset({"lane", "chain", "key"})
"""Facts that need no decision of the server."""


def arrivals_of(engine: Engine, queue: str) -> Arrivals | None:
    """The stream of a queue; None with a test's clock, because entries have the server's time."""
    return Arrivals(engine.wire, Keys(engine.namespace, queue)) if engine.clock is None else None


class Arrivals:
    """The stream for single jobs of one queue, which need no script."""

    def __init__(self, wire: Wire, keys: Keys) -> None:
        self._wire = wire
        self._prefix = keys.prefix
        self._head = ("XADD", keys("arrivals"), "NOMKSTREAM", "*")
        length, wake = ("XLEN", keys("arrivals")), ("ZADD", keys("wake"), 0, "work")
        self._tail = pack(length) + pack(wake)
        self._is_open = False
        self._closed_until = 0.0

    def is_for(self, jobs: Sequence[NewJob], epoch: int) -> bool:
        """Whether these jobs may go to the stream, as far as is known here."""
        if not self._is_open or len(jobs) != 1 or epoch:
            return False
        _, spec, facts = jobs[0]
        return len(spec) <= _LARGEST and (not facts or facts.keys() <= _PLAIN)

    def passed(self) -> None:
        """The script was called, and has stored the jobs in the stream."""
        self._is_open = asyncio.get_running_loop().time() >= self._closed_until

    async def leave(self, caller: str, call: str, job: NewJob, patience_s: float) -> bool | None:
        """Append the job; True if it was appended, None if that is unknown."""
        data = pack((*self._head, job.id, job.spec, caller, call)) + self._tail
        replies = await self._wire.push(data, 3, self._prefix, patience_s)
        if not replies:
            self._is_open = False
            return replies if replies is None else False
        entry, length, _ = replies
        if entry is None or any(isinstance(reply, hiredis.ReplyError) for reply in replies):
            self._is_open = False
            self._closed_until = asyncio.get_running_loop().time() + _CLOSED_S
            return None if isinstance(entry, bytes) else False  # perhaps no worker was woken
        self._is_open = length < _MOST
        return True
