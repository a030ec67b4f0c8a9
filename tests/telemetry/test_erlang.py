"""Erlang's formula against an independent calculation, and against simulated queues."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from faena.telemetry.advice import erlang
from faena.telemetry.advice.erlang import Load
from faena.telemetry.advice.simulation import Arrivals, Rules, play


def exact_busy(slots: int, load: Fraction) -> Fraction:
    """Erlang C as it is defined, by sums of powers and factorials."""
    last = load**slots / math.factorial(slots) / (1 - load / slots)
    return last / (sum(load**one / math.factorial(one) for one in range(slots)) + last)


def logarithmic_busy(slots: int, load: float) -> float:
    """The same by logarithms, for numbers whose powers no float holds."""
    logs = [one * math.log(load) - math.lgamma(one + 1) for one in range(slots)]
    last = slots * math.log(load) - math.lgamma(slots + 1) - math.log(1 - load / slots)
    most = max(*logs, last)
    return math.exp(last - most) / math.fsum(math.exp(one - most) for one in [*logs, last])


def exact_slots(rate: float, service_s: float, objective_s: float) -> int:
    """The exact answer for M/M/c: the fewest slots with P(wait > objective) at most 5 %."""
    load, slots = rate * service_s, math.floor(rate * service_s) + 1
    while True:
        late = math.exp(-(slots - load) / service_s * objective_s)
        if logarithmic_busy(slots, load) * late <= 0.05:
            return slots
        slots += 1


@pytest.mark.parametrize("slots", [1, 2, 3, 7, 20, 100])
@pytest.mark.parametrize("used", [0.05, 0.5, 0.7, 0.95, 0.999])
def test_the_formula_is_that_of_the_textbook(slots: int, used: float) -> None:
    load = Fraction(slots) * Fraction(used)
    exact = float(exact_busy(slots, load))
    assert erlang.busy_probability(slots, float(load)) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("slots", [1_000, 5_000, 20_000])
@pytest.mark.parametrize("used", [0.5, 0.9, 0.999, 0.99999])
def test_thousands_of_slots_lose_no_digits(slots: int, used: float) -> None:
    exact = logarithmic_busy(slots, slots * used)
    found = erlang.busy_probability(slots, slots * used)
    assert found == pytest.approx(exact, rel=1e-6, abs=1e-300)


def test_extremes_have_an_answer() -> None:
    assert erlang.busy_probability(5, 0.0) == 0
    assert erlang.busy_probability(5, 5.0) == 1
    assert erlang.busy_probability(1_000_000, 1e-3) == 0
    assert erlang.part_later_than(1.0, 2, Load(10, 1)) == 1
    assert erlang.wait_s(2, Load(10, 1)) is None
    assert erlang.wait_s(20, Load(1, 0.01)) == 0
    assert erlang.slots_for_wait(1.0, Load(0, 1)) == 1
    assert erlang.slots_for_wait(1.0, Load(1e9, 1e3)) is None
    assert erlang.slots_for_wait(30.0, Load(900_000, 1.0)) == 900_001
    assert erlang.slots_for_target(Load(0, 0)) == 1
    assert erlang.slots_for_target(Load(7, 1)) == 10


@pytest.mark.parametrize("service_s", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("rate", [0.1, 0.9, 3.0, 17.0, 80.0])
@pytest.mark.parametrize("objective_s", [0.1, 1.0, 30.0])
def test_slots_for_an_objective_are_the_exact_ones(
    service_s: float, rate: float, objective_s: float
) -> None:
    found = erlang.slots_for_wait(objective_s, Load(rate, service_s))
    assert found == exact_slots(rate, service_s, objective_s)


@pytest.mark.parametrize(("slots", "used"), [(1, 0.8), (4, 0.9), (30, 0.95)])
@pytest.mark.parametrize("kind", ["exponential", "equal", "uneven"])
def test_simulated_jobs_wait_as_long_as_is_predicted(slots: int, used: float, kind: str) -> None:
    chance = random.Random(7)
    draws = {
        "exponential": lambda: chance.expovariate(1),
        "equal": lambda: 1.0,
        "uneven": lambda: 0.5 if chance.random() < 0.9 else 5.5,
    }
    variability = {"exponential": 1.0, "equal": 0.5, "uneven": (1 + 2.25) / 2}[kind]
    number, at, service_s = 300_000, 0.0, [draws[kind]() for _ in range(300_000)]
    instants = [at := at + chance.expovariate(slots * used) for _ in range(number)]
    waits = sorted(play(Arrivals(instants, service_s, ()), Rules(slots=slots)).waits_s)
    load = Load(slots * used, 1.0, variability)
    predicted = erlang.wait_s(slots, load)
    assert predicted is not None
    # Exact for exponential run times but for chance; an approximation for the others.
    near = 0.1 if kind == "exponential" else 0.25
    assert waits[int(0.95 * number)] == pytest.approx(predicted, rel=near)
