"""What a relay carries when a part of it fails, or brings more to carry."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from faena.engine.calls.flows import MESSAGES, FlowCalls, Made, Message
from faena.errors import StoreUnavailable
from faena.flows.relay import Relay
from faena.outcomes import Completed
from faena.producing.client import Client
from faena.producing.sender import Sender
from faena.sharding.router import Routers
from tests._support.rig import Rig

BODY = '{"task":"noop","payload":[]}'


class Post:
    """Jobs of the queue `q` that end as members of groups of `q`, `b` and `c`."""

    def __init__(self, rig: Rig) -> None:
        self.queues = {"q": rig, **{name: self._beside(rig, name) for name in "bc"}}
        self.calls = FlowCalls(rig.engine)
        self.relay = Relay(rig.engine, Client(rig.engine, Routers(rig.engine, {})))

    def _beside(self, rig: Rig, queue: str) -> Rig:
        other = Rig(rig.engine.wire, rig.engine.namespace, queue)
        other.engine, other.clock = rig.engine, rig.clock
        other.declare_as()
        return other

    async def open(self, queue: str, members: int, *, callback: str) -> None:
        """A group of a queue that calls back in a queue when its members have ended."""
        made = Made(callback, 5, {"tells": f"g:{queue}:g:complete"}, BODY, f"{queue}.complete")
        await self.calls.open_group(queue, "g", {"complete": made.pack()})
        await self.calls.seal_group(queue, "g", members)

    async def end(self, job: str, queue: str) -> None:
        """A member of a queue's group ends in `q`, which is a message to that queue."""
        await self.queues["q"].run(job, Completed(), tells=f"g:{queue}:g:")

    async def sent(self, queue: str) -> list[str]:
        return [*await self.queues[queue].states()]


@pytest.fixture
async def post(rig: Rig) -> AsyncIterator[Post]:
    post = Post(rig)
    yield post
    for queue in "bc":
        await post.queues[queue].obliterate()


@pytest.mark.parametrize(("away", "there"), [("b", "c"), ("c", "b")])
async def test_a_queue_that_is_away_keeps_no_other_back(
    post: Post, monkeypatch: pytest.MonkeyPatch, away: str, there: str
) -> None:
    receive = FlowCalls.receive

    async def receive_there(
        self: FlowCalls, to: str, shard: str, messages: Sequence[Message]
    ) -> bool:
        if to == away:
            raise StoreUnavailable("no server", op="receive")
        return await receive(self, to, shard, messages)

    for queue in "bc":
        await post.open(queue, 1, callback=queue)
        await post.end(f"of-{queue}", queue)
    with monkeypatch.context() as patch:
        patch.setattr(FlowCalls, "receive", receive_there)
        with pytest.raises(StoreUnavailable):
            await post.relay.carry("q")
    assert (await post.sent(there), await post.sent(away)) == ([f"{there}.complete"], [])
    await post.relay.carry("q")
    assert await post.sent(away) == [f"{away}.complete"]


async def test_what_any_page_of_messages_brings_is_carried(post: Post) -> None:
    await post.open("b", 1, callback="b")
    for number in range(MESSAGES + 1):
        await post.end(f"j{number}", "b")
    await post.relay.carry("q")
    assert await post.sent("b") == ["b.complete"]
    assert not await post.calls.has_outbox("q")


async def test_what_is_read_beside_a_damaged_message_is_carried(post: Post) -> None:
    await post.open("b", 1, callback="b")
    await post.end("before", "b")
    await post.queues["q"].engine.command("XADD", "q", "messages:b", "*", "is", b"\xc1garbage")
    await post.end("after", "b")
    await post.relay.carry("q")
    assert await post.sent("b") == ["b.complete"]
    assert (await post.calls.group("b", "g"))["completed"] == b"2"
    assert not await post.calls.has_outbox("q")


async def test_who_carries_is_told_what_kept_pending_sends_back(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue = Sender.enqueue

    async def enqueue_elsewhere(self: Sender, queue: str, *rest: Any) -> Any:
        if queue == "c":
            raise StoreUnavailable("no server", op="enqueue")
        return await enqueue(self, queue, *rest)

    await post.open("q", 0, callback="c")
    await post.open("b", 1, callback="b")
    await post.end("of-b", "b")
    with monkeypatch.context() as patch:
        patch.setattr(Sender, "enqueue", enqueue_elsewhere)
        with pytest.raises(StoreUnavailable):
            await post.relay.carry("q")
    assert (await post.sent("b"), await post.sent("c")) == (["b.complete"], [])
    await post.relay.carry("q")
    assert await post.sent("c") == ["q.complete"]


async def test_pending_sends_whose_flow_is_gone_are_struck_off_page_by_page(post: Post) -> None:
    rig = post.queues["q"]
    await rig.declare()
    for number in range(2 * MESSAGES + 1):
        await rig.engine.command("ZADD", "q", "pending_sends", number, f"f:gone:{number}:1")
    await post.relay.carry("q")
    assert await rig.engine.command("ZCARD", "q", "pending_sends") == 0
