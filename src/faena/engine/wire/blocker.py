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

_GRACE_S = 1.0  # a server whose empty reply is later than this counts as dead
_MAX_HOPS = 5
_LEAST_S = 0.01


class Blocker:
    """Pops from the first of several sorted sets that gets a member."""

    def __init__(self, topology: Topology, dialer: Dialer, *, is_cluster: bool) -> None:
        self._topology = topology
        self._is_cluster = is_cluster
        self._idle = IdleLinks(dialer)
        self._busy: set[Link] = set()
        self._waits: dict[Group, asyncio.Task[str | None]] = {}  # kept on the server between calls
        self._ends_at = 0.0  # when all of them end
        self._is_closed = False
        self._doubted: Node | None = None  # where a wait failed: refresh before the next

    async def pop(self, keys: Sequence[str], block_s: float) -> str | None:
        """The key of the set that was popped; None if no set got a member in time.

        It may be a key of an earlier call. Without keys, only waits of earlier calls count.
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
                begun = self._begin(keys, until - loop.time())  # earlier waits ended too early
        return popped

    async def pop_then(
        self, key: str, block_s: float, command: bytes, on_reply: Callable[[Any], None]
    ) -> None:
        """Pop from one set, or time out, then run `command`; `on_reply` gets its reply at once.

        The command is sent together with the wait, so it runs as soon as the wait ends, without
        another round trip. A redirection, a missing script or a refused wait is raised; the command
        may have run even then.
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
        """End all waits and refuse new ones."""
        self._is_closed = True
        waits = tuple(self._waits.values())
        self.drop()
        await asyncio.gather(*waits, return_exceptions=True)

    def drop(self) -> None:
        """End all waits and close their connections."""
        for wait in self._waits.values():
            wait.cancel()
        self._idle.close()
        for link in tuple(self._busy):
            link.close()
        self._waits.clear()

    def _begin(self, keys: Sequence[str], block_s: float) -> list[asyncio.Task[str | None]]:
        """Start waits for the keys that no running wait has."""
        now = asyncio.get_running_loop().time()
        if not self._waits:
            self._ends_at = now + block_s
        left_s = min(block_s, max(self._ends_at - now, _LEAST_S))
        waited = {key for group in self._waits for key in group}
        begun: list[asyncio.Task[str | None]] = []
        left = [key for key in keys if key not in waited]
        for group in groups_of(left, is_cluster=self._is_cluster):
            wait = asyncio.ensure_future(self._wait(group, left_s))
            # If it fails and is dropped between two calls, its exception must count as retrieved.
            wait.add_done_callback(lambda task: task.cancelled() or task.exception())
            self._waits[group] = wait
            begun.append(wait)
        return begun

    def _collect(self) -> str | None:
        """Remove waits that have ended, up to the first that popped a member; returns its key."""
        for group, wait in tuple(self._waits.items()):
            if wait.done():
                del self._waits[group]
                if popped := wait.result():
                    return popped
        return None

    async def _wait(self, group: Group, block_s: float) -> str | None:
        """Block on the owner of the group's slot; follow redirections if the slot moves."""
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
        """The last reply, or the first error: after a refused wait, the command runs at once."""
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
        """The node that has the key.

        The topology is refreshed only if it still names the node where a wait failed. If another
        caller has found a new primary, a refresh from an outdated sentinel could undo that.
        """
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
