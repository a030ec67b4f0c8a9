"""Relays messages and pending sends between shards.

    a job of a flow ends      the script that settles it writes a message to the shard's outbox
    the message is applied    at the flow's queue, which lists what must be sent next: pending sends
    pending sends are run     the jobs are enqueued, and struck off the list

Any worker can relay anything at any time: a message is applied once whoever brings it, a job has
one id and is enqueued once, and nothing is struck off before it has arrived. A worker that dies on
the way loses nothing; the next one that sweeps the shard goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from faena.engine import Engine
from faena.engine.calls.flows import FlowCalls, Message
from faena.errors import FaenaError, ScriptError, StoreError
from faena.flows.pending_sends import PendingSends
from faena.producing.client import Client

_log = logging.getLogger("faena.flows")


class Relay:
    """Relays the messages and pending sends of the shards it is told of."""

    def __init__(self, engine: Engine, client: Client) -> None:
        self._calls = FlowCalls(engine)
        self._pending = PendingSends(self._calls, client)
        self._shards: dict[str, None] = {}
        self.outlets: dict[str, Callable[[str], None]] = {}
        """Told of shards that have messages for recipients that are no shards, such as the outbox
        of a database, by their names. They fetch the messages themselves: they may take long."""
        self._news = asyncio.Event()

    def notify(self, shard: str) -> None:
        """A shard has something to be carried."""
        self._shards[shard] = None
        self._news.set()

    async def run(self) -> None:
        """Carry until cancelled; what fails is told again by a later sweep."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._shards:
                shard = next(iter(self._shards))
                del self._shards[shard]
                await self.try_to_carry(shard)

    async def try_to_carry(self, shard: str) -> None:
        """Carry now if that is possible; a worker does it later otherwise."""
        try:
            await self.carry(shard)
        except FaenaError as error:
            _log.warning("shard %s: could not relay its messages now: %s", shard, error)

    async def carry(self, shard: str) -> None:
        """Carry everything that a shard has, and what comes of it.

        Raises the last of what kept something back, when all else is done.
        """
        waiting = [shard]
        failure: FaenaError | None = None
        while waiting:
            one = waiting.pop(0)
            for to in await self._calls.addressees(one):
                if to.startswith("@"):
                    self.outlets.get(to, _ignore)(one)
                    continue
                try:
                    if await self._deliver(one, to) and to not in waiting:
                        waiting.append(to)
                except StoreError as error:
                    failure = error
            failure = await self._pending.run(one) or failure
        if failure is not None:
            raise failure

    async def _deliver(self, shard: str, to: str) -> bool:
        """Relay all messages of a shard to a queue; whether that has something to relay now."""
        has_more = False
        left = 1
        while left and (messages := await self._calls.messages(shard, to)):
            has_more = await self._hand_over(shard, to, messages) or has_more
            left = await self._calls.delivered(shard, to, messages[-1].id)
        return has_more

    async def _hand_over(self, shard: str, to: str, messages: Sequence[Message]) -> bool:
        """Have messages applied; one that cannot be read is dropped, or it would block the rest."""
        try:
            return await self._calls.receive(to, shard, messages)
        except ScriptError as error:
            if len(messages) == 1:
                _log.error("a message from %s to %s cannot be read: %s", shard, to, error)
                return False
        handed = [await self._hand_over(shard, to, [one]) for one in messages]
        return any(handed)


def _ignore(_shard: str) -> None:
    """Another program relays these messages."""
