"""Retry policies: the waits of every curve, jitter, promises, faults and giving up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena.errors import ConfigError
from faena.retry import Retry

S = 1_000_000


def middle() -> float:
    return 0.5


def least() -> float:
    return 0.0


def most() -> float:
    return 1.0 - 2**-53


def waits(policy: Retry, count: int) -> list[float]:
    return [policy.delay_us(n, random=middle) / S for n in range(1, count + 1)]


def test_exponential_doubles_from_one_second_and_stops_at_five_minutes() -> None:
    assert waits(Retry.exponential(), 11) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_the_factor_base_and_cap_are_parameters() -> None:
    assert waits(Retry.exponential(base="2s", factor=3, cap="20s"), 4) == [2, 6, 18, 20]


def test_a_steep_curve_reaches_its_cap_instead_of_overflowing() -> None:
    assert Retry.exponential(factor=100.0).delay_us(1000, random=middle) == 300 * S


def test_fixed_waits_thirty_seconds_by_default() -> None:
    assert waits(Retry.fixed(), 3) == [30, 30, 30]
    assert waits(Retry.fixed(timedelta(seconds=7)), 2) == [7, 7]


def test_steps_are_taken_in_turn_and_the_last_repeats() -> None:
    assert waits(Retry.steps("5s", "1m"), 4) == [5, 60, 60, 60]


def test_by_default_every_step_is_used_once() -> None:
    policy = Retry.steps("5s", "1m")
    assert policy.attempts == 3


def test_never_allows_one_attempt() -> None:
    assert Retry.never().exhausted(1)


def test_a_policy_is_exhausted_by_its_last_attempt() -> None:
    policy = Retry.fixed(attempts=3)
    assert [policy.exhausted(n) for n in (1, 2, 3, 4)] == [False, False, True, True]


def test_jitter_swings_both_ways_by_a_fifth() -> None:
    policy = Retry.fixed("10s")
    assert policy.delay_us(1, random=least) == 8 * S
    assert policy.delay_us(1, random=most) == pytest.approx(12 * S, abs=1)
    assert Retry.fixed("10s", jitter=0).delay_us(1, random=least) == 10 * S


def test_no_wait_is_shorter_than_the_floor_of_one_second() -> None:
    assert Retry.exponential().delay_us(1, random=least) == 1 * S
    assert Retry.fixed("10ms").delay_us(1, random=middle) == 1 * S


def test_the_floor_can_be_lifted() -> None:
    assert Retry.fixed("10ms", floor="0s").delay_us(1, random=middle) == 10_000
    assert Retry.fixed("0s", floor="0s").delay_us(1, random=most) == 0


def test_a_floor_above_the_cap_is_refused() -> None:
    with pytest.raises(ConfigError, match="retry floor must be at most the cap of '1s', got '5s'"):
        Retry.exponential(cap="1s", floor="5s")
    with pytest.raises(ConfigError, match="got '1s', the default; give floor= too"):
        Retry.exponential(base="100ms", cap="500ms")
    assert Retry.exponential(base="1s", cap="1s").delay_us(9, random=least) == 1 * S


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 1000), st.floats(0, 1))
def test_every_wait_stays_within_its_jitter_and_above_its_floor(
    chance: float, attempt: int, jitter: float
) -> None:
    policy = Retry.exponential(jitter=jitter)
    planned = min(2 ** (attempt - 1), 300) * S
    wait = policy.delay_us(attempt, random=lambda: chance)
    assert max(S, planned * (1 - jitter) - 1) <= wait <= max(S, planned * (1 + jitter))


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 3650 * 86_400 * S))
def test_a_promise_is_only_ever_made_longer(chance: float, promised_us: int) -> None:
    wait = Retry.fixed().promised_us(promised_us, random=lambda: chance)
    assert promised_us <= wait <= max(S, promised_us * 1.2)


def test_a_custom_function_gets_the_attempt_and_the_error() -> None:
    seen: list[Any] = []

    def plan(attempt: int, error: BaseException | None) -> str:
        seen.append((attempt, error))
        return f"{attempt * 10}s"

    failure = ValueError("boom")
    policy = Retry.custom(plan, attempts=5, jitter=0)
    assert policy.delay(2, failure, random=middle) == (20 * S, None)
    assert seen == [(2, failure)]


@pytest.mark.parametrize("answer", [None, 5, -1, "soon", timedelta(seconds=-1), "9999d"])
def test_a_custom_function_that_answers_nonsense_falls_back_and_says_so(answer: Any) -> None:
    wait = Retry.custom(lambda _attempt, _error: answer).delay(3, random=middle)
    assert wait.us == 4 * S
    assert wait.fault is not None
    assert wait.fault.startswith("ConfigError: retry delay must be")


def test_a_custom_function_that_raises_falls_back_and_says_so() -> None:
    def plan(attempt: int, error: BaseException | None) -> str:
        raise ZeroDivisionError("oops")

    assert Retry.custom(plan).delay(1, random=middle) == (1 * S, "ZeroDivisionError: oops")
    assert Retry.custom(plan).delay_us(1, random=middle) == 1 * S


def test_listed_exceptions_and_their_subclasses_give_up_at_once() -> None:
    policy = Retry.fixed(give_up_on=(LookupError, ValueError))
    assert policy.gives_up(KeyError("x"))
    assert policy.gives_up(ValueError("x"))
    assert not policy.gives_up(TypeError("x"))
    assert not Retry.fixed().gives_up(ValueError("x"))
    assert Retry.fixed(give_up_on=LookupError) == Retry.fixed(give_up_on=(LookupError,))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Retry.fixed(attempts=0), "retry attempts must be a whole number from 1 to 1000"),
        (lambda: Retry.fixed(attempts=1001), "retry attempts must be a whole number"),
        (lambda: Retry.fixed("soon"), "retry wait must be a timedelta"),
        (lambda: Retry.fixed(jitter=1.5), "retry jitter must be a number from 0 to 1, got 1.5"),
        (lambda: Retry.fixed(floor=1), "retry floor must be"),
        (Retry.steps, "retry steps must be at least one duration"),
        (lambda: Retry.steps("1s", "x"), "retry step must be"),
        (lambda: Retry.exponential(factor=0.5), "retry factor must be a number from 1 to 100"),
        (lambda: Retry.exponential(base="6m"), "retry base must be at most the cap of '5m'"),
        (lambda: Retry.custom("soon"), "retry function must be callable"),
        (lambda: Retry.fixed(give_up_on="ValueError"), "must be an exception class or a tuple"),
        (lambda: Retry.fixed(give_up_on=("ValueError",)), "must be an exception class or a tuple"),
        (lambda: Retry.fixed(max_attempts=2), "got 'max_attempts'; did you mean 'attempts'"),
        (lambda: Retry.exponential(giveup_on=()), "got 'giveup_on'; did you mean 'give_up_on'"),
        (lambda: Retry.steps("1s", jiter=0), "got 'jiter'; did you mean 'jitter'"),
        (lambda: Retry("1s"), "retry curve must have a delay_us method"),
    ],
)
def test_a_bad_policy_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_equal_policies_are_equal() -> None:
    assert Retry.exponential() == Retry.exponential()
    assert Retry.exponential() != Retry.exponential(attempts=4)


@pytest.mark.parametrize("build", [Retry.never, Retry.exponential, Retry.fixed])
def test_an_option_that_a_policy_does_not_have_is_named(build: Any) -> None:
    with pytest.raises(ConfigError, match="'atempts'") as told:
        build(atempts=2)
    assert told.value.field == "atempts"


def test_every_policy_with_a_wait_takes_the_same_rules() -> None:
    assert Retry.steps("30s", jitter=0, give_up_on=KeyError).gives_up(KeyError())
    assert Retry.fixed("5s", floor="9s").floor_us == 9_000_000
    with pytest.raises(ConfigError, match=r"Retry\.never takes no options, got 'jitter'"):
        Retry.never(jitter=0)  # pyright: ignore[reportArgumentType]
