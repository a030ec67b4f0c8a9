"""Whole and real numbers within bounds."""

from __future__ import annotations

from typing import Any

import pytest

from faena.errors import ConfigError
from faena.values.numbers import check_real, check_whole


@pytest.mark.parametrize("value", [1, 5, 10])
def test_a_whole_number_within_its_bounds_passes(value: int) -> None:
    assert check_whole("concurrency", value, least=1, most=10) == value


@pytest.mark.parametrize("value", [0, 11, -1, 5.0, "5", None, True, [5]])
def test_anything_else_is_refused_with_the_bounds(value: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        check_whole("concurrency", value, least=1, most=10)
    expected = f"concurrency must be a whole number from 1 to 10, got {value!r}"
    assert str(refused.value) == expected
    assert (refused.value.field, refused.value.value) == ("concurrency", value)


@pytest.mark.parametrize("value", [0, 0.2, 1, 1.0])
def test_a_real_number_within_its_bounds_passes(value: float) -> None:
    assert check_real("jitter", value, least=0, most=1) == value


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf"), "0.2", None, True])
def test_a_real_number_must_be_finite_and_within_its_bounds(value: Any) -> None:
    with pytest.raises(ConfigError, match="jitter must be a number from 0 to 1, got"):
        check_real("jitter", value, least=0, most=1)
