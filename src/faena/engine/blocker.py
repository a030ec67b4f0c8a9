"""Waits on the server for work to appear: BZPOPMIN on links that do nothing else.

A server blocks one connection for keys of one slot only. On a single server that is one link for
all keys. On a cluster each slot gets its own, and because the others are still waiting when the
first one answers, they are left blocked for the next call: closing them would cost a reconnection
per slot and wake-up, and could lose a member popped at the same moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import hiredis

from faena.engine import faults
from faena.engine.address import Node
from faena.engine.dialer import Dialer
from faena.engine.faults import Verdict
from faena.engine.link import Link, pack
from faena.engine.request import ASKING
from faena.engine.topology import Topology, slot_of

_GRACE_S = 1.0  # a server that is this late with its "nothing came" is taken for dead
_MAX_HOPS = 5

Group = tuple[str, ...]  # keys that may be waited for together


class Blocker:
    """Pops from whichever of several sorted sets gets a member first."""

    def __init__(self, topology: Topology, dialer: Dialer, *, is_cluster: bool) -> None:
        self._topology = topology
        self._dialer = dialer
        self._is_cluster = is_cluster
        self._idle: dict[Group, Link] = {}
        self._busy: set[Link] = set()
        self._waits: dict[Group, asyncio.Task[str | None]] = {}  # left blocked between calls
        self._is_closed = False
        self._is_in_doubt = False  # the last wait failed: ask who serves before the next one

    async def pop(self, keys: Sequence[str], block_s: float) -> str | None:
        """The key of the set popped from; None when nothing came in time."""
        if self._is_closed:
            raise ConnectionError("the wire has been closed by this program")
        groups = self._groups(keys)
        if len(groups) == 1 and not self._waits:
            return await self._wait(groups[0], block_s)
        return await self._first(groups, block_s)

    async def pop_then(self, key: str, block_s: float, command: bytes) -> Any:
        """Wait for a member of one set, or for the time to pass; then the reply to `command`.

        The command lies on the server while the wait lasts, so it runs at the very moment the
        wait ends, without a further trip. A redirection or a missing script is raised.
        """
        if self._is_closed:
            raise ConnectionError("the wire has been closed by this program")
        if self._is_in_doubt:
            await self._topology.refresh()
            self._is_in_doubt = False
        node = await self._topology.locate(slot_of(key) if self._is_cluster else None)
        wait = pack(("BZPOPMIN", key, block_s))
        reply = await self._ask((key,), node, [wait, command], block_s)
        if isinstance(reply, hiredis.ReplyError):
            raise reply
        return reply

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
        for link in (*self._idle.values(), *self._busy):
            link.close()
        self._waits.clear()
        self._idle.clear()

    async def _first(self, groups: list[Group], block_s: float) -> str | None:
        loop = asyncio.get_running_loop()
        until = loop.time() + block_s
        for stale in self._waits.keys() - set(groups):
            self._waits.pop(stale).cancel()
        while (left_s := until - loop.time()) > 0:
            waits = {group: self._begin(group, block_s) for group in groups}
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait(waits.values(), timeout=left_s, return_when=first)
            for group, wait in waits.items():
                if wait.cancelled():
                    raise ConnectionError("the connections have been dropped by this program")
                if wait.done():
                    self._waits.pop(group, None)
                    if popped := wait.result():
                        return popped
        return None

    def _begin(self, group: Group, block_s: float) -> asyncio.Task[str | None]:
        """The wait for a group, which may still go on since an earlier call."""
        if group not in self._waits:
            wait = asyncio.ensure_future(self._wait(group, block_s))
            # One that fails between two calls and is dropped then has nobody to tell.
            wait.add_done_callback(lambda task: task.cancelled() or task.exception())
            self._waits[group] = wait
        return self._waits[group]

    async def _wait(self, group: Group, block_s: float) -> str | None:
        """Block at the owner of the group's slot, following the slot when it moves."""
        if self._is_in_doubt:
            await self._topology.refresh()
            self._is_in_doubt = False
        node = await self._topology.locate(slot_of(group[0]) if self._is_cluster else None)
        prefix: list[bytes] = []
        command = pack(("BZPOPMIN", *group, block_s))
        for _ in range(_MAX_HOPS):
            reply = await self._ask(group, node, [*prefix, command], block_s)
            if not isinstance(reply, hiredis.ReplyError):
                return reply[0].decode() if reply else None
            verdict = faults.judge(reply)
            if verdict not in {Verdict.MOVED, Verdict.ASK}:
                raise reply
            slot, node = faults.redirection(reply, node)
            prefix = [ASKING] if verdict is Verdict.ASK else []
            if verdict is Verdict.MOVED:
                self._topology.move(slot, node)
        raise ConnectionError("the nodes disagree about who serves the keys")

    async def _ask(self, group: Group, node: Node, commands: list[bytes], block_s: float) -> Any:
        try:
            link = await self._take(group, node)
            self._busy.add(link)
            try:
                data = b"".join(commands)
                *_, reply = await link.ask(data, len(commands), block_s + _GRACE_S)
            finally:
                self._busy.discard(link)
        except (OSError, hiredis.ReplyError):
            self._is_in_doubt = True
            raise
        self._is_in_doubt = isinstance(reply, hiredis.ReplyError)
        if self._is_in_doubt or self._idle.setdefault(group, link) is not link:
            link.close()
        return reply

    async def _take(self, group: Group, node: Node) -> Link:
        link = self._idle.pop(group, None)
        if link is not None and link.is_open and link.node == node:
            return link
        if link is not None:
            link.close()
        return await self._dialer.dial(node)

    def _groups(self, keys: Sequence[str]) -> list[Group]:
        if not self._is_cluster:
            return [tuple(keys)]
        by_slot: dict[int, list[str]] = {}
        for key in keys:
            by_slot.setdefault(slot_of(key), []).append(key)
        return [tuple(group) for group in by_slot.values()]
