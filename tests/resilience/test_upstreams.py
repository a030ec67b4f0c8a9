"""Jobs that call upstreams start only when a call is allowed, and waiting uses no attempt."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from faena import Faena, Limit, Queue, RateLimited, Retry
from faena.errors import ConfigError
from faena.outcomes import UpstreamUnavailable
from faena.resilience.breaker import Breaker
from faena.states import State
from tests._support.eventually import eventually
from tests._support.working import Working

QUICK = Breaker(volume=4, open="300ms", longest="300ms", ramp="300ms")
SLOW = Breaker(volume=4, open="10m")
AGAIN = Retry.fixed("10ms", attempts=50)


class Service:
    """An outside service that can be made to fail."""

    def __init__(self) -> None:
        self.is_down = False
        self.calls: Counter[str] = Counter()

    async def call(self) -> None:
        is_down = self.is_down  # a call that is under way when that changes ends as it was counted
        self.calls["bad" if is_down else "good"] += 1
        await asyncio.sleep(0)
        if is_down:
            raise ConnectionResetError("down")


async def test_a_failing_upstream_gets_few_calls_and_no_job_is_lost(
    shop: Faena, working: Working
) -> None:
    service, afip = Service(), shop.upstream("afip", breaker=QUICK)
    queue = shop.queue("invoices", concurrency=3, retry=AGAIN)

    @queue.task(upstreams=[afip])
    async def request(_number: int) -> None:
        await service.call()

    service.is_down = True
    receipts = await request.enqueue_many(list(range(60)))
    async with working(shop):
        await eventually(lambda: service.calls["bad"] >= 6)  # two probes have failed, too
        opened = service.calls["bad"]
        service.is_down = False
        for receipt in receipts:
            await receipt.handle.result(timeout="60s")
    assert service.calls["good"] == 60
    views = [await receipt.handle.view() for receipt in receipts]
    assert sum(view.attempts_made for view in views) == 60 + service.calls["bad"]
    assert opened <= QUICK.volume + queue.options.concurrency + 10


async def test_nothing_is_called_while_it_is_open(shop: Faena, working: Working) -> None:
    service, afip = Service(), shop.upstream("afip", breaker=SLOW)
    queue = shop.queue("invoices", concurrency=2, retry=AGAIN)

    @queue.task(upstreams=[afip])
    async def request(_number: int) -> None:
        await service.call()

    service.is_down = True
    receipts = await request.enqueue_many(list(range(20)))
    async with working(shop):

        async def is_held() -> bool:
            return "upstream afip" in await _holds(queue)

        await eventually(is_held)
        assert 4 <= service.calls["bad"] <= 4 + 2
        views = [await receipt.handle.view() for receipt in receipts]
        assert sum(view.attempts_made for view in views) == service.calls["bad"]
        assert {view.state for view in views} <= {State.READY, State.DELAYED}


async def test_a_tenants_broken_account_holds_nobody_else(shop: Faena, working: Working) -> None:
    breaker = Breaker(volume=4, open="10m", per="tenant")
    mp = shop.upstream("mp", breaker=breaker)
    queue = shop.queue("payments", concurrency=4, retry=Retry.never())
    paid: list[str] = []

    @queue.task(upstreams=[mp])
    async def pay(whose: str) -> None:
        if whose == "broken":
            raise ConnectionRefusedError("no such account")
        paid.append(whose)

    await pay.enqueue_many(["broken"] * 30, tenant="broken")
    others = [await pay.enqueue(name, tenant=name) for name in "abcdefghij"]
    async with working(shop):
        for receipt in others:
            await receipt.handle.result(timeout="60s")
        counts = (await queue.overview()).counts
    assert sorted(paid) == [*"abcdefghij"]
    assert counts["dead"] <= 4 + 4
    assert counts["ready"] >= 30 - 8


async def test_other_tasks_of_a_queue_go_on(shop: Faena, working: Working) -> None:
    push = shop.upstream("push", breaker=SLOW)
    queue = shop.queue("notifications", concurrency=2, retry=AGAIN)

    @queue.task(upstreams=[push])
    async def notify(_number: int) -> None:
        raise ConnectionRefusedError("down")

    @queue.task
    async def mail(number: int) -> int:
        return number

    waiting = await notify.enqueue_many(list(range(10)))
    mails = await mail.enqueue_many(list(range(10)))
    async with working(shop):
        for receipt in mails:
            await receipt.handle.result(timeout="60s")

        async def are_put_off() -> bool:
            views = [await receipt.handle.view() for receipt in waiting]
            return {view.state for view in views} == {State.DELAYED}

        await eventually(are_put_off)
        explained = [str(await receipt.handle.explain()) for receipt in waiting]
    assert any("upstream push" in text for text in explained), explained


async def test_retry_after_is_waited_for_by_all(shop: Faena, working: Working) -> None:
    whatsapp = shop.upstream("whatsapp")
    queue = shop.queue("messages", concurrency=5)
    began: list[float] = []
    loop = asyncio.get_running_loop()

    @queue.task(upstreams=[whatsapp])
    async def send(_number: int) -> None:
        began.append(loop.time())
        if len(began) == 1:
            raise RateLimited(retry_after=1)

    receipts = await send.enqueue_many(list(range(30)))
    async with working(shop):
        for receipt in receipts:
            await receipt.handle.result(timeout="60s")
    late = [at - began[0] for at in began[5:]]  # those that ran beside the first had begun
    assert min(late) >= 1
    views = [await receipt.handle.view() for receipt in receipts]
    assert {view.attempts_made for view in views} == {1}


class _TooMany(Exception):
    """As httpx raises it."""

    status_code = 429

    def __init__(self, retry_after: str) -> None:
        super().__init__("too many requests")
        self.response = SimpleNamespace(status_code=429, headers={"retry-after": retry_after})


async def test_an_answer_that_asks_to_wait_uses_no_attempt(shop: Faena, working: Working) -> None:
    whatsapp = shop.upstream("whatsapp", breaker=Breaker(per="tenant"))
    messages, mixed = shop.queue("messages", fair=True), shop.queue("mixed")
    began: list[str] = []

    async def say(text: str) -> None:
        began.append(text)
        if began.count(text) == 1:
            raise _TooMany("0" if text == "now" else "1")

    alone = messages.task(say, upstreams=[whatsapp], name="alone", retry=Retry.never())
    beside = mixed.task(say, upstreams=[whatsapp], name="beside", retry=Retry.never())
    mixed.task(_nothing, name="nothing")
    receipts = [await alone.enqueue(text, tenant=text) for text in ("a", "now")]
    receipts.append(await beside.enqueue("b"))
    async with working(shop):
        for receipt in receipts:
            await receipt.handle.result(timeout="60s")
    assert Counter(began) == {"a": 2, "now": 2, "b": 2}
    assert {(await one.handle.view()).attempts_made for one in receipts} == {1}


async def test_an_upstreams_limit_holds_over_several_queues(shop: Faena, working: Working) -> None:
    afip = shop.upstream("afip", limits=[Limit("5/10m")])
    began: list[str] = []
    receipts: list[Any] = []
    for name in ("invoices", "queries"):
        queue = shop.queue(name, concurrency=10)

        @queue.task(upstreams=[afip], name=f"ask-{name}")
        async def ask(number: str) -> None:
            began.append(number)

        receipts += await ask.enqueue_many([f"{name}-{number}" for number in range(10)])
    async with working(shop):

        async def are_held() -> bool:
            held = [await _holds(queue) for queue in shop.queues.values()]
            return all("upstream afip" in reasons for reasons in held)

        await eventually(are_held)
    assert len(began) == 5


# -- calls without a job ---------------------------------------------------------------------------


async def test_a_call_is_refused_while_it_is_open(shop: Faena) -> None:
    service, afip = Service(), shop.upstream("afip", breaker=SLOW)
    service.is_down = True
    guarded = afip(service.call)
    for _ in range(4):
        with pytest.raises(ConnectionResetError):
            await guarded()
    with pytest.raises(
        UpstreamUnavailable, match=r"upstream afip takes no calls for .*: open"
    ) as caught:
        await guarded()
    assert 0 < caught.value.retry_after <= 600
    assert service.calls["bad"] == 4


async def test_a_call_inside_a_job_uses_the_jobs_permit(shop: Faena, working: Working) -> None:
    afip = shop.upstream("afip", limits=["1/10m"])
    queue = shop.queue("invoices")

    @queue.task(upstreams=[afip])
    async def request(_number: int) -> str:
        async with afip.call():
            return "asked"

    receipt = await request.enqueue(1)
    async with working(shop):
        assert await receipt.handle.result(timeout="60s") == "asked"


async def test_an_error_that_will_not_pass_buries_the_job(shop: Faena, working: Working) -> None:
    afip = shop.upstream("afip", sorting={ValueError: "permanent"}, breaker=Breaker(volume=1))
    queue = shop.queue("invoices", retry=AGAIN)

    @queue.task(upstreams=[afip])
    async def request(_number: int) -> None:
        raise ValueError("no such invoice")

    receipts = await request.enqueue_many([1, 2, 3])
    async with working(shop):
        await eventually(lambda: _are(receipts, State.DEAD))
    views = [await receipt.handle.view() for receipt in receipts]
    assert {view.attempts_made for view in views} == {1}, "and the breaker stayed closed"


async def _holds(queue: Queue) -> list[str]:
    return [hold.reason for hold in (await queue.overview()).holds]


async def _are(receipts: list[Any], state: State) -> bool:
    return {(await one.handle.view()).state for one in receipts} == {state}


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"breaker": {"volume": 3}}, "breaker must be a Breaker"),
        ({"limits": [Limit("5/s", cost="tokens")]}, "limits must count calls"),
        ({"limits": 5}, "limits must be a list"),
        ({"timeout": "0s"}, "timeout must be a duration from 1ms"),
        ({"sorting": {ValueError: "maybe"}}, "'retryable' or 'permanent'"),
        ({"sorting": {"ValueError": "unknown"}}, "by exception class or HTTP status"),
        ({"sorting": 3}, "sorting must be a mapping"),
        ({"limit": ["5/s"]}, "did you mean 'limits'"),
    ],
)
def test_what_makes_no_sense_is_refused(app: Faena, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        app.upstream("afip", **options)


def test_a_task_names_upstreams_of_the_app(app: Faena) -> None:
    afip, queue = app.upstream("afip"), app.queue("invoices")
    for given in (["afip"], [afip, afip], [None]):
        with pytest.raises(ConfigError, match="must be different upstreams of the app"):
            queue.task(upstreams=given, name="ask")(_nothing)
    with pytest.raises(ConfigError, match=r"upstreams must be a list such as \[afip\]"):
        queue.task(upstreams=afip, name="ask")(_nothing)
    with pytest.raises(ConfigError, match=r"use `async with afip.call\(\):` in its handler"):
        queue.batch(size=2, upstreams=[afip], name="many")(_nothing_of_many)


async def _nothing() -> None:
    """Do nothing."""


async def _nothing_of_many(_numbers: list[int]) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"errors": 0}, "breaker errors must be a number from 0.001 to 1"),
        ({"errors": 1.5}, "breaker errors"),
        ({"volume": 0}, "breaker volume must be a whole number from 1"),
        ({"probes": 0}, "breaker probes"),
        ({"open": "1h", "longest": "1m"}, "longest must be at least open"),
        ({"slow": 0.5}, "slow and slow_after must be given together"),
        ({"slow_after": "5s"}, "slow and slow_after must be given together"),
        ({"per": "job"}, "'upstream' or 'tenant'"),
        ({"window": "1ms"}, "breaker window must be a duration from 100ms"),
        ({"volum": 3}, "did you mean 'volume'"),
    ],
)
def test_a_breaker_that_makes_no_sense_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Breaker(**options)


def test_an_upstream_is_declared_once(app: Faena) -> None:
    app.upstream("afip")
    with pytest.raises(ConfigError, match="must be declared once"):
        app.upstream("afip")
