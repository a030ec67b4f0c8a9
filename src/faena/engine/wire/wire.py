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
_TOGETHER = 10
"""Script calls that are sent together: others wait for all of them."""
_SURE = frozenset({"enqueue", "exchange"})
"""Hot scripts: the engine builds or checks all their arguments, so the wire does not."""


class Wire:
    """Sends requests to the broker and returns the replies."""

    def __init__(
        self,
        address: Address,
        *,
        connections: int = 8,  # per node, without those for blocking waits and messages
        call_timeout_s: float = 4.0,  # of silence; a dead socket must be noticed within 5 s
        client_name: str = "faena",  # shown by CLIENT LIST
        restart: Callable[[], Awaitable[None]] | None = None,  # restarts an embedded server
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
        """Send one command to the owner of `key`, to `node`, or to any primary if neither is given.

        After a failure it is sent again only within `patience_s`. Set that only for commands that
        are safe to run twice.
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
        """Run a script on the server that has its first key; retry failures for `patience_s`.

        With a patience of 0 it is sent once. Otherwise no attempt starts after `patience_s`, but a
        running one may end later, because timeouts count only silence. `node` is for scripts
        without keys.
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

    async def run_each(
        self,
        script: Script,
        calls: Sequence[tuple[Key, Sequence[Argument]]],
        *,
        patience_s: float,
    ) -> list[Any]:
        """Run a script for each key with its arguments: the replies, in order.

        The script must be safe to run twice. A few calls are sent at a time, so that one script of
        somebody else waits for few of them. In a cluster each goes to its own server.
        """
        if self._is_cluster:
            alone = (self.run(script, [key], args, patience_s=patience_s) for key, args in calls)
            return await asyncio.gather(*alone)
        parts = [calls[at : at + _TOGETHER] for at in range(0, len(calls), _TOGETHER)]
        found = await asyncio.gather(*(self._run_part(script, one, patience_s) for one in parts))
        return [reply for replies in found for reply in replies]

    async def _run_part(
        self, script: Script, calls: Sequence[tuple[Key, Sequence[Argument]]], patience_s: float
    ) -> list[Any]:
        """What is refused, such as by a server without the library, is run once more, alone."""
        begin = self._dialect.call(script)
        for _, args in calls:
            check_arguments(args)
        request = Request(
            op=script.name,
            data=b"".join(pack((*begin, 1, key, *args)) for key, args in calls),
            replies=len(calls),
            timeout_s=self._call_timeout_s,
            script=script,
            dialect=self._dialect,
        )
        found = await self._resender.deliver(request, patience_s)
        replies = [found] if len(calls) == 1 else found
        return [
            await self.run(script, [key], args, patience_s=patience_s)
            if isinstance(reply, hiredis.ReplyError)
            else reply
            for reply, (key, args) in zip(replies, calls, strict=True)
        ]

    async def call_each(
        self, verb: str, calls: Sequence[tuple[Key, Sequence[Argument]]], *, patience_s: float
    ) -> list[Any]:
        """The replies to one command for many keys, which must be safe to run twice, in order."""

        def alone(key: Key, args: Sequence[Argument]) -> Coroutine[Any, Any, Any]:
            return self.call(verb, key, *args, key=key, patience_s=patience_s)

        if self._is_cluster or not calls:
            return await asyncio.gather(*(alone(key, args) for key, args in calls))
        for _, args in calls:
            check_arguments(args)
        request = Request(
            op=verb.lower(),
            data=b"".join(pack((verb, key, *args)) for key, args in calls),
            replies=len(calls),
            timeout_s=self._call_timeout_s,
        )
        found = await self._resender.deliver(request, patience_s)
        replies = [found] if len(calls) == 1 else found
        return [
            await alone(key, args) if isinstance(reply, hiredis.ReplyError) else reply
            for reply, (key, args) in zip(replies, calls, strict=True)
        ]

    def push(
        self, data: bytes, replies: int, key: Key, patience_s: float
    ) -> Coroutine[Any, Any, list[Any] | None]:
        """Send packed commands to the owner of `key` once, if an idle connection is available.

        Returns the replies, including errors. The list is empty if nothing was sent; None means
        that the commands were sent and no replies came.
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
        is_refused: Callable[[Any], bool] | None = None,
    ) -> tuple[Any, list[Any]]:
        """Run a script and, on the same connection, WAIT or WAITAOF commands.

        A server waits only for the writes of the same connection. A repeated call is answered from
        a record and writes nothing, so the server would confirm it at once, and wrongly. Therefore
        the script is followed by a write to a short-lived key in the same slot, the fence.

        A wait that the server refuses is returned as a `StoreRejected`, because the writes of the
        script remain. The last argument of each wait is its time limit in ms. A reply of the script
        that `is_refused` is returned without any wait: nothing was written.
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
            is_enough=is_refused,
        )
        reply, *rest = await self._resender.deliver(request, patience_s)
        if not rest:
            return reply, []
        fenced, *waited = rest
        if isinstance(fenced, hiredis.ReplyError):
            waited = [fenced] * len(waited)
        return reply, [faults.as_value(wait, where=self.address, op=script.name) for wait in waited]

    async def block_pop(self, keys: Sequence[str], block_s: float) -> str | None:
        """Wait until one of the sorted sets has a member, pop it, and return that set's key.

        Returns None if `block_s` passed first. Failures are raised at once, most of them as
        StoreUnavailable, because the only caller has its own retry loop. If a call ends before its
        wait, the wait stays on the server, and the next call returns what it popped, whatever its
        keys. `unblock` ends all waits.
        """
        try:
            return await self._blocker.pop(keys, block_s)
        except (OSError, hiredis.ReplyError) as failure:
            raise faults.translated(failure, where=self.address, op="block_pop") from failure

    def unblock(self) -> None:
        """End all waits of `block_pop`, so that nothing more is popped for this program."""
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
        """Wait like `block_pop` for one key, and run a script as soon as the wait ends.

        `on_reply` is called with its reply as soon as that arrives. Failures are raised at once.
        Without a reply it is unknown whether the script ran: run it again with the same call id.
        """
        command = pack((*self._dialect.call(script), len(keys), *keys, *args))
        try:
            await self._blocker.pop_then(key, block_s, command, on_reply)
        except (OSError, hiredis.ReplyError) as failure:
            raise faults.translated(failure, where=self.address, op=script.name) from failure

    async def listen(self, on_message: Mapping[str, Callable[[bytes], None]]) -> Subscription:
        """Subscribe to channels until the result is closed; reconnects after failures.

        Returns after the first attempt, even if it failed. Messages sent while the connection is
        down are lost.
        """
        subscription = Subscription(on_message, connect=self._connect_listener, jitter=random)
        self._subscriptions = [kept for kept in self._subscriptions if not kept.is_closed]
        self._subscriptions.append(subscription)
        await subscription.tried.wait()
        return subscription

    def tail(self) -> Tail:
        """The waits of one stream reader, which must close them; failures are raised at once."""
        return Tail(self._topology, self._dialer, self.address)

    @property
    def is_closed(self) -> bool:
        """Whether this program has closed the wire."""
        return self._resender.is_closed

    @property
    def is_plain(self) -> bool:
        """Whether scripts run without functions, because a server refused functions."""
        return self._dialect.is_plain

    async def nodes(self, patience_s: float = 0.0) -> tuple[Node, ...]:
        """The primary, or all primaries of a cluster."""
        return await self._resender.search(self._call_timeout_s, patience_s)

    async def rebuild(self) -> None:
        """Drop all connections, even those in use, and find the servers again."""
        self._drop()
        await self._resender.look(self._call_timeout_s)

    async def close(self) -> None:
        """Drop all connections and open no more; requests in flight fail."""
        self._resender.close()
        await self._blocker.close()
        await self._topology.close()
        for subscription in tuple(self._subscriptions):
            await subscription.close()
        self._subscriptions.clear()
        await asyncio.sleep(0)  # the transports report the end to their links in the next loop turn

    def _drop(self) -> None:
        self._resender.drop()
        self._blocker.drop()
        for subscription in self._subscriptions:
            subscription.reset()

    async def _connect_listener(self) -> Link:
        # After a failover the old primary may be gone, so find the primary before each connection.
        await self._topology.refresh()
        return await self._dialer.dial(await self._topology.locate(None))

    def _slot(self, key: Key | None) -> int | None:
        return slot_of(key) if self._is_cluster and key is not None else None


def fence_beside(key: Key) -> str:
    """The key of the fence, in the slot and with the prefix of `key`."""
    name = key.decode() if isinstance(key, bytes) else key
    head, brace, _ = name.partition("}")
    return f"{head}}}:fence" if brace else f"{{{name}}}:fence"
