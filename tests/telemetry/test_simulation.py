"""The simulation: slots, sliding limits and fair turns as the engine has them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest

from faena.telemetry.advice.simulation import Arrivals, Rules, Window, play


def burst(number: int, tenant: Sequence[int] = (), service_s: float = 1.0) -> Arrivals:
    return Arrivals([0.0] * number, [service_s] * number, tenant)


def starts(arrivals: Arrivals, rules: Rules) -> list[float]:
    waits = play(arrivals, rules).waits_s
    return [at + wait for at, wait in zip(arrivals.at, waits, strict=True)]


def drawn(number: int, *, tenants: int = 0) -> Arrivals:
    chance = random.Random(3)
    at = sorted(chance.uniform(0, number / 5) for _ in range(number))
    numbers = [chance.randrange(tenants) for _ in range(number)] if tenants else ()
    return Arrivals(at, [chance.expovariate(1) for _ in range(number)], numbers)


def test_a_burst_is_worked_off_slot_by_slot() -> None:
    played = play(burst(7), Rules(slots=3))
    assert played.waits_s == [0, 0, 0, 1, 1, 1, 2]
    assert (played.ended, played.busy_s) == (3, 7)


def test_one_tenant_is_served_as_if_there_were_none() -> None:
    arrivals = drawn(5_000)
    alone = arrivals._replace(tenant=[0] * 5_000)
    for limits in ((), (Window(20, 5.0),)):
        rules = Rules(slots=6, limits=limits)
        assert play(alone, rules).waits_s == pytest.approx(play(arrivals, rules).waits_s)


@pytest.mark.parametrize("tenants", [0, 4])
def test_no_window_holds_more_starts_than_its_limit(tenants: int) -> None:
    limits = (Window(4, 1.0), Window(30, 10.0))
    began = sorted(starts(drawn(3_000, tenants=tenants), Rules(slots=50, limits=limits)))
    for most, per_s in limits:
        pairs = zip(began, began[most:], strict=False)
        assert all(later - one >= per_s - 1e-6 for one, later in pairs)


def test_limits_and_bounds_of_tenants_hold_for_each() -> None:
    arrivals = drawn(2_000, tenants=3)
    rules = Rules(slots=50, tenant_limits=(Window(2, 1.0),), tenant_most=1)
    began = starts(arrivals, rules)
    for tenant in range(3):
        own = sorted(
            (at, at + service_s)
            for at, service_s, one in zip(began, arrivals.service_s, arrivals.tenant, strict=True)
            if one == tenant
        )
        pairs = list(itertools.pairwise(own))
        assert all(later[0] >= one[1] - 1e-6 for one, later in pairs)  # one at a time
        thirds = zip(own, own[2:], strict=False)
        assert all(later[0] - one[0] >= 1 - 1e-6 for one, later in thirds)


def test_waiting_tenants_are_served_by_their_weights() -> None:
    tenant = [0] * 400 + [1] * 400
    began = starts(burst(800, tenant), Rules(slots=1, weights={1: 3.0}))
    first = sorted(range(800), key=began.__getitem__)[:200]
    assert sum(tenant[job] for job in first) == pytest.approx(150, abs=2)


def test_turns_by_time_give_long_jobs_fewer_starts() -> None:
    tenant = [0] * 200 + [1] * 200
    arrivals = Arrivals([0.0] * 400, [4.0] * 200 + [1.0] * 200, tenant)
    began = starts(arrivals, Rules(slots=1, by_time=True))
    first = sorted(range(400), key=began.__getitem__)[:100]
    assert sum(tenant[job] for job in first) == pytest.approx(80, abs=2)


def test_a_tenant_that_was_idle_saves_nothing_up() -> None:
    tenant = [0] * 100 + [1] * 20 + [0] * 20
    at = [0.0] * 100 + [100.0] * 40
    arrivals = Arrivals(at, [1.0] * 140, tenant)
    began = starts(arrivals, Rules(slots=1))
    after = sorted(range(100, 140), key=began.__getitem__)[:20]
    assert sum(tenant[job] for job in after) == pytest.approx(10, abs=1)


def test_every_job_starts_and_progress_is_told() -> None:
    told: list[int] = []
    arrivals = drawn(120_000, tenants=30)
    played = play(arrivals, Rules(slots=8, limits=(Window(100, 1.0),)), told.append)
    assert len(played.waits_s) == 120_000
    assert min(played.waits_s) >= 0
    assert told[-1] == 120_000
    assert len(told) >= 3
