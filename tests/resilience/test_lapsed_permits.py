"""A process that was frozen until its reservation had come back asks again before it calls.

What the freeze does is done here without one: the server takes the holder for dead, another process
spends the money, and the holder finds that its permit has lapsed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from faena import Budget, Faena, Price, UpstreamUnavailable
from faena.engine.calls.resilience import SHARD
from faena.resilience.call_group import Permits
from faena.resilience.gate import Gate
from faena.resilience.permits import CURRENT
from faena.resilience.question import Granted, Wanted
from faena.resilience.upstream import Upstream
from faena.worker.execute.admission import Admission, Asking
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests._support.working import Working
from tests.resilience.test_odd_ends import Holding

DOLLAR = 10**6


@pytest.fixture
async def other(valkey: Server, namespace: str) -> AsyncIterator[Faena]:
    """Another process."""
    other = Faena("other", valkey.url, namespace=namespace)
    yield other
    await other.close()


def _ai(app: Faena) -> Upstream:
    """There is money for one call."""
    return app.upstream(
        "ai", prices=[Price("call", "1 USD")], budgets=[Budget("1 USD")], timeout="10m"
    )


async def _lapse(app: Faena, permits: Permits) -> None:
    """So much time passes."""
    permits.lapses_at = time.monotonic()
    await (await app.runtime()).engine.command("ZADD", SHARD, "lot_ends", "0", permits.stem)


async def _spend(app: Faena, ai: Upstream) -> None:
    async with ai.call():
        pass
    await (await app.runtime()).gate.flush()


async def _spent(app: Faena) -> int:
    await (await app.runtime()).gate.flush()
    (budget,) = await app.budget_views()
    assert budget.reserved.micro == 0
    return budget.spent.micro


async def test_a_permit_lapses_here_before_it_lapses_on_the_server(shop: Faena) -> None:
    ai, runtime = _ai(shop), await shop.runtime()
    (answer,) = await runtime.gate.admit([Wanted(runtime.gate.group([ai], ""), 1)])
    ends_at = await runtime.engine.command("ZSCORE", SHARD, "lot_ends", answer.permits.stem)
    left_there_s = float(ends_at) / 1e6 - time.time()
    left_here_s = answer.permits.lapses_at - time.monotonic()
    assert 300 < left_here_s <= left_there_s


async def test_a_call_does_not_use_a_permit_of_its_job_that_has_lapsed(
    shop: Faena, other: Faena
) -> None:
    ai, gate = _ai(shop), (await shop.runtime()).gate
    (answer,) = await gate.admit([Wanted(gate.group([ai], ""), 1)])
    await _lapse(shop, answer.permits)
    await _spend(other, _ai(other))
    before = CURRENT.set(Holding(answer.permits))
    with pytest.raises(UpstreamUnavailable, match="budget"):
        async with ai.call():
            raise AssertionError("it was called without money")
    CURRENT.reset(before)
    assert await _spent(shop) == DOLLAR


async def test_a_call_asks_once_more_when_its_own_permit_came_too_late(
    shop: Faena, other: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    ai, twin, lots = _ai(shop), _ai(other), list[str]()
    admit = Gate.admit

    async def slow_admit(gate: Gate, wanted: list[Wanted]) -> list[Granted]:
        answers = await admit(gate, wanted)
        if not lots:
            lots.append(answers[0].permits.stem)
            await _lapse(shop, answers[0].permits)
            await _spend(other, twin)
        return answers

    monkeypatch.setattr(Gate, "admit", slow_admit)
    with pytest.raises(UpstreamUnavailable, match="budget"):
        async with ai.call():
            raise AssertionError("it was called without money")
    assert await _spent(shop) == DOLLAR


@pytest.mark.parametrize("is_spent", [True, False])
async def test_a_handler_begins_only_with_a_permit_that_has_not_lapsed(
    shop: Faena,
    other: Faena,
    working: Working,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_spent: bool,
) -> None:
    ai, twin, queue = _ai(shop), _ai(other), shop.queue("answers")
    called: list[int] = []
    lots: list[str] = []
    ask = Admission.ask

    @queue.task(upstreams=[ai])
    async def answer(question: int) -> None:
        called.append(question)

    async def slow_ask(admission: Admission, asking: Asking) -> Any:
        granted, refused = await ask(admission, asking)
        for permits in [one.permits for one in granted if one.permits and not lots]:
            lots.append(permits.stem)
            await _lapse(shop, permits)
            if is_spent:
                await _spend(other, twin)
        return granted, refused

    monkeypatch.setattr(Admission, "ask", slow_ask)
    await answer.enqueue(1)

    async def is_decided() -> bool:
        held = [hold.reason for hold in (await queue.overview()).holds] == ["upstream ai"]
        return held if is_spent else called == [1]

    async with working(shop):
        await eventually(is_decided)
    assert called == ([] if is_spent else [1])
    assert await _spent(shop) == DOLLAR


async def test_a_handler_does_not_begin_with_a_second_permit_that_came_too_late_either(
    shop: Faena, other: Faena, working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    ai, twin, queue = _ai(shop), _ai(other), shop.queue("answers")
    called: list[int] = []
    lots: list[str] = []
    admit = Gate.admit

    @queue.task(upstreams=[ai])
    async def answer(question: int) -> None:
        called.append(question)

    async def slow_admit(gate: Gate, wanted: list[Wanted]) -> list[Granted]:
        answers = await admit(gate, wanted)
        if len(lots) < 2:
            lots.append(answers[0].permits.stem)
            await _lapse(shop, answers[0].permits)
            if len(lots) == 2:
                await _spend(other, twin)
        return answers

    monkeypatch.setattr(Gate, "admit", slow_admit)
    await answer.enqueue(1)

    async def is_decided() -> bool:
        counts = await queue.counts()
        return bool(counts["completed"] or (await queue.overview()).holds)

    async with working(shop):
        await eventually(is_decided)
    assert (called, len(lots)) == ([], 2)
    assert await _spent(shop) == DOLLAR
