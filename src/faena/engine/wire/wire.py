"""The connection to the broker; everything else goes through it.

A `Wire` sends scripts and commands to the server that has a key. It recovers from restarts,
failovers, moved slots, lost scripts and silently dead sockets.

    run, run_and_wait, call  →  resender (patience) → topology (which node) → pool → link
    block_pop                →  blocker: links for blocking waits
    listen                   →  subscription: a link for messages

Replies are bytes, never decoded. A wire belongs to one event loop and opens nothing before its
first use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from random import random
from typing import Any

import hiredis

from faena.engine.wire import faults
from faena.engine.wire.address import Address, Node
from faena.engine.wire.blocker import Blocker
from faena.engine.wire.dialer import Dialer
from faena.engine.wire.link import Link, pack
from faena.engine.wire.request import Argument, Dialect, Key, Request, Script, check_arguments
from faena.engine.wire.resend import Resender
from faena.engine.wire.subscription import Subscription
from faena.engine.wire.tail import Tail
from faena.engine.wire.topology import open_topology, slot_of

_FENCE_MS = 1000
_SURE = frozenset({"enqueue", "exchange"})
"""Hot scripts, whose arguments were made or checked here, each of them."""


class Wire:
    """Carries requests to the broker and replies back."""

    def __init__(
        self,
        address: Address,
        *,
        connections: int = 8,  # to each node, not counting those that block or listen
        call_timeout_s: float = 4.0,  # of silence; a dead socket must cost less than 5 s
        client_name: str = "faena",  # what CLIENT LIST shows
        restart: Callable[[], Awaitable[None]] | None = None,  # starts a server of our own again
    ) -> None:
        self.address = address
        self._call_timeout_s = call_timeout_s
        self._dialect = Dialect()
        self._is_cluster = address.kind == "cluster"
        self._dialer = Dialer(address, client_name=client_name, timeout_s=call_timeout_s)
        self._topology = open_topology(address, self._dialer, on_switch=self._drop, jitter=random)
        self._resender = Resender(
            address,
            self._topology,
            self._dialer,
            connections=connections,
            jitter=random,
            restart=restart,
        )
        self._blocker = Blocker(self._topology, self._dialer, is_cluster=self._is_cluster)
        self._subscriptions: list[Subscription] = []

    def call(
        self,
        *command: Argument,
        key: Key | None = None,
        node: Node | None = None,
        patience_s: float = 0.0,
    ) -> Coroutine[Any, Any, Any]:
        """Send one command to the owner of `key`, to `node`, or without either to any primary.

        It is not repeated after a failure unless `patience_s` says so: only for commands that may
        safely run twice.
        """
        check_arguments(command)
        request = Request(
            op=str(command[0]).lower(),
            data=pack(command),
            replies=1,
            timeout_s=self._call_timeout_s,
            slot=self._slot(key),
            node=node,
        )
        return self._resender.deliver(request, patience_s)

    def run(
        self,
        script: Script,
        keys: Sequence[Key],
        args: Sequence[Argument],
        *,
        patience_s: float,
        node: Node | None = None,
    ) -> Coroutine[Any, Any, Any]:
        """Run a script where its first key lives, as often as it takes until `patience_s` is over.

        At a patience of 0 it is sent once; otherwise no attempt begins after `patience_s`. One
        under way may end later, since only silence is timed. A script without keys may be meant
        for one `node`.
        """
        if script.name not in _SURE:
            check_arguments(args)
        request = Request(
            op=script.name,
            data=pack((*self._dialect.call(script), len(keys), *keys, *args)),
            replies=1,
            timeout_s=self._call_timeout_s,
            slot=self._slot(keys[0] if keys else None),
            node=node,
            script=script,
            dialect=self._dialect,
        )
        return self._resender.deliver(request, patience_s)

    def push(
        self, data: bytes, replies: int, key: Key, patience_s: float
    ) -> Coroutine[Any, Any, list[Any] | None]:
        """Send packed commands to the owner of `key` once, where a connection lies ready.

        Returns the replies, errors among them; none when nothing was sent, and None when it was and
        nothing came back.
        """
        timeout_s = min(self._call_timeout_s, patience_s)
        return self._resender.hand_over(data, replies, self._slot(key), timeout_s)

    async def run_and_wait(
        self,
        script: Script,
        keys: Sequence[Key],
        args: Sequence[Argument],
        waits: Sequence[Sequence[Argument]],
        *,
        patience_s: float,
    ) -> tuple[Any, list[Any]]:
        """Run a script and, on the same connection, WAIT or WAITAOF commands.

        A server waits for what this very connection has written, so a repeated call, answered
        from a record without a write, would be confirmed at once and wrongly. Hence the fence: a
        short-lived key written after the script, beside its keys.

        A wait that the server refuses is returned as a `StoreRejected` in its place: what the
        script wrote stands all the same. Each wait's last argument is its time limit in ms.
        """
        call = (*self._dialect.call(script), len(keys), *keys, *args)
        fence = ("SET", fence_beside(keys[0]), "", "PX", _FENCE_MS)
        commands = [call, fence, *map(tuple, waits)]
        request = Request(
            op=script.name,
            data=b"".join(map(pack, commands)),
            replies=len(commands),
            timeout_s=self._call_timeout_s + sum(int(wait[-1]) for wait in waits) / 1000,
            slot=self._slot(keys[0]),
            script=script,
            dialect=self._dialect,
        )
        reply, fenced, *waited = await self._resender.deliver(request, patience_s)
        if isinstance(fenced, hiredis.ReplyError):
            waited = [fenced] * len(waited)
        return reply, [faults.as_value(wait, where=self.address, op=script.name) for wait in waited]

    async def block_pop(self, keys: Sequence[str], block_s: float) -> str | None:
        """Wait until one of the sorted sets has a member, pop it, and return that set's key.

        None when `block_s` passed first. Failures are raised at once, most of them as
        StoreUnavailable: whoever waits has a loop of its own, and is the only one. A wait is kept
        on the server when its call ends first, so that what was popped for nobody is handed out by
        the next call, whatever its keys; `unblock` ends them all.
        """
        try:
            return await self._blocker.pop(keys, block_s)
        except (OSError, hiredis.ReplyError) as failure:
            raise faults.translated(failure, where=self.address, op="block_pop") from failure

    def unblock(self) -> None:
        """End the waits of `block_pop`: nothing more is popped for this program."""
        self._blocker.drop()

    async def block_then_run(
        self,
        key: str,
        block_s: float,
        script: Script,
        keys: Sequence[Key],
        args: Sequence[Argument],
        on_reply: Callable[[Any], None],
    ) -> None:
        """Wait as `block_pop` does for one key, and run a script the moment the wait ends; its
        reply is handed over the moment it comes.

        Failures are raised at once. Whether the script ran is unknown when there was no reply: run
        it again under the same call id.
        """
        command = pack((*self._dialect.call(script), len(keys), *keys, *args))
        try:
            await self._blocker.pop_then(key, block_s, command, on_reply)
        except (OSError, hiredis.ReplyError) as failure:
            raise faults.translated(failure, where=self.address, op=script.name) from failure

    async def listen(self, on_message: Mapping[str, Callable[[bytes], None]]) -> Subscription:
        """Subscribe to channels until the result is closed, over any number of reconnections.

        Returns after the first attempt, successful or not. Messages sent while the connection is
        down are lost.
        """
        subscription = Subscription(on_message, connect=self._connect_listener, jitter=random)
        self._subscriptions = [kept for kept in self._subscriptions if not kept.is_closed]
        self._subscriptions.append(subscription)
        await subscription.tried.wait()
        return subscription

    def tail(self) -> Tail:
        """Waits of one reader of streams, for it to close. Failures are raised at once."""
        return Tail(self._topology, self._dialer, self.address)

    @property
    def is_closed(self) -> bool:
        """Whether this program has closed it for good."""
        return self._resender.is_closed

    @property
    def is_plain(self) -> bool:
        """Whether scripts are run without functions, since a server refused those."""
        return self._dialect.is_plain

    async def nodes(self, patience_s: float = 0.0) -> tuple[Node, ...]:
        """The primaries: one, or all of a cluster."""
        return await self._resender.search(self._call_timeout_s, patience_s)

    async def rebuild(self) -> None:
        """Drop every connection, in use or not, and find the servers again."""
        self._drop()
        await self._resender.look(self._call_timeout_s)

    async def close(self) -> None:
        """Drop every connection for good; requests in flight fail."""
        self._resender.close()
        await self._blocker.close()
        await self._topology.close()
        for subscription in tuple(self._subscriptions):
            await subscription.close()
        self._subscriptions.clear()
        await asyncio.sleep(0)  # the transports tell their links about the end in the next turn

    def _drop(self) -> None:
        self._resender.drop()
        self._blocker.drop()
        for subscription in self._subscriptions:
            subscription.reset()

    async def _connect_listener(self) -> Link:
        # After a failover the old primary may be gone: ask who is there before every connection.
        await self._topology.refresh()
        return await self._dialer.dial(await self._topology.locate(None))

    def _slot(self, key: Key | None) -> int | None:
        return slot_of(key) if self._is_cluster and key is not None else None


def fence_beside(key: Key) -> str:
    """The key of the fence in the slot, and under the prefix, of `key`."""
    name = key.decode() if isinstance(key, bytes) else key
    head, brace, _ = name.partition("}")
    return f"{head}}}:fence" if brace else f"{{{name}}}:fence"
