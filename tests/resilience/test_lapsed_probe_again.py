"""Where the permit that has lapsed was a probe, its place is free and the new one is the probe."""

from __future__ import annotations

import time
from typing import Any

import pytest

from faena import Breaker, Budget, Faena, Price
from faena.engine.calls.resilience import SHARD
from faena.resilience.call_group import Permits
from faena.resilience.gate import Gate
from faena.resilience.question import Granted, Wanted
from faena.resilience.upstream import Upstream
from faena.worker.execute.admission import Admission, Asking
from tests._support.eventually import eventually
from tests._support.working import Working


async def _half_open(app: Faena) -> Upstream:
    """One probe may go now, and is waited for ten minutes."""
    ai = app.upstream(
        "ai",
        prices=[Price("call", "1 USD")],
        budgets=[Budget("100 USD")],
        timeout="10m",
        breaker=Breaker(volume=4, open="100ms", longest="100ms", probes=1, ramp="10m"),
    )
    gate = (await app.runtime()).gate
    gate.group([ai], "").counters[0].add_bad(4)
    await gate.flush()
    await eventually(lambda: _may_probe(ai))
    gate.forget()
    return ai


async def _may_probe(ai: Upstream) -> bool:
    return (await ai.view()).is_probe_due


async def _lapse(app: Faena, permits: Permits) -> None:
    permits.lapses_at = time.monotonic()
    await (await app.runtime()).engine.command("ZADD", SHARD, "lot_ends", "0", permits.stem)


async def _has_recovered(app: Faena, ai: Upstream) -> bool:
    await (await app.runtime()).gate.flush()
    return (await ai.view()).state == "recovering"


async def test_a_call_whose_probe_has_lapsed_probes_again(
    shop: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    ai, admit, lots = await _half_open(shop), Gate.admit, list[str]()

    async def slow_admit(gate: Gate, wanted: list[Wanted]) -> list[Granted]:
        answers = await admit(gate, wanted)
        if not lots and answers[0].grant.is_probe:
            lots.append(answers[0].permits.stem)
            await _lapse(shop, answers[0].permits)
        return answers

    monkeypatch.setattr(Gate, "admit", slow_admit)
    async with ai.call():
        pass
    assert lots
    assert await _has_recovered(shop, ai)


async def test_a_job_whose_probe_has_lapsed_probes_again(
    shop: Faena, working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    ai, ask, lots = await _half_open(shop), Admission.ask, list[str]()

    @shop.queue("answers").task(upstreams=[ai])
    async def answer() -> None: ...

    async def slow_ask(admission: Admission, asking: Asking) -> Any:
        granted, refused = await ask(admission, asking)
        for one in [one for one in granted if one.permits and one.probe and not lots]:
            assert one.permits
            lots.append(one.permits.stem)
            await _lapse(shop, one.permits)
        return granted, refused

    monkeypatch.setattr(Admission, "ask", slow_ask)
    await answer.enqueue()
    async with working(shop):
        await eventually(lambda: _has_recovered(shop, ai))
    assert lots
