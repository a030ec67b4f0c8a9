"""Waits on the server for work to appear: BZPOPMIN on links that do nothing else.

A server blocks one connection only for keys of one slot. On a single server, that is one link for
all keys; on a cluster, one link for each slot. If a call ends before its wait (another wait was
answered first, or the caller was cancelled to ask for more keys), the wait stays on the server for
the next call, which only adds the other keys. Ending it would cost a reconnection, and could lose a
member that is popped at the same moment. Waits are timed to end together, and are then merged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import hiredis

from faena.engine.wire import faults
from faena.engine.wire.address import Node
from faena.engine.wire.dialer import Dialer
from faena.engine.wire.faults import Verdict
from faena.engine.wire.idle_links import Group, IdleLinks, groups_of
from faena.engine.wire.link import Link, pack
from faena.engine.wire.request import ASKING
from faena.engine.wire.topology import Topology, slot_of

_GRACE_S = 1.0  # a server that is this late with its "nothing came" is taken for dead
_MAX_HOPS = 5
_LEAST_S = 0.01


class Blocker:
    """Pops from the first of several sorted sets that gets a member."""

    def __init__(self, topology: Topology, dialer: Dialer, *, is_cluster: bool) -> None:
        self._topology = topology
        self._is_cluster = is_cluster
        self._idle = IdleLinks(dialer)
        self._busy: set[Link] = set()
        self._waits: dict[Group, asyncio.Task[str | None]] = {}  # left blocked between calls
        self._ends_at = 0.0  # when they end, all together
        self._is_closed = False
        self._doubted: Node | None = None  # a wait failed there: ask who serves before the next

    async def pop(self, keys: Sequence[str], block_s: float) -> str | None:
        """The key of the set that was popped; None if none got a member in time.

        It may be a key that only an earlier call asked for. Without keys, only earlier waits count.
        """
        if self._is_closed:
            raise ConnectionError("the wire has been closed by this program")
        loop = asyncio.get_running_loop()
        until = loop.time() + block_s
        popped = self._collect()
        begun = [] if popped else self._begin(keys, block_s)
        while popped is None and self._waits:
            left_s = None if any(not wait.done() for wait in begun) else until - loop.time()
            if left_s is not None and left_s <= 0:
                break
            waits = tuple(self._waits.values())
            await asyncio.wait(waits, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            if any(wait.cancelled() for wait in waits):
                raise ConnectionError("the connections have been dropped by this program")
            popped = self._collect()
            if not popped and not self._waits and until - loop.time() > _LEAST_S:
                begun = self._begin(keys, until - loop.time())  # earlier waits ended before ours
        return popped

    async def pop_then(
        self, key: str, block_s: float, command: bytes, on_reply: Callable[[Any], None]
    ) -> None:
        """Wait for a member of one set, or for the time to pass; `on_reply` is given the reply to
        `command` the moment it comes.

        The command lies on the server while the wait lasts, so it runs at the very moment the
        wait ends, without a further trip. A redirection, a missing script or a refused wait is
        raised; the command may have run all the same.
        """
        if self._is_closed:
            raise ConnectionError("the wire has been closed by this program")
        node = await self._locate(key)
        wait = pack(("BZPOPMIN", key, block_s))

        def heard(replies: list[Any]) -> None:
            if _refusal(replies) is None:
                on_reply(replies[-1])

        reply = await self._ask(node, [wait, command], block_s, heard)
        if isinstance(reply, hiredis.ReplyError):
            raise reply

    async def close(self) -> None:
        """End every wait for good."""
        self._is_closed = True
        waits = tuple(self._waits.values())
        self.drop()
        await asyncio.gather(*waits, return_exceptions=True)

    def drop(self) -> None:
        """End every wait and its connection."""
        for wait in self._waits.values():
            wait.cancel()
        self._idle.close()
        for link in tuple(self._busy):
            link.close()
        self._waits.clear()

    def _begin(self, keys: Sequence[str], block_s: float) -> list[asyncio.Task[str | None]]:
        """Wait for the keys that no wait under way has."""
        now = asyncio.get_running_loop().time()
        if not self._waits:
            self._ends_at = now + block_s
        left_s = min(block_s, max(self._ends_at - now, _LEAST_S))
        waited = {key for group in self._waits for key in group}
        begun: list[asyncio.Task[str | None]] = []
        left = [key for key in keys if key not in waited]
        for group in groups_of(left, is_cluster=self._is_cluster):
            wait = asyncio.ensure_future(self._wait(group, left_s))
            # One that fails between two calls and is dropped then has nobody to tell.
            wait.add_done_callback(lambda task: task.cancelled() or task.exception())
            self._waits[group] = wait
            begun.append(wait)
        return begun

    def _collect(self) -> str | None:
        """Forget the waits that have ended, up to one that popped something."""
        for group, wait in tuple(self._waits.items()):
            if wait.done():
                del self._waits[group]
                if popped := wait.result():
                    return popped
        return None

    async def _wait(self, group: Group, block_s: float) -> str | None:
        """Block at the owner of the group's slot, following the slot when it moves."""
        node = await self._locate(group[0])
        prefix: list[bytes] = []
        command = pack(("BZPOPMIN", *group, block_s))
        for _ in range(_MAX_HOPS):
            reply = await self._ask(node, [*prefix, command], block_s)
            if not isinstance(reply, hiredis.ReplyError):
                return reply[0].decode() if reply else None
            verdict = faults.judge(reply)
            if verdict not in {Verdict.MOVED, Verdict.ASK}:
                raise reply
            slot, node = faults.redirection(reply, node)
            prefix = [ASKING] if verdict is Verdict.ASK else []
            if verdict is Verdict.MOVED:
                self._topology.move(slot, node)
        raise ConnectionError("the nodes disagree about which of them serves the keys")

    async def _ask(
        self,
        node: Node,
        commands: list[bytes],
        block_s: float,
        on_replies: Callable[[list[Any]], None] | None = None,
    ) -> Any:
        """The last reply, or the first refusal: behind a wait that is refused nothing waits."""
        try:
            link = await self._idle.take(node)
            self._busy.add(link)
            try:
                data = b"".join(commands)
                replies = await link.ask(data, len(commands), block_s + _GRACE_S, on_replies)
            finally:
                self._busy.discard(link)
        except (OSError, hiredis.ReplyError):
            self._doubted = node
            raise
        refusal = _refusal(replies)
        if refusal is not None:
            self._doubted = node
            link.close()
        else:
            self._idle.give(node, link)
        return refusal or replies[-1]

    async def _locate(self, key: str) -> Node:
        """Who serves the key. Where others have found a new primary since, nobody is asked again:
        a sentinel that is behind would lead back to the old one."""
        slot = slot_of(key) if self._is_cluster else None
        node = await self._topology.locate(slot)
        if node == self._doubted:
            await self._topology.refresh()
            self._doubted = None
            node = await self._topology.locate(slot)
        return node


def _refusal(replies: Sequence[Any]) -> hiredis.ReplyError | None:
    for reply in replies:
        if isinstance(reply, hiredis.ReplyError):
            return reply
    return None
