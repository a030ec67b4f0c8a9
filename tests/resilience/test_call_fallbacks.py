"""Fallbacks of calls: a function that stands in."""

from __future__ import annotations

import threading

import pytest

from faena import Faena
from faena.errors import FallbackFailed
from faena.resilience.breaker import Breaker
from tests._support.falling import Down, trip

SLOW = Breaker(volume=4, open="10m")


async def test_a_call_falls_back_to_a_function_with_the_same_arguments(shop: Faena) -> None:
    openai = shop.upstream("openai", breaker=SLOW)

    @openai.with_fallback(lambda text, polite=False: f"canned {text} {polite}")
    async def ask(text: str, polite: bool = False) -> str:
        return f"asked {text} {polite}"

    assert await ask("a") == "asked a False"
    await trip(openai)
    assert await ask("b", polite=True) == "canned b True"


async def test_a_call_that_fails_falls_back_only_if_told_so(shop: Faena) -> None:
    openai = shop.upstream("openai", sorting={Down: "retryable", KeyError: "permanent"})

    async def fail(error: type[Exception]) -> str:
        raise error

    async def instead(_error: type[Exception]) -> str:
        return "instead"

    with pytest.raises(Down):
        await openai.with_fallback(instead)(fail)(Down)
    both = openai.with_fallback(instead, on_error=True)(fail)
    assert await both(Down) == "instead"
    with pytest.raises(KeyError):
        await both(KeyError)


async def test_a_calls_fallback_that_fails_says_so(shop: Faena) -> None:
    openai = shop.upstream("openai")

    def instead() -> str:
        raise ValueError("no template")

    @openai.with_fallback(instead, on_error=True)
    async def ask() -> str:
        raise Down("no network")

    with pytest.raises(FallbackFailed, match=r"ValueError: no template; .* Down: no network") as it:
        await ask()
    assert isinstance(it.value.error, Down)
    engine = await openai.engine()
    rows = await engine.command("XRANGE", "@resilience", "events", "-", "+")
    assert rows[-1][1][-2:] == [b"upstream_fallback_failed", b"openai"]


def test_a_plain_function_falls_back_in_its_thread(shop: Faena) -> None:
    openai = shop.upstream("openai")
    ended: list[object] = []

    def instead(number: int) -> str:
        return f"instead {threading.current_thread().name} {1 // number}"

    @openai.with_fallback(instead, on_error=True)
    def ask(_number: int) -> str:
        raise Down

    def run() -> None:
        ended.append(ask(1))
        try:
            ask(0)
        except FallbackFailed as error:
            ended.append(type(error.second))

    thread = threading.Thread(target=run, name="mine")
    thread.start()
    thread.join(60)
    shop.sync.run(_flush(shop))
    assert ended == ["instead mine 1", ZeroDivisionError]


async def _flush(shop: Faena) -> None:
    """Report the last calls now, before the keys are removed."""
    await (await shop.runtime()).gate.flush()
