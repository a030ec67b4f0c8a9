"""Delivers requests: finds the node, borrows a link, and retries until the patience ends.

The only place with retries. They are safe because each script call has a call id, and a script
answers the same call in the same way. So a request whose reply was lost is sent again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import hiredis

from faena.engine.wire import faults
from faena.engine.wire.address import Address, Node
from faena.engine.wire.dialer import Dialer
from faena.engine.wire.faults import FINAL, REDIRECTIONS, Failure, Verdict
from faena.engine.wire.missing_library import Resending
from faena.engine.wire.patience import Patience
from faena.engine.wire.pool import Pool
from faena.engine.wire.request import Request, check_replies
from faena.engine.wire.topology import Topology
from faena.errors import StoreUnavailable

_CLOSED = "the connection to the broker has been closed by this program"


class Resender:
    """Delivers requests to their nodes, through failures and redirections."""

    def __init__(
        self,
        address: Address,
        topology: Topology,
        dialer: Dialer,
        *,
        connections: int,
        jitter: Callable[[], float],
        restart: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._address = address
        self._topology = topology
        self._dialer = dialer
        self._connections = connections
        self._jitter = jitter
        self._restart = restart
        self._pools: dict[Node, Pool] = {}
        self._is_closed = False

    async def deliver(self, request: Request, patience_s: float) -> Any:
        """The reply to a request, all of them if it is several commands; or a store error."""
        patience = Patience(patience_s, self._jitter)
        node: Node | None = None
        diverted: Node | None = None
        while True:
            has_left = False
            try:
                node = diverted or request.node or self._topology.known(request.slot)
                node = node or await self._topology.locate(request.slot)
                pool = self._pools.get(node) or self._open_pool(node)
                link = pool.at_hand() or await pool.take(patience.limit(request.timeout_s))
                try:
                    timeout_s = patience.limit(request.timeout_s)
                    has_left = True
                    is_asking = diverted is not None
                    if is_asking:
                        replies = await request.send(link, timeout_s, is_asking=True)
                    else:
                        is_enough = request.is_enough
                        replies = await link.ask(
                            request.data, request.replies, timeout_s, is_enough=is_enough
                        )
                    if request.replies == 1 and not isinstance(replies[0], hiredis.ReplyError):
                        return replies[0]
                    again = Resending(request, link, timeout_s, is_asking=is_asking)
                    check_replies(replies := await again.if_missing(replies))
                    return replies[0] if request.replies == 1 else replies
                finally:
                    pool.give(link)
            except (OSError, hiredis.ReplyError) as failure:
                if has_left and isinstance(failure, OSError):
                    patience.is_outcome_unknown = True
                diverted = await self._recover(failure, request, node, patience)

    async def hand_over(
        self, data: bytes, replies: int, slot: int | None, timeout_s: float
    ) -> list[Any] | None:
        """The replies to packed commands that are sent once; see `Wire.push`."""
        node = self._topology.known(slot)
        pool = self._pools.get(node) if node is not None else None
        link = pool.at_hand() if pool is not None else None
        if pool is None or link is None:
            return []
        try:
            return await link.ask(data, replies, timeout_s)
        except (OSError, hiredis.ReplyError):
            return None
        finally:
            pool.give(link)

    async def search(self, timeout_s: float, patience_s: float) -> tuple[Node, ...]:
        """The primaries."""
        patience = Patience(patience_s, self._jitter)
        search = Request(op="connect", data=b"", replies=0, timeout_s=timeout_s)
        while True:
            try:
                await self._topology.locate(None)
                return self._topology.nodes()
            except (OSError, hiredis.ReplyError) as failure:
                await self._recover(failure, search, None, patience)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed for good."""
        return self._is_closed

    async def look(self, timeout_s: float) -> None:
        """Read the topology again; if that fails, the next attempt reports it."""
        with contextlib.suppress(OSError, hiredis.ReplyError):
            async with asyncio.timeout(timeout_s):
                await self._topology.refresh()

    def drop(self) -> None:
        """Close every link; requests in flight go on with new ones while their patience lasts."""
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()

    def close(self) -> None:
        """Close every link for good."""
        self._is_closed = True
        self.drop()

    async def _recover(
        self, failure: Failure, request: Request, node: Node | None, patience: Patience
    ) -> Node | None:
        """Follow a redirection, wait and look around, or give up; returns the node of an ASK."""
        where, op = node or self._address, request.op
        if self._is_closed:
            is_unknown = patience.is_outcome_unknown
            raise StoreUnavailable(_CLOSED, op=op, is_outcome_unknown=is_unknown) from failure
        verdict = faults.judge(failure)
        if verdict is Verdict.ASK and request.script is not None:
            verdict = Verdict.WAIT  # its keys are in two places: a script may run at neither
        is_redirected = verdict in REDIRECTIONS
        if verdict in FINAL or (is_redirected and self._address.kind != "cluster"):
            raise faults.refused(failure, where=where, op=op) from failure
        if is_redirected and node and not request.node and patience.may_redirect():
            return self._redirect(failure, verdict, node)
        told = patience.seen(failure)
        if not patience.may_pause():
            raise faults.unavailable(
                told,
                where=where,
                op=op,
                waited_s=patience.told_s,
                is_outcome_unknown=patience.is_outcome_unknown,
            ) from failure
        await patience.pause()
        if verdict is not Verdict.WAIT:
            self._distrust(node)
            if self._restart is not None:
                await self._restart()
            await self.look(patience.limit(request.timeout_s))
        return None

    def _redirect(self, failure: Failure, verdict: Verdict, node: Node) -> Node | None:
        slot, target = faults.redirection(failure, node)
        if verdict is Verdict.ASK:
            return target
        self._topology.move(slot, target)
        return None

    def _distrust(self, node: Node | None) -> None:
        # One dead socket is a sign that its idle sisters are dead too; each would cost a timeout.
        if node in self._pools:
            self._pools[node].drop_idle()

    def _open_pool(self, node: Node) -> Pool:
        if self._is_closed:
            raise StoreUnavailable(_CLOSED)
        pool = Pool(lambda timeout_s: self._dialer.dial(node, timeout_s), self._connections)
        self._pools[node] = pool
        return pool
