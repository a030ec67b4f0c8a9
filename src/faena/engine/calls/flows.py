"""Messages between shards, pending sends, flows and groups: each method is one call.

A message tells another shard something and is applied there once. A pending send is a job that a
flow or a group wants sent to a queue, or cancelled there. `faena.flows.relay` carries both.
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
    """What lies in a stream."""

    id: str
    words: bytes


class PendingSend(NamedTuple):
    """Something to be done in a queue."""

    name: str
    queue: str
    """Empty when it is not to be done yet."""
    job: str
    made: bytes
    """What the job is made of, packed; empty when it is to be cancelled."""
    inputs: Sequence[Any]
    """Numbers of its parents, or what is counted in its group."""

    @property
    def is_gone(self) -> bool:
        """Whether whatever wanted it is."""
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
        """The queues that messages of a shard wait for."""
        return texts(await self._engine.command("SMEMBERS", shard, "recipients"))

    async def messages(self, shard: str, to: str) -> list[Message]:
        """The oldest messages of a shard to a queue."""
        found = await self._engine.command(
            "XRANGE", shard, f"messages:{to}", "-", "+", "COUNT", MESSAGES
        )
        return [Message(number.decode(), fields[1]) for number, fields in found]

    async def receive(self, to: str, shard: str, messages: Sequence[Message]) -> bool:
        """Have messages read, each once; whether there is something to carry from there now."""
        flat: list[Argument] = [part for message in messages for part in message]
        return await self._engine.ask("receive", to, *flat, shard=to, source=shard) == 1

    async def delivered(self, shard: str, to: str, last: str) -> int:
        """Strike off what has arrived; how many messages are left."""
        return int(await self._engine.ask("relayed", shard, to=to, last=last))

    # -- pending sends --------------------------------------------------------------------------

    async def pending_sends(self, queue: str, start: int) -> tuple[int, list[PendingSend]]:
        """The server's instant, and what is to be done, from a place in the list on."""
        now, *found = await self._engine.ask("pending_sends", queue, start=start, most=MESSAGES)
        return int(now), [
            PendingSend(name.decode(), to.decode(), job.decode(), made, inputs)
            for name, to, job, made, inputs in found
        ]

    async def done(self, queue: str, names: Sequence[str]) -> None:
        """Strike off pending sends."""
        if names:
            await self._engine.command("ZREM", queue, "pending_sends", *names)

    async def has_outbox(self, shard: str) -> bool:
        """Whether anything waits to be carried."""
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
        """Parts of what is known of a flow."""
        return list(await self._engine.command("HMGET", queue, f"flow:{flow}", *names))

    async def flows(self, queue: str, *, is_live: bool, limit: int) -> list[str]:
        """Flows of a queue, newest first."""
        name = "flows" if is_live else "flows_done"
        return texts(await self._engine.command("ZREVRANGE", queue, name, 0, limit - 1))

    # -- groups ---------------------------------------------------------------------------------

    async def open_group(self, queue: str, group: str, callbacks: Mapping[str, bytes]) -> str:
        """Begin a group, once more if need be: OK, or the number of members it is sealed with."""
        flat: list[Argument] = []
        for name, made in callbacks.items():
            flat += (f"on:{name}", made)
        answer = await self._engine.ask("group", queue, *flat, id=group, verb="open")
        return str(answer.decode())

    async def seal_group(self, queue: str, group: str, total: int) -> str:
        """Say how many members there are: OK, unknown, or another number that was said before."""
        answer = await self._engine.ask("group", queue, id=group, verb="seal", total=total)
        return str(answer.decode())

    async def groups(self, queue: str, *, is_live: bool, limit: int) -> list[str]:
        """Groups of a queue, newest first."""
        name = "groups" if is_live else "groups_done"
        return texts(await self._engine.command("ZREVRANGE", queue, name, 0, limit - 1))

    async def group(self, queue: str, group: str) -> dict[str, bytes]:
        """Everything known of a group; nothing when it is gone."""
        return pairs(await self._engine.command("HGETALL", queue, f"group:{group}"))


class Made(NamedTuple):
    """What a job is made of, before it is sent."""

    queue: str
    priority: int
    facts: Facts
    body: str
    job: str

    def pack(self) -> bytes:
        """As the server keeps it; it reads the queue."""
        return msgspec.msgpack.encode([*self])

    @classmethod
    def unpack(cls, packed: bytes) -> Made:
        """Read it back."""
        return cls(*msgspec.msgpack.decode(packed))
