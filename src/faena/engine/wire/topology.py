"""Finds the server of a key: the only one, the primary named by sentinels, or the owner of a slot.

A topology caches what it last read. Only a caller whose call failed reads it again (`refresh`). The
others use the cached nodes, so one dead node of a cluster does not slow down the other nodes.
"""

from __future__ import annotations

import asyncio
import random
from binascii import crc_hqx
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

import hiredis

from faena.engine.wire.address import Address, Node
from faena.engine.wire.dialer import Dialer
from faena.engine.wire.faults import Misfit
from faena.engine.wire.link import Link, pack
from faena.engine.wire.subscription import Subscription
from faena.errors import StoreRejected

SLOTS = 16384
_ASK_S = 1.0  # the time limit for one sentinel or seed node; then the next is asked


def slot_of(key: str | bytes) -> int:
    """The cluster slot of a key: CRC16 of its hash tag, or of the whole key if it has none."""
    name = key.encode() if isinstance(key, str) else key
    start = name.find(b"{")
    if start >= 0:
        end = name.find(b"}", start + 1)
        if end > start + 1:
            name = name[start + 1 : end]
    return crc_hqx(name, 0) % SLOTS


class Topology(Protocol):
    """Finds the servers for the wire."""

    async def locate(self, slot: int | None) -> Node:
        """The node for a slot; any primary for None."""
        ...

    def known(self, slot: int | None) -> Node | None:
        """The same from the cache; None if it must be looked up."""
        ...

    async def refresh(self) -> None:
        """Read the roles of the servers again."""
        ...

    def move(self, slot: int, node: Node) -> None:
        """Store the new owner of a slot, from a MOVED reply."""
        ...

    def nodes(self) -> tuple[Node, ...]:
        """The primaries known now."""
        ...

    async def close(self) -> None:
        """Stop lookups and subscriptions."""
        ...


class Direct:
    """A single server."""

    def __init__(self, address: Address) -> None:
        self._node = address.nodes[0]

    def known(self, slot: int | None) -> Node | None:
        del slot
        return self._node

    async def locate(self, slot: int | None) -> Node:
        del slot
        return self._node

    async def refresh(self) -> None:
        return

    def move(self, slot: int, node: Node) -> None:
        del slot, node

    def nodes(self) -> tuple[Node, ...]:
        return (self._node,)

    async def close(self) -> None:
        return


class Sentinels:
    """The primary of one service, named by the sentinels.

    It also subscribes to one sentinel, because in a planned failover the old primary accepts writes
    for about ten more seconds and then loses them.
    """

    def __init__(
        self,
        address: Address,
        dialer: Dialer,
        *,
        on_switch: Callable[[], None],
        jitter: Callable[[], float],
    ) -> None:
        self._service = address.service or ""
        self._on_switch = on_switch
        self._jitter = jitter
        self._watch: Subscription | None = None
        self._sentinels = list(address.nodes)
        self._dialer = dialer
        self._primary: Node | None = None
        self._once = _Once(self._learn)

    def known(self, slot: int | None) -> Node | None:
        del slot
        return self._primary

    async def locate(self, slot: int | None) -> Node:
        del slot
        if self._primary is None:
            await self.refresh()
        assert self._primary is not None  # noqa: S101  refresh raises when it learns nothing
        return self._primary

    async def refresh(self) -> None:
        await self._once()
        if self._watch is None:
            self._watch = Subscription(
                {"+switch-master": self._hear}, connect=self._connect, jitter=self._jitter
            )

    async def close(self) -> None:
        await self._once.stop()
        if self._watch is not None:
            await self._watch.close()

    def move(self, slot: int, node: Node) -> None:
        del slot, node

    def nodes(self) -> tuple[Node, ...]:
        return (self._primary,) if self._primary else ()

    async def _connect(self) -> Link:
        return await self._dialer.dial_sentinel(random.choice(self._sentinels))

    def _hear(self, message: bytes) -> None:
        service, _, _, host, port = message.decode().split(" ")
        primary = Node(host, int(port))
        if service == self._service and primary != self._primary:
            self._primary = primary
            self._on_switch()

    async def _learn(self) -> None:
        # Each lookup starts with the next sentinel, because one that is cut off from the others
        # would name a dead primary forever.
        self._sentinels.append(self._sentinels.pop(0))
        command = pack(("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service))
        try:
            answer = await _ask_any(self._sentinels, self._dialer.dial_sentinel, command)
        except hiredis.ReplyError as refusal:
            raise _told(refusal) from refusal
        if answer is None:
            known = ", ".join(map(str, self._sentinels))
            raise StoreRejected(f"no service named {self._service!r} at the sentinels {known}")
        self._primary = Node(answer[1][0].decode(), int(answer[1][1]))


def _told(refusal: hiredis.ReplyError) -> Exception:
    """Name the missing credentials: sentinels and servers have different ones."""
    if str(refusal).startswith(("NOAUTH", "WRONGPASS")):
        return Misfit(
            "the sentinels require a password of their own: put it in the URL, "
            f"?sentinel_password=… ({refusal})"
        )
    return refusal


class Cluster:
    """The owners of all slots of a cluster."""

    def __init__(self, address: Address, dialer: Dialer) -> None:
        self._seeds = address.nodes
        self._dialer = dialer
        self._owners: list[Node | None] = []
        self._nodes: tuple[Node, ...] = ()
        self._once = _Once(self._learn)

    def known(self, slot: int | None) -> Node | None:
        return self._owners[slot] if self._owners and slot is not None else None

    async def locate(self, slot: int | None) -> Node:
        if not self._owners:
            await self.refresh()
        owner = self._owners[slot] if slot is not None else None
        # If no owner is known, any node answers MOVED or CLUSTERDOWN.
        return owner or random.choice(self.nodes())

    async def refresh(self) -> None:
        await self._once()

    def nodes(self) -> tuple[Node, ...]:
        return self._nodes or self._seeds

    def move(self, slot: int, node: Node) -> None:
        if self._owners:
            self._owners[slot] = node
            self._nodes = tuple({*self._nodes, node})

    async def close(self) -> None:
        await self._once.stop()

    async def _learn(self) -> None:
        candidates = {*self._seeds, *self.nodes()}
        order = random.sample(sorted(candidates), len(candidates))
        answer = await _ask_any(order, self._dialer.dial, pack(("CLUSTER", "SLOTS")))
        owners: list[Node | None] = [None] * SLOTS
        asked, ranges = answer or (self._seeds[0], [])
        for first, last, primary, *_ in ranges:
            owner = _endpoint(primary, asked)
            owners[first : last + 1] = [owner] * (last - first + 1)
        self._owners = owners
        self._nodes = tuple({node for node in owners if node})


class _Once:
    """Runs one call of a coroutine function at a time; concurrent callers share its outcome."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self._running: asyncio.Task[None] | None = None

    async def __call__(self) -> None:
        if self._running is None:
            self._running = asyncio.ensure_future(self._run())
            # If all callers were cancelled, its exception must still count as retrieved.
            self._running.add_done_callback(lambda task: task.cancelled() or task.exception())
        task = self._running
        # Not awaited directly: a cancelled caller must not cancel the task for the others.
        await asyncio.wait([task])
        if task.cancelled():
            raise ConnectionError("the search for the servers was stopped by this program")
        task.result()

    async def stop(self) -> None:
        """Cancel the running call."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _run(self) -> None:
        try:
            await self._work()
        finally:
            self._running = None


async def _ask_any(
    nodes: Iterable[Node], dial: Callable[[Node], Awaitable[Link]], command: bytes
) -> tuple[Node, Any] | None:
    """The first answer that is not nil, with its node; None if all answers were nil.

    Raises the last failure if no node answered.
    """
    failure: OSError | hiredis.ReplyError | None = None
    has_answered = False
    for node in nodes:
        try:
            reply = await _ask(node, dial, command)
        except (OSError, hiredis.ReplyError) as cause:
            failure = cause
            continue
        has_answered = True
        if reply is not None:
            return node, reply
    if failure is not None and not has_answered:
        raise failure
    return None


async def _ask(node: Node, dial: Callable[[Node], Awaitable[Link]], command: bytes) -> Any:
    async with asyncio.timeout(_ASK_S):
        link = await dial(node)
        try:
            reply = (await link.ask(command, 1, _ASK_S))[0]
        finally:
            link.close()
    if isinstance(reply, hiredis.ReplyError):
        raise reply
    return reply


def _endpoint(entry: list[Any], asked: Node) -> Node:
    # With an empty, nil or "?" host the server does not know its address: use the host asked.
    host = (entry[0] or b"").decode()
    return Node(host if host and host != "?" else asked.host, int(entry[1]))


def open_topology(
    address: Address,
    dialer: Dialer,
    *,
    on_switch: Callable[[], None],
    jitter: Callable[[], float],
) -> Topology:
    """The topology for an address; `on_switch` is called when sentinels announce a new primary."""
    if address.kind == "sentinel":
        return Sentinels(address, dialer, on_switch=on_switch, jitter=jitter)
    if address.kind == "cluster":
        return Cluster(address, dialer)
    return Direct(address)
