"""In a test, breakers are opened and money is spent, and jobs wait as they would."""

from __future__ import annotations

import pytest

from faena import Breaker, Budget, Faena, Price
from faena.errors import ConfigError
from faena.testing import Harness, harness, sync_harness


@pytest.fixture
def app() -> Faena:
    return Faena("upstreams-in-tests")


async def test_jobs_wait_while_a_breaker_is_open(app: Faena) -> None:
    afip = app.upstream("afip", breaker=Breaker(open="60s", ramp="10s"))
    queue = app.queue("invoices")
    ran: list[int] = []

    @queue.task(upstreams=[afip])
    async def request(number: int) -> None:
        ran.append(number)

    async with harness(app) as h:
        await request.enqueue_many([1, 2, 3])
        await h.open_breaker(afip)
        report = await h.drain()
        assert set(report.counts) == {"limited"}
        assert ran == []
        assert (await afip.view()).state == "open"
        report = await h.drain(through="59s")
        assert ran == []
        report = await h.drain(through="1m")
        assert report.counts["completed"] == 3
        assert (await afip.view()).state == "closed"
    assert sorted(ran) == [1, 2, 3]


async def test_a_breaker_of_one_tenant_holds_that_one(app: Faena) -> None:
    mp = app.upstream("mp", breaker=Breaker(per="tenant"))
    queue = app.queue("payments")

    @queue.task(upstreams=[mp])
    async def pay() -> None: ...

    async with harness(app) as h:
        await h.open_breaker(mp, tenant="acme")
        await pay.enqueue(tenant="acme")
        await pay.enqueue(tenant="other")
        counts = (await h.drain()).counts
        assert counts == {"limited": 1, "completed": 1}


async def test_jobs_wait_when_the_money_is_spent(app: Faena) -> None:
    prices, budgets = [Price("call", "1 USD")], [Budget("5 USD"), Budget("50 USD", per="month")]
    ai = app.upstream("ai", prices=prices, budgets=budgets)
    queue = app.queue("answers")

    @queue.task(upstreams=[ai])
    async def answer(_number: int) -> None: ...

    async with harness(app) as h:
        await h.spend(ai, "3.5 USD", tenant="acme", task="answer")
        await answer.enqueue_many([1, 2, 3])
        assert (await h.drain()).counts == {"completed": 1, "limited": 1}
        assert (await h.drain(through="1d")).counts["completed"] == 2


async def test_what_makes_no_sense_is_refused(app: Faena) -> None:
    afip = app.upstream("afip")
    ai = app.upstream("ai", prices=[Price("call", "1 USD")])
    async with harness(app) as h:
        assert isinstance(h, Harness)
        with pytest.raises(ConfigError, match="of an upstream with prices, got afip"):
            await h.spend(afip, "5 USD")
        with pytest.raises(ConfigError, match="with its currency, USD, got ai and 5 EUR"):
            await h.spend(ai, "5 EUR")
        with pytest.raises(ConfigError, match="upstream must be a"):
            await h.open_breaker("afip")  # pyright: ignore[reportArgumentType]


def test_the_same_without_an_event_loop(app: Faena) -> None:
    ai = app.upstream("ai", prices=[Price("call", "1 USD")], budgets=[Budget("5 USD")])
    queue = app.queue("answers")

    @queue.task(upstreams=[ai])
    async def answer() -> None: ...

    with sync_harness(app) as h:
        h.open_breaker(ai)
        h.spend(ai, "5 USD")
        app.sync.enqueue(answer)
        assert h.drain().counts == {"limited": 1}
