"""Limits: their texts, and stacks in which every limit can bind."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena.errors import ConfigError
from faena.limits import Limit, check_stack
from faena.values.duration import LONGEST_US


@pytest.mark.parametrize(
    ("text", "most", "per_us", "canonical"),
    [
        ("10/min", 10, 60_000_000, "10/min"),
        ("10/m", 10, 60_000_000, "10/min"),
        ("10 / minute", 10, 60_000_000, "10/min"),
        ("10/60s", 10, 60_000_000, "10/min"),
        ("50/s", 50, 1_000_000, "50/s"),
        ("50/sec", 50, 1_000_000, "50/s"),
        ("1000/h", 1000, 3_600_000_000, "1000/h"),
        ("1000/hour", 1000, 3_600_000_000, "1000/h"),
        ("10000/day", 10000, 86_400_000_000, "10000/day"),
        ("10000/d", 10000, 86_400_000_000, "10000/day"),
        ("100/30s", 100, 30_000_000, "100/30s"),
        ("100/1h30m", 100, 5_400_000_000, "100/1h30m"),
    ],
)
def test_a_limit_is_read_and_written_back_in_one_form(
    text: str, most: int, per_us: int, canonical: str
) -> None:
    limit = Limit(text)
    assert (limit.max, limit.per_us, str(limit)) == (most, per_us, canonical)


def test_a_limit_can_be_given_in_parts() -> None:
    assert Limit(max=10, per="1m") == Limit("10/min")
    assert hash(Limit(max=10, per="1m")) == hash(Limit("10/min"))
    assert repr(Limit("10/60s")) == "Limit('10/min')"


def test_a_limit_survives_copying_and_pickling_and_cannot_be_changed() -> None:
    limit = Limit("10/min")
    assert pickle.loads(pickle.dumps(limit)) == limit == copy.deepcopy(limit)
    with pytest.raises(AttributeError):
        limit.max = 11  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    "text",
    ["", "10", "10/", "/min", "ten/min", "-1/s", "1.5/s", "10/min/h", "10 per min", 10, b"1/s"],
)
def test_a_text_that_is_no_limit_is_refused_with_examples(text: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        Limit(text)
    assert "must be a count per window such as '10/min'" in str(refused.value)
    assert repr(text) in str(refused.value)


@pytest.mark.parametrize("text", ["10/7", "10/0s", "10/999us", "10/99999d"])
def test_a_window_that_is_no_usable_duration_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="limit per must be"):
        Limit(text)


@pytest.mark.parametrize("most", [0, 1_000_000_001, True, None])
def test_a_count_out_of_bounds_is_refused(most: Any) -> None:
    with pytest.raises(ConfigError, match="limit max must be a whole number from 1"):
        Limit(max=most, per="1m")


def test_text_and_parts_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="limit must be a string, or max and per"):
        Limit("10/min", max=5)  # pyright: ignore[reportCallIssue]


@given(
    st.integers(min_value=1, max_value=1_000_000_000),
    st.integers(min_value=1_000, max_value=LONGEST_US),
)
def test_the_canonical_text_is_read_back_exactly(most: int, per_us: int) -> None:
    limit = Limit(max=most, per=f"{per_us}us")
    assert Limit(str(limit)) == limit


def test_a_sound_stack_is_returned_shortest_window_first() -> None:
    stack = check_stack([Limit("10000/day"), Limit("60/min"), Limit("1000/h")])
    assert [str(limit) for limit in stack] == ["60/min", "1000/h", "10000/day"]
    assert check_stack([]) == ()


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ("10/min", "20/60s", "both have the same window"),
        ("100/min", "100/h", "100/min can never be reached"),
        ("200/min", "100/h", "200/min can never be reached"),
        ("10/min", "600/h", "600/h can never be reached"),
        ("10/min", "20/90s", "20/90s can never be reached"),
    ],
)
def test_a_stack_with_a_limit_that_cannot_bind_is_refused(
    one: str, other: str, reason: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        check_stack([Limit(other), Limit(one)], what="tenant_limits")
    assert str(refused.value).startswith("tenant_limits must not contradict each other, got")
    assert str(refused.value).endswith(reason.replace("90s", "1m30s"))


@given(
    st.tuples(st.integers(1, 6), st.integers(1, 5)),
    st.tuples(st.integers(1, 24), st.integers(6, 12)),
)
def test_a_pair_is_refused_exactly_when_one_limit_is_idle(
    shorter: tuple[int, int], longer: tuple[int, int]
) -> None:
    """Serve greedily in whole milliseconds: a limit binds when dropping it lets more through."""
    both = _greedy([shorter, longer])
    each_binds = both != _greedy([shorter]) and both != _greedy([longer])
    stack = [Limit(max=most, per=f"{per}ms") for most, per in (shorter, longer)]
    if each_binds:
        assert len(check_stack(stack)) == 2
    else:
        with pytest.raises(ConfigError):
            check_stack(stack)


def _greedy(limits: list[tuple[int, int]]) -> list[int]:
    claims: list[int] = []
    for now in range(40):
        while len(claims) < 400 and all(
            sum(now - per < at for at in claims) < most for most, per in limits
        ):
            claims.append(now)
    return claims
