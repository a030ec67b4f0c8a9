"""One handler that calls upstreams is run without a broker."""

from __future__ import annotations

import asyncio

import pytest

from faena import Breaker, Budget, Faena, Price, UpstreamUnavailable
from faena.errors import ConfigError
from faena.resilience.money import Money
from faena.resilience.upstream import Upstream
from faena.testing import attempt, harness, run_inline, sync_harness

PRICES = [Price("call", "0.01 USD"), Price("token", "0.001 USD")]


@pytest.fixture
def app() -> Faena:
    return Faena("calls-in-tests", "redis://127.0.0.1:1")  # nothing listens there


@pytest.fixture
def ai(app: Faena) -> Upstream:
    return app.upstream("ai", limits=["1/h"], prices=PRICES, budgets=[Budget("1 USD")])


async def test_what_a_handler_says_that_it_has_spent_can_be_read(app: Faena, ai: Upstream) -> None:
    @app.queue("answers").task(upstreams=[ai])
    async def answer(tokens: int) -> bool:
        if tokens:
            ai.spend(token=tokens)
        return ai.is_frugal

    ran = await attempt(answer, 7)
    assert (ran.result, ran.spent) == (False, {"ai": Money(7_000, "USD")})
    ran = await attempt(answer, 0, frugal=True, tenant="acme")
    assert (ran.result, ran.spent) == (True, {"ai": Money(10_000, "USD")}), "the estimate"
    assert await run_inline(answer, 7, frugal=True) is True


async def test_every_call_is_allowed_and_paid(app: Faena, ai: Upstream) -> None:
    sms = app.upstream("sms")

    @app.queue("answers").task(upstreams=[ai])
    async def answer() -> bool:
        async with ai.call() as call:
            call.spend(token=1)
        async with ai.call(estimate={"token": 5}) as call, sms.call():
            return call.is_frugal

    ran = await attempt(answer, frugal=True)
    assert (ran.ending, ran.result, ran.spent) == ("completed", True, {"ai": Money(6_000, "USD")})


async def test_a_handler_in_a_thread_calls_as_well(app: Faena, ai: Upstream) -> None:
    @app.queue("answers").task(upstreams=[ai])
    def answer() -> str:
        with ai.call() as call:
            call.spend(token=1)
        return ai.run_sync(str.upper, "yes")

    ran = await attempt(answer)
    assert (ran.result, ran.spent) == ("YES", {"ai": Money(11_000, "USD")})


async def test_the_cheaper_handler_runs_where_calls_are_frugal(app: Faena, ai: Upstream) -> None:
    async def small() -> str:
        return "small"

    @app.queue("answers").task(upstreams=[ai], cheaper=small)
    async def answer() -> str:
        return "large"

    assert await run_inline(answer) == "large"
    assert await run_inline(answer, frugal=True) == "small"


async def test_a_test_can_have_calls_refused(app: Faena, ai: Upstream) -> None:
    afip, queue = app.upstream("afip"), app.queue("invoices")

    @queue.task(upstreams=[afip])
    async def request() -> None:
        raise AssertionError("it began")

    @queue.task(upstreams=[afip], fallback=_later)
    async def request_or_later() -> str:
        raise AssertionError("it began")

    @queue.task(upstreams=[ai])
    async def ask() -> str:
        try:
            async with afip.call():
                return "called"
        except UpstreamUnavailable as error:
            return f"{error.upstream} is {error.reason}"

    assert (await attempt(request, refused=[afip])).ending == "limited"
    assert await run_inline(request_or_later, refused=[afip]) == "later"
    assert await run_inline(ask, refused=[afip]) == "afip is open"
    assert await run_inline(ask) == "called"


async def _later() -> str:
    return "later"


async def test_errors_and_breakers_of_one_test_are_not_the_next_ones(app: Faena) -> None:
    afip = app.upstream("afip", breaker=Breaker(volume=1))

    @app.queue("invoices").task(upstreams=[afip])
    async def request() -> None:
        raise ConnectionRefusedError("down")

    for _ in range(3):
        assert (await attempt(request)).ending == "retried"


async def test_a_wrong_spend_is_the_tests_failure(app: Faena, ai: Upstream) -> None:
    @app.queue("answers").task(upstreams=[ai])
    async def answer() -> None:
        ai.spend(tokens=1)

    with pytest.raises(ConfigError, match="got 'tokens'"):
        await run_inline(answer)


async def test_afterwards_calls_ask_their_broker_again(app: Faena, ai: Upstream) -> None:
    @app.queue("answers").task(upstreams=[ai])
    async def answer() -> None: ...

    async with harness(app) as h:
        assert (await h.attempt(answer)).spent == {"ai": Money(10_000, "USD")}
        assert (await h.attempt(answer, refused=[ai])).ending == "limited"
        await h.spend(ai, "1 USD")
        with pytest.raises(UpstreamUnavailable, match="budget"):
            await ai.run(asyncio.sleep, 0)


def test_the_same_without_an_event_loop(app: Faena, ai: Upstream) -> None:
    @app.queue("answers").task(upstreams=[ai])
    def answer() -> bool:
        with ai.call(), ai.call():
            return ai.is_frugal

    with sync_harness(app) as h:
        ran = h.attempt(answer, frugal=True)
        assert (ran.result, ran.spent) == (True, {"ai": Money(20_000, "USD")})


async def test_what_makes_no_sense_is_refused(app: Faena) -> None:
    @app.queue("answers").task
    async def answer() -> None: ...

    with pytest.raises(ConfigError, match=r"refused must be a list of upstreams such as \[afip\]"):
        await attempt(answer, refused=["afip"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="frugal must be a bool"):
        await attempt(answer, frugal="yes")  # pyright: ignore[reportArgumentType]
