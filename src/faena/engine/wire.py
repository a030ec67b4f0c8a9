"""The only door to the broker.

A `Wire` sends scripts and commands to whichever server answers for a key, and stays usable through
whatever servers do: restarts, failovers, moved slots, lost scripts, sockets that went dead without
a word. There is one retry place, here, and it rests on a promise of the scripts: each carries a
call id and answers the same call the same way, so a request whose reply was lost is sent again.

    run, run_and_wait, call ─→ _deliver (patience) ─→ topology (which node) ─→ pool ─→ link

Replies are bytes, never decoded. A wire belongs to one event loop and opens nothing until first
used.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import hiredis

from faena.engine import faults
from faena.engine.address import Address, Node
from faena.engine.blocker import Blocker
from faena.engine.dialer import Dialer
from faena.engine.faults import Failure, Verdict
from faena.engine.link import Link, pack
from faena.engine.patience import Patience
from faena.engine.pool import Pool
from faena.engine.topology import open_topology, slot_of

_ASKING = pack(("ASKING",))
_FINAL = frozenset({Verdict.REJECTED, Verdict.BROKEN, Verdict.LOAD})
_REDIRECTIONS = frozenset({Verdict.MOVED, Verdict.ASK})

Argument = str | bytes | int | float
Key = str | bytes


class Script(Protocol):
    """What the wire needs to know of a script."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def sha(self) -> str: ...


@dataclass(slots=True)
class _Request:
    """Packed commands that travel together, and what to expect of them."""

    op: str
    data: bytes
    replies: int
    slot: int | None
    timeout_s: float
    script: Script | None = None

    async def send(self, link: Link, prefix: list[bytes], timeout_s: float) -> list[Any]:
        """The replies to this request; an error among those to the prefix is raised."""
        if not prefix:
            return await link.ask(self.data, self.replies, timeout_s)
        data = b"".join((*prefix, self.data))
        replies = await link.ask(data, len(prefix) + self.replies, timeout_s)
        for reply in replies[: len(prefix)]:
            if isinstance(reply, hiredis.ReplyError):
                raise reply
        return replies[len(prefix) :]


class Wire:
    """Carries requests to the broker and replies back."""

    def __init__(
        self,
        address: Address,
        *,
        connections: int = 8,
        call_timeout_s: float = 5.0,
        client_name: str = "faena",
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.address = address
        self._connections = connections  # per node, without blocked and subscribed ones
        self._call_timeout_s = call_timeout_s
        self._jitter = jitter
        self._dialer = Dialer(address, client_name=client_name, timeout_s=call_timeout_s)
        self._topology = open_topology(address, self._dialer)
        self._is_cluster = address.kind == "cluster"
        self._blocker = Blocker(self._topology, self._dialer, is_cluster=self._is_cluster)
        self._pools: dict[Node, Pool] = {}

    async def call(
        self, *command: Argument, key: Key | None = None, patience_s: float = 0.0
    ) -> Any:
        """Send one command to the node of `key`, or to any primary without one.

        It is not repeated after a failure unless `patience_s` says so: only for commands that may
        safely run twice.
        """
        request = _Request(
            op=str(command[0]).lower(),
            data=pack(command),
            replies=1,
            slot=self._slot(key),
            timeout_s=self._call_timeout_s,
        )
        return (await self._deliver(request, patience_s))[0]

    async def run(
        self,
        script: Script,
        keys: Sequence[Key],
        args: Sequence[Argument],
        *,
        patience_s: float,
    ) -> Any:
        """Run a script where its first key lives, again and again until `patience_s` is over.

        At 0 it is sent once and may take the wire's call timeout; otherwise `patience_s` bounds the
        whole call.
        """
        request = _Request(
            op=script.name,
            data=pack(("EVALSHA", script.sha, len(keys), *keys, *args)),
            replies=1,
            slot=self._slot(keys[0] if keys else None),
            timeout_s=self._call_timeout_s,
            script=script,
        )
        return (await self._deliver(request, patience_s))[0]

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

        A wait that the server refuses is returned as a `StoreRejected` in its place: what the
        script wrote stands all the same. Each wait's last argument is its time limit in ms.
        """
        commands = [("EVALSHA", script.sha, len(keys), *keys, *args), *map(tuple, waits)]
        request = _Request(
            op=script.name,
            data=b"".join(map(pack, commands)),
            replies=len(commands),
            slot=self._slot(keys[0] if keys else None),
            timeout_s=self._call_timeout_s + sum(int(wait[-1]) for wait in waits) / 1000,
            script=script,
        )
        reply, *waited = await self._deliver(request, patience_s)
        return reply, [faults.as_value(wait, where=self.address, op=script.name) for wait in waited]

    async def block_pop(self, keys: Sequence[str], block_s: float) -> str | None:
        """Wait until one of the sorted sets has a member, pop it, and return that set's key.

        None when `block_s` passed first. Failures are raised at once as StoreUnavailable: whoever
        waits has a loop of its own. On a cluster one wait per slot is kept on the server, also
        between calls, so a member popped for nobody is handed out by the next call; there, one
        caller at a time.
        """
        try:
            return await self._blocker.pop(keys, block_s)
        except (OSError, hiredis.ReplyError) as failure:
            if faults.judge(failure) in _FINAL:
                raise faults.refused(failure, where=self.address, op="block_pop") from failure
            raise faults.unavailable(failure, where=self.address, op="block_pop") from failure

    async def rebuild(self) -> None:
        """Drop every connection, in use or not, and find the servers again."""
        await self.close()
        await self._look(self._call_timeout_s)

    async def close(self) -> None:
        """Drop every connection; requests in flight fail."""
        self._blocker.close()
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()

    async def _deliver(self, request: _Request, patience_s: float) -> list[Any]:
        patience = Patience(patience_s, self._jitter)
        node: Node | None = None
        diverted: Node | None = None
        while True:
            try:
                node = diverted or await self._topology.locate(request.slot)
                timeout_s = patience.limit(request.timeout_s)
                return await self._visit(node, request, timeout_s, is_asking=diverted is not None)
            except (OSError, hiredis.ReplyError) as failure:
                diverted = await self._recover(failure, request.op, node, patience)

    async def _visit(
        self, node: Node, request: _Request, timeout_s: float, *, is_asking: bool
    ) -> list[Any]:
        """One attempt at one node; raises the first reply when that is an error."""
        pool = self._pools.get(node) or self._open_pool(node)
        link = await pool.take(timeout_s)
        try:
            prefix = [_ASKING] if is_asking else []
            replies = await request.send(link, prefix, timeout_s)
            if request.script is not None and faults.is_missing_script(replies[0]):
                prefix = [pack(("SCRIPT", "LOAD", request.script.source)), *prefix]
                replies = await request.send(link, prefix, timeout_s)
        finally:
            pool.give(link)
        if isinstance(replies[0], hiredis.ReplyError):
            raise replies[0]
        return replies

    async def _recover(
        self, failure: Failure, op: str, node: Node | None, patience: Patience
    ) -> Node | None:
        """Follow a redirection, wait and look around, or give up; returns the node of an ASK."""
        where = node or self.address
        verdict = faults.judge(failure)
        if verdict in _FINAL or (verdict in _REDIRECTIONS and not self._is_cluster):
            raise faults.refused(failure, where=where, op=op) from failure
        if verdict in _REDIRECTIONS and node and patience.may_redirect():
            slot, target = faults.redirection(failure, node)
            if verdict is Verdict.ASK:
                return target
            self._topology.move(slot, target)
            return None
        if not patience.may_pause():
            waited_s = patience.elapsed_s
            raise faults.unavailable(failure, where=where, op=op, waited_s=waited_s) from failure
        await patience.pause()
        if verdict is not Verdict.WAIT:
            self._distrust(node)
            await self._look(patience.limit(self._call_timeout_s))
        return None

    async def _look(self, timeout_s: float) -> None:
        """Learn the topology anew; when nobody can tell now, the next attempt shows it."""
        with contextlib.suppress(OSError, hiredis.ReplyError):
            async with asyncio.timeout(timeout_s):
                await self._topology.refresh()

    def _distrust(self, node: Node | None) -> None:
        # One dead socket is a sign that its idle sisters are dead too; each would cost a timeout.
        if node in self._pools:
            self._pools[node].drop_idle()

    def _open_pool(self, node: Node) -> Pool:
        pool = Pool(lambda: self._dialer.dial(node), self._connections)
        self._pools[node] = pool
        return pool

    def _slot(self, key: Key | None) -> int | None:
        return slot_of(key) if self._is_cluster and key is not None else None
