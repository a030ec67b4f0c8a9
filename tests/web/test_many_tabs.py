"""Many queues and many tabs cost the broker what few do, and nothing of a tab stays behind."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest

from faena import Faena
from faena.engine import Wire
from faena.web.live import Hub
from tests._support.eventually import eventually
from tests.web.conftest import Browser

TABS = 200


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often this process has sent something: a script alone, or a few of them together."""
    counted = Counter[str]()

    def count(name: str) -> None:
        inner = getattr(Wire, name)

        def counting(*args: Any, **named: Any) -> Any:
            counted[name] += 1
            return inner(*args, **named)

        monkeypatch.setattr(Wire, name, counting)

    for name in ("call", "run", "push", "_run_part"):
        count(name)
    return counted


async def _first(listening: AsyncGenerator[bytes]) -> bytes:
    """The first figures."""
    async for part in listening:
        if part.startswith(b"data:"):
            return part
    raise AssertionError("nothing was told")


async def test_many_tabs_are_read_for_as_one_and_leave_nothing(
    app: Faena, sent: Counter[str]
) -> None:
    app.queue("mail")

    async def reading() -> Mapping[str, str]:
        seen = await app.snapshot(max_age="0s")
        return {"at": str(seen.at)}

    async def of_one_reading(tabs: int) -> int:
        """What is sent for a hub's first reading, with all of these tabs listening."""
        hub, before = Hub(tick_s=3600.0), sent.total()
        async with AsyncExitStack() as stack:
            listening = [hub.listen("overview", reading) for _ in range(tabs)]
            for one in listening:
                await stack.enter_async_context(aclosing(one))
            parts = await asyncio.gather(*map(_first, listening))
            assert len(set(parts)) == 1
            assert hub.channels == 1
        assert hub.channels == 0
        return sent.total() - before

    await reading()  # what is asked once, such as for the settings, is known
    tasks = len(asyncio.all_tasks())
    alone = await of_one_reading(1)
    assert alone > 0
    assert await of_one_reading(TABS) == alone
    assert len(asyncio.all_tasks()) == tasks


async def test_tabs_that_come_and_go_leave_no_tasks_and_no_memory(app: Faena) -> None:
    hub, tasks = Hub(tick_s=3600.0), len(asyncio.all_tasks())

    async def reading() -> Mapping[str, str]:
        return {"number": "1"}

    async def come_and_go(number: int) -> None:
        for at in range(number):
            async with aclosing(hub.listen(("queue", at % 7), reading)) as listening:
                assert await _first(listening)

    def left() -> int:
        gc.collect()
        return sum(type(one).__module__ == "faena.web.live" for one in gc.get_objects())

    await come_and_go(10)
    before = left()
    await come_and_go(TABS)
    assert (left(), hub.channels, len(asyncio.all_tasks())) == (before, 0, tasks)


async def test_a_tab_that_is_closed_while_it_waits_ends_its_channel(app: Faena) -> None:
    hub = Hub(tick_s=3600.0)

    async def reading() -> Mapping[str, str]:
        return {"number": "1"}

    async def follow() -> None:
        async with aclosing(hub.listen("page", reading)) as listening:
            async for _ in listening:
                pass

    tabs = [asyncio.create_task(follow()) for _ in range(3)]
    await eventually(lambda: hub.channels)
    for tab in tabs:
        tab.cancel()
    await asyncio.gather(*tabs, return_exceptions=True)
    assert hub.channels == 0


@pytest.mark.parametrize("path", ["/", "/queues", "/dead", "/workers"])
async def test_a_page_of_many_queues_takes_few_round_trips(
    app: Faena, browser: Browser, sent: Counter[str], path: str
) -> None:
    for number in range(40):
        app.queue(f"q{number}")
    await browser.sign_in("a-owner")
    before = sent.total()
    assert (await browser.get(path)).status_code == 200
    assert sent.total() - before < 40
