"""A probe whose permit has lapsed makes room for another at once."""

from __future__ import annotations

import time

from faena import Breaker, Budget, Faena, Price
from faena.resilience.gate import Gate
from faena.resilience.permits import permit_of
from faena.resilience.question import Granted, Wanted
from faena.resilience.upstream import Upstream
from tests._support.eventually import eventually
from tests.resilience.test_odd_ends import Holding


async def _probe(gate: Gate, ai: Upstream) -> Granted:
    found: list[Granted] = []

    async def is_probe() -> bool:
        (answer,) = await gate.admit([Wanted(gate.group([ai], ""), 1)])
        if answer.grant.is_probe:
            found.append(answer)
        return bool(found)

    await eventually(is_probe)
    return found[0]


async def test_a_probe_that_has_lapsed_makes_room(shop: Faena) -> None:
    ai = shop.upstream(
        "ai",
        prices=[Price("call", "1 USD")],
        budgets=[Budget("100 USD")],
        breaker=Breaker(volume=4, open="100ms", longest="100ms", probes=1),
    )
    gate = (await shop.runtime()).gate
    gate.group([ai], "").counters[0].add_bad(4)
    await gate.flush()
    answer = await _probe(gate, ai)
    answer.permits.lapses_at = time.monotonic()
    assert permit_of(Holding(answer.permits, answer.permits.probe(1)), ai) is None
    await gate.flush()
    (again,) = await gate.admit([Wanted(gate.group([ai], ""), 1)])
    assert again.grant.is_probe, again.grant
