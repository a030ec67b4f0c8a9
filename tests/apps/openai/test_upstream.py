"""The upstream meters what calls use, and knows what errors mean."""

from __future__ import annotations

import dataclasses

import httpx
import pytest
from apps.providers.openai import (
    Client,
    Message,
    OpenAIError,
    Permanent,
    RateLimited,
    Retryable,
    Settings,
    Unfit,
    UnknownOutcome,
    openai_upstream,
)
from apps.sandbox.openai import OpenAI, spoken

from apps.sandbox import Fault
from faena import Breaker, Faena
from faena.errors import ConfigError
from faena.testing import harness


def test_the_figures_are_those_that_were_asked_for() -> None:
    upstream = openai_upstream(Faena("shop"))
    options = upstream.options
    budgets = [(one.amount, one.per, one.soft, one.thresholds) for one in options.budgets]
    assert budgets == [
        ("50 USD", "day", 0.8, (50, 80, 100)),
        ("500 USD", "month", None, (50, 80, 100)),
    ]
    assert upstream.estimate() == 70_000
    assert options.timeout == "60s"
    prices = {one.item: (one.amount, one.per) for one in options.prices}
    assert prices["gpt-4.output"] == ("0.06 USD", 1000)
    assert prices["whisper-1.minute"] == ("0.006 USD", 1)


def test_options_can_be_overridden() -> None:
    upstream = openai_upstream(Faena("shop"), timeout="120s", breaker=Breaker(volume=3))
    assert (upstream.options.timeout, upstream.options.breaker.volume) == ("120s", 3)
    with pytest.raises(ConfigError):
        openai_upstream(Faena("shop"), timeouts="1s")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Retryable("x"), "retryable"),
        (Unfit("x"), "retryable"),
        (Permanent("x"), "permanent"),
        (RateLimited("x", retry_after="1.5"), "rate_limited"),
        (UnknownOutcome("x"), "unknown"),
    ],
)
def test_each_error_has_its_meaning(error: OpenAIError, kind: str) -> None:
    meaning = openai_upstream(Faena("shop")).sorts(error)
    assert meaning is not None
    assert meaning.kind == kind
    assert meaning.retry_after == ("1.5" if kind == "rate_limited" else None)


async def test_a_job_is_metered_by_what_its_calls_have_used(client: Client) -> None:
    app = Faena("shop")
    upstream, queue = openai_upstream(app), app.queue("voice")

    @queue.task(upstreams=[upstream])
    async def listen(text: str) -> str:
        async with upstream.call() as call:
            heard = await client.transcribe(spoken(text, 90))
            call.spend(heard.items)
        async with upstream.call() as call:
            reply = await client.chat([Message("user", heard.text)])
            call.spend(reply.items)
        return reply.value

    async with harness(app) as h:
        await listen.enqueue("hola", tenant="acme")
        (await h.drain()).check()
        (day, _) = (await upstream.view()).budgets
    # Two minutes are 12,000; "hola" and its role 5 tokens in, "Entendido: hola" 4 out: 50 + 120.
    assert day.spent.micro == 12_170


async def test_a_rate_limit_is_waited_for_and_a_wrong_key_ends_the_job_without_cost(
    settings: Settings, http: httpx.AsyncClient, service: OpenAI
) -> None:
    app = Faena("shop")
    upstream, queue = openai_upstream(app), app.queue("voice")
    stranger = Client(dataclasses.replace(settings, key="sk-wrong"), http)
    client = Client(settings, http)

    @queue.task(upstreams=[upstream])
    async def answer(is_stranger: bool) -> None:
        await (stranger if is_stranger else client).chat([Message("user", "hola")])

    async with harness(app) as h:
        service.faults.add(Fault(kind="status", status=429, seconds=30, times=1))
        await answer.enqueue(False)
        assert (await h.drain()).counts == {"limited": 1}
        h.clock.advance("29s")
        assert (await h.drain()).counts == {}
        assert len(service.ledger.entries) == 1
        assert (await h.drain(through="1m")).counts == {"completed": 1}
        await answer.enqueue(True)
        assert (await h.drain()).counts == {"dead": 1}
        (day, _) = (await upstream.view()).budgets
    assert day.spent.micro == 70_000  # the one that went well, as estimated
