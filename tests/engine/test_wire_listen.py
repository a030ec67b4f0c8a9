"""Subscriptions that outlive their connections."""

from __future__ import annotations

import asyncio

from faena.engine.wire.address import Address
from faena.engine.wire.subscription import Subscription
from faena.engine.wire.wire import Wire
from tests._support.eventually import eventually
from tests._support.proxy import Proxy
from tests._support.valkey import Server


class Inbox:
    """Publishes until a message gets through, as a lossy channel demands."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.heard: list[bytes] = []

    async def hears(self, message: str) -> None:
        async def publish() -> bool:
            await self._wire.call("PUBLISH", "news", message, patience_s=60)
            return message.encode() in self.heard

        await eventually(publish)


async def test_messages_arrive_in_order_as_bytes(wire: Wire) -> None:
    heard: list[bytes] = []
    subscription = await wire.listen({"news": heard.append})
    for number in range(100):
        await wire.call("PUBLISH", "news", number)
    await eventually(lambda: len(heard) == 100)
    assert heard == [b"%d" % number for number in range(100)]
    await subscription.close()
    assert await wire.call("PUBLISH", "news", "late") == 0


async def test_a_subscription_survives_a_restart(wire: Wire, server: Server) -> None:
    inbox = Inbox(wire)
    subscription = await wire.listen({"news": inbox.heard.append})
    server.kill()
    server.start()
    await inbox.hears("back")
    assert subscription.is_live
    await subscription.close()


async def test_a_subscription_may_begin_during_an_outage(wire: Wire, server: Server) -> None:
    server.kill()
    inbox = Inbox(wire)
    subscription = await wire.listen({"news": inbox.heard.append})
    assert not subscription.is_live
    server.start()
    await inbox.hears("first")
    await subscription.close()


async def test_a_silent_peer_is_noticed_by_the_unanswered_ping(server: Server, wire: Wire) -> None:
    async with Proxy(server.port) as proxy:
        through = Wire(Address.parse(proxy.url))
        inbox = Inbox(wire)
        subscription = Subscription(
            {"news": inbox.heard.append},
            connect=through._connect_listener,
            jitter=lambda: 0.5,
            ping_every_s=0.1,
        )
        await subscription.tried.wait()
        proxy.freeze()
        await inbox.hears("again")
        await subscription.close()
        await through.close()


async def test_a_function_that_raises_does_not_end_the_subscription(wire: Wire) -> None:
    heard: list[bytes] = []
    raised: list[object] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: raised.append(context["exception"])
    )

    def hear(message: bytes) -> None:
        heard.append(message)
        raise ValueError(message)

    subscription = await wire.listen({"news": hear})
    for number in range(2):
        await wire.call("PUBLISH", "news", number)
    await eventually(lambda: len(raised) == 2)
    assert heard == [b"0", b"1"]
    await subscription.close()


async def test_one_link_hears_several_channels(wire: Wire) -> None:
    news: list[bytes] = []
    rumours: list[bytes] = []
    subscription = await wire.listen({"news": news.append, "rumours": rumours.append})
    for channel, message in (("rumours", "a"), ("news", "b"), ("other", "c"), ("rumours", "d")):
        await wire.call("PUBLISH", channel, message)
    await eventually(lambda: len(rumours) == 2)
    assert (news, rumours) == ([b"b"], [b"a", b"d"])
    assert subscription.is_live
    await subscription.close()


async def test_closing_the_wire_ends_its_subscriptions(wire: Wire) -> None:
    subscription = await wire.listen({"news": lambda _: None})
    await wire.close()
    assert not subscription.is_live
