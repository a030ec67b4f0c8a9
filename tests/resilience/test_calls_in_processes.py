"""A call in a child process uses its job's permit: it is counted once, and paid once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from faena.engine.calls.resilience import SHARD
from faena.errors import JobFailed
from faena.resilience.money import Money
from faena.testing import attempt
from tests._support import calling_app
from tests._support.calling_app import afip, ai, app, fail, hang, is_the_call, once, request, twice
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests._support.working import obliterate, serving
from tests.resilience.test_money import CENT, _is_nothing_reserved, _spent

KEYS = ("upstreams", "troubled", "events", "reserved", "lots", "lot_ends")


@pytest.fixture
async def worker(
    valkey: Server, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    monkeypatch.setenv("FAENA_URL", valkey.url)
    monkeypatch.setenv(calling_app.NAMESPACE, namespace)
    with app.override(url=valkey.url, namespace=namespace):
        async with serving(app):
            yield
            await eventually(lambda: _is_nothing_reserved(app))  # permits in advance come back
        runtime = await app.runtime()
        await runtime.gate.flush()
        for name in KEYS:
            await runtime.engine.command("DEL", SHARD, name)
        await obliterate(app)


async def _run(task: Any, *payload: Any, **options: Any) -> Any:
    receipt = await task.enqueue(*payload, **options)
    return await receipt.handle.result(timeout="60s")


async def _calls(upstream: Any) -> tuple[int, int]:
    await (await app.runtime()).gate.flush()
    view = await upstream.view()
    return view.calls, view.failed


@pytest.mark.usefixtures("worker")
async def test_a_marked_call_is_counted_and_paid_once() -> None:
    for _ in range(2):
        await _run(once, tenant="acme")
    assert await _calls(ai) == (2, 0)
    assert await _spent(app, "s/ai") == 2 * CENT
    assert await _spent(app, "k/ai/once") == 2 * CENT


@pytest.mark.usefixtures("worker")
async def test_the_second_call_asks_for_itself_and_is_its_jobs_too() -> None:
    await _run(twice, tenant="acme")

    async def is_told() -> bool:  # the child reports shortly after
        return await _spent(app, "k/ai/twice") == 3_000 + CENT

    await eventually(is_told)
    assert await _calls(ai) == (2, 0)


@pytest.mark.usefixtures("worker")
async def test_a_handler_that_is_the_call_says_what_it_costs() -> None:
    assert await _run(is_the_call, 7) is False
    await _run(is_the_call, 0)
    assert await _spent(app, "s/ai") == 7_000 + CENT
    assert await _calls(ai) == (2, 0)


@pytest.mark.usefixtures("worker")
async def test_failures_open_a_breaker_each_once() -> None:
    for _ in range(2):
        with pytest.raises(JobFailed, match="down"):
            await _run(fail, "down")
    assert await _calls(ai) == (2, 2)
    assert (await ai.view()).state == "closed", "its volume is 3"


@pytest.mark.usefixtures("worker")
async def test_a_call_whose_child_is_killed_has_failed_and_is_paid() -> None:
    with pytest.raises(JobFailed, match="ran longer than 1 s"):
        await _run(hang)
    assert await _calls(ai) == (1, 1)
    assert await _spent(app, "s/ai") == CENT


@pytest.mark.usefixtures("worker")
async def test_an_answer_that_asks_to_wait_holds_calls_and_uses_no_attempt() -> None:
    receipt = await fail.enqueue("busy")

    async def is_paused() -> bool:
        return (await ai.view()).no_calls_until is not None

    await eventually(is_paused)
    await eventually(lambda: _waits(receipt))


async def _waits(receipt: Any) -> bool:
    view = await receipt.handle.view()
    return view.attempts_made == 0 and view.state in {"ready", "delayed"}


@pytest.mark.usefixtures("worker")
async def test_a_call_in_a_child_is_the_probe() -> None:
    with pytest.raises(JobFailed):
        await _run(request, True)

    async def is_open() -> bool:
        return (await afip.view()).openings == 1

    await eventually(is_open)
    await _run(request, False)

    async def has_recovered() -> bool:
        return (await afip.view()).state in {"recovering", "closed"}

    await eventually(has_recovered)


async def test_a_test_without_a_broker_runs_it_too() -> None:
    ran = await attempt(is_the_call, 3, frugal=True)
    assert (ran.result, ran.spent) == (True, {"ai": Money(3_000, "USD")})
    ran = await attempt(once)
    assert (ran.ending, ran.spent) == ("completed", {"ai": Money(10_000, "USD")})
