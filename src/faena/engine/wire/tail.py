"""Waits on the server until a stream grows: XREAD BLOCK on links that do nothing else.

A server blocks one connection only for keys of one slot. On a single server, that is one link for
all streams; on a cluster, one link for each slot. The caller reads the new entries, so a wait that
ends early only costs a read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import hiredis

from faena.engine.wire import faults
from faena.engine.wire.address import Address
from faena.engine.wire.dialer import Dialer
from faena.engine.wire.idle_links import Group, IdleLinks, groups_of
from faena.engine.wire.link import pack
from faena.engine.wire.topology import Topology, slot_of

_GRACE_S = 1.0  # a server whose empty reply is later than this counts as dead


class Tail:
    """The waits of one reader. They stay on the server between two calls."""

    def __init__(self, topology: Topology, dialer: Dialer, where: Address) -> None:
        self._where = where
        self._topology = topology
        self._is_cluster = where.kind == "cluster"
        self._waits: dict[Group, asyncio.Task[None]] = {}
        self._links = IdleLinks(dialer)

    async def wait(self, after: Mapping[str, str], block_s: float) -> None:
        """Return when a stream has an entry after its position, or after `block_s`."""
        groups = groups_of(after, is_cluster=self._is_cluster)
        for group in [one for one in self._waits if one not in groups]:
            self._waits.pop(group).cancel()
        for group in groups:
            if group not in self._waits:
                positions = {key: after[key] for key in group}
                self._waits[group] = asyncio.create_task(self._wait(positions, block_s))
        done, _ = await asyncio.wait(
            self._waits.values(), timeout=block_s, return_when=asyncio.FIRST_COMPLETED
        )
        self._waits = {group: wait for group, wait in self._waits.items() if wait not in done}
        for wait in done:
            try:
                wait.result()
            except (OSError, hiredis.ReplyError) as failure:
                raise faults.translated(failure, where=self._where, op="events") from failure

    async def close(self) -> None:
        """End all waits and close their connections."""
        waits = tuple(self._waits.values())
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        self._links.close()
        self._waits = {}
        await asyncio.sleep(0)  # the transports report the end to their links in the next loop turn

    async def _wait(self, positions: Mapping[str, str], block_s: float) -> None:
        """Block on the owner of the slot; if the slot has moved, only the next wait follows it."""
        slot = slot_of(next(iter(positions))) if self._is_cluster else None
        node = await self._topology.locate(slot)
        command = ("XREAD", "COUNT", 1, "BLOCK", max(1, round(block_s * 1000)))
        data = pack((*command, "STREAMS", *positions, *positions.values()))
        try:
            link = await self._links.take(node)
            (reply,) = await link.ask(data, 1, block_s + _GRACE_S)
        except OSError:
            await self._topology.refresh()
            raise
        if isinstance(reply, hiredis.ReplyError):
            link.close()
            if faults.judge(reply) is faults.Verdict.MOVED:
                self._topology.move(*faults.redirection(reply, node))
            raise reply
        self._links.give(node, link)
