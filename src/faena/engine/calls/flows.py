"""Messages between shards, pending sends, flows and groups; each method is one call.

A message is applied once in another shard. A pending send is a job of a flow or a group that is to
be enqueued in a queue, or cancelled there. `faena.flows.relay` relays both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from faena.engine.engine import Engine
from faena.engine.envelope import Facts
from faena.engine.requester import requester
from faena.engine.scripts import pairs, texts
from faena.engine.wire.wire import Argument

MESSAGES: Final = 50
"""Messages, or pending sends, in one call."""


class Message(NamedTuple):
    """An entry of an outbox stream."""

    id: str
    words: bytes


class PendingSend(NamedTuple):
    """A job of a flow or group to enqueue, or to cancel."""

    name: str
    queue: str
    """Empty if it must wait."""
    job: str
    made: bytes
    """The packed parts of the job; empty if it is to be cancelled."""
    inputs: Sequence[Any]
    """The numbers of its parents, or the counts of its group."""

    @property
    def is_gone(self) -> bool:
        """Whether its flow or group no longer exists."""
        return not self.queue and not self.job

    @property
    def flow(self) -> tuple[str, str]:
        """The flow or group, and the node or callback."""
        _, flow, name, _ = self.name.split(":", 3)
        return flow, name


class FlowCalls:
    """The calls, for any shard."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # -- messages -------------------------------------------------------------------------------

    async def addressees(self, shard: str) -> list[str]:
        """The queues that messages of a shard are for."""
        return texts(await self._engine.command("SMEMBERS", shard, "recipients"))

    async def messages(self, shard: str, to: str) -> list[Message]:
        """The oldest messages of a shard to a queue."""
        found = await self._engine.command(
            "XRANGE", shard, f"messages:{to}", "-", "+", "COUNT", MESSAGES
        )
        return [Message(number.decode(), fields[1]) for number, fields in found]

    async def receive(self, to: str, shard: str, messages: Sequence[Message]) -> bool:
        """Apply messages in a shard, each once; returns whether it has something to relay now."""
        flat: list[Argument] = [part for message in messages for part in message]
        return await self._engine.ask("receive", to, *flat, shard=to, source=shard) == 1

    async def delivered(self, shard: str, to: str, last: str) -> int:
        """Delete delivered messages; returns how many are left."""
        return int(await self._engine.ask("relayed", shard, to=to, last=last))

    async def known_sends(self, shard: str, ids: Sequence[str]) -> list[str]:
        """What a shard knows of sends that have come and gone there; "" for nothing."""
        return texts(await self._engine.ask("known_sends", shard, *ids))

    # -- pending sends --------------------------------------------------------------------------

    async def pending_sends(self, queue: str, start: int) -> tuple[int, list[PendingSend]]:
        """The server's time, and the pending sends from an index on."""
        now, *found = await self._engine.ask("pending_sends", queue, start=start, most=MESSAGES)
        return int(now), [
            PendingSend(name.decode(), to.decode(), job.decode(), made, inputs)
            for name, to, job, made, inputs in found
        ]

    async def is_pending(self, queue: str, name: str) -> bool:
        """Whether a pending send is still to be run."""
        return await self._engine.command("ZSCORE", queue, "pending_sends", name) is not None

    async def done(self, queue: str, names: Sequence[str]) -> None:
        """Delete pending sends."""
        if names:
            await self._engine.command("ZREM", queue, "pending_sends", *names)

    async def has_outbox(self, shard: str) -> bool:
        """Whether there are messages or pending sends."""
        return bool(
            await self._engine.command("SCARD", shard, "recipients")
            or await self._engine.command("ZCARD", shard, "pending_sends")
        )

    # -- flows ----------------------------------------------------------------------------------

    async def flow(
        self, queue: str, flow: str, verb: str, /, *fields: Argument, **named: Argument
    ) -> str:
        """OK, or the state that forbids the verb, or unknown."""
        named |= {"shard": queue, "id": flow, "verb": verb}
        if verb in {"cancel", "rerun"}:
            named["by"] = requester()
        reply = await self._engine.ask("flow", queue, *fields, **named)
        return str(reply.decode())

    async def flow_fields(self, queue: str, flow: str, names: Sequence[str]) -> list[bytes | None]:
        """Some fields of a flow."""
        return list(await self._engine.command("HMGET", queue, f"flow:{flow}", *names))

    async def flows(self, queue: str, *, is_live: bool, limit: int) -> list[str]:
        """Flows of a queue, newest first."""
        name = "flows" if is_live else "flows_done"
        return texts(await self._engine.command("ZREVRANGE", queue, name, 0, limit - 1))

    async def latest(
        self, queue: str, kind: str, *, is_live: bool, limit: int, before: str = "+inf"
    ) -> list[tuple[float, str]]:
        """Flows or groups of a queue with when they began or ended, the newest first."""
        column = kind if is_live else f"{kind}_done"
        flat = await self._engine.command(
            *("ZRANGE", queue, column, before, "-inf", "BYSCORE", "REV"),
            *("LIMIT", 0, limit, "WITHSCORES"),
        )
        return [(float(flat[i + 1]), flat[i].decode()) for i in range(0, len(flat), 2)]

    # -- groups ---------------------------------------------------------------------------------

    async def open_group(self, queue: str, group: str, callbacks: Mapping[str, bytes]) -> str:
        """Create a group; safe to repeat: OK, or the number of members it is sealed with."""
        flat: list[Argument] = []
        for name, made in callbacks.items():
            flat += (f"on:{name}", made)
        answer = await self._engine.ask("group", queue, *flat, id=group, verb="open")
        return str(answer.decode())

    async def seal_group(self, queue: str, group: str, total: int) -> str:
        """Set the number of members: OK, unknown, or another number that was set before."""
        answer = await self._engine.ask("group", queue, id=group, verb="seal", total=total)
        return str(answer.decode())

    async def groups(self, queue: str, *, is_live: bool, limit: int) -> list[str]:
        """Groups of a queue, newest first."""
        name = "groups" if is_live else "groups_done"
        return texts(await self._engine.command("ZREVRANGE", queue, name, 0, limit - 1))

    async def group(self, queue: str, group: str) -> dict[str, bytes]:
        """All fields of a group; empty if it was removed."""
        return pairs(await self._engine.command("HGETALL", queue, f"group:{group}"))


class Made(NamedTuple):
    """The parts of a job that is not enqueued yet."""

    queue: str
    priority: int
    facts: Facts
    body: str
    job: str

    def pack(self) -> bytes:
        """As bytes for the server, which reads the queue from them."""
        return msgspec.msgpack.encode([*self])

    @classmethod
    def unpack(cls, packed: bytes) -> Made:
        """Read it back."""
        return cls(*msgspec.msgpack.decode(packed))
