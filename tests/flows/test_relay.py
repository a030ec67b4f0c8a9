"""What a relay carries when a part of it fails, or brings more to carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from faena.engine.calls.flows import MESSAGES, FlowCalls, Message
from faena.errors import FaenaError, ScriptError, StoreUnavailable
from faena.flows.pending_sends import PendingSends
from faena.flows.relay import Relay
from faena.producing.client import Client
from faena.sharding.router import Routers
from tests._support.rig import Rig

Page = list[bool | FaenaError]
"""Of each message, whether it brings something to carry, or why it is not read."""


class Outbox:
    """The messages of the shard `a`, in pages by queue; it notes whose pending sends are run."""

    def __init__(self, failure: FaenaError | None = None, **pages: list[Page]) -> None:
        self._pages = pages
        self._failure = failure
        self.run_at: list[str] = []

    async def addressees(self, shard: str) -> list[str]:
        return [*self._pages] if shard == "a" else []

    async def messages(self, shard: str, to: str) -> list[Message]:
        page = self._pages[to][0] if self._pages[to] else []
        return [Message(str(number), b"") for number in range(len(page))]

    async def receive(self, to: str, shard: str, messages: Sequence[Message]) -> bool:
        told = [self._pages[to][0][int(message.id)] for message in messages]
        for one in told:
            if isinstance(one, FaenaError):
                raise one
        return any(told)

    async def delivered(self, shard: str, to: str, last: str) -> int:
        del self._pages[to][0]
        return len(self._pages[to])

    async def run(self, shard: str) -> FaenaError | None:
        self.run_at.append(shard)
        return self._failure if shard == "a" else None

    def relay(self) -> Relay:
        relay = Relay(cast("Any", None), cast("Any", None))
        relay._calls, relay._pending = cast("FlowCalls", self), cast("PendingSends", self)
        return relay


async def test_a_queue_that_is_away_keeps_no_other_back() -> None:
    outbox = Outbox(away=[[StoreUnavailable("no server")]], there=[[True]])
    with pytest.raises(StoreUnavailable):
        await outbox.relay().carry("a")
    assert outbox.run_at == ["a", "there"]


async def test_what_any_page_of_messages_brings_is_carried() -> None:
    outbox = Outbox(b=[[True], [False]])
    await outbox.relay().carry("a")
    assert outbox.run_at == ["a", "b"]


async def test_what_is_read_beside_a_damaged_message_is_carried() -> None:
    outbox = Outbox(b=[[True, ScriptError("damaged"), False]])
    await outbox.relay().carry("a")
    assert outbox.run_at == ["a", "b"]


async def test_who_carries_is_told_what_kept_pending_sends_back() -> None:
    outbox = Outbox(failure=StoreUnavailable("no server"), b=[[True]])
    with pytest.raises(StoreUnavailable):
        await outbox.relay().carry("a")
    assert outbox.run_at == ["a", "b"]


async def test_pending_sends_whose_flow_is_gone_are_struck_off_page_by_page(rig: Rig) -> None:
    await rig.declare()
    for number in range(2 * MESSAGES + 1):
        await rig.engine.command("ZADD", "q", "pending_sends", number, f"f:gone:{number}:1")
    await Relay(rig.engine, Client(rig.engine, Routers(rig.engine, {}))).carry("q")
    assert await rig.engine.command("ZCARD", "q", "pending_sends") == 0
