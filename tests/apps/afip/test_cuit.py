"""A CUIT is eleven digits, the last of which follows from the others."""

from __future__ import annotations

import pytest
from apps.providers.afip import Invalid, format_cuit, is_cuit, parse_cuit
from apps.providers.afip.cuit import check_digit
from apps.sandbox.afip.registry import has_check_digit
from hypothesis import given
from hypothesis import strategies as st

PREFIXES = st.sampled_from(["20", "23", "24", "27", "30", "33", "34"])
MIDDLES = st.integers(0, 99_999_999).map("{:08d}".format)


@pytest.mark.parametrize(
    "text", ["33-69345023-9", "33693450239", "30-50001091-2", "20-11111111-2", " 27000000006 "]
)
def test_real_ones_are_taken_with_and_without_hyphens(text: str) -> None:
    assert is_cuit(text)
    assert parse_cuit(text) == text.strip().replace("-", "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "33-69345023-8",
        "3369345023",
        "336934502390",
        "00-00000000-0",
        "33 69345023 9",
        "33_69345023_9",
        "٣٣٦٩٣٤٥٠٢٣٩",
        "33-69345023-9\n20-11111111-2",
        "CUIT 33693450239",
    ],
)
def test_what_is_none_is_refused(text: str) -> None:
    assert not is_cuit(text)
    with pytest.raises(Invalid, match="cuit must"):
        parse_cuit(text)


def test_it_is_shown_as_people_write_it() -> None:
    assert format_cuit("33693450239") == "33-69345023-9"


@given(PREFIXES, MIDDLES)
def test_at_most_one_last_digit_is_right(prefix: str, middle: str) -> None:
    right = [digit for digit in range(10) if is_cuit(f"{prefix}{middle}{digit}")]
    assert right == ([] if check_digit(prefix + middle) is None else right[:1])


@given(PREFIXES, MIDDLES, st.integers(2, 10), st.integers(1, 9))
def test_one_wrong_digit_is_found(prefix: str, middle: str, at: int, by: int) -> None:
    digit = check_digit(prefix + middle)
    if digit is None:
        return
    right = f"{prefix}{middle}{digit}"
    wrong = f"{right[:at]}{(int(right[at]) + by) % 10}{right[at + 1 :]}"
    assert is_cuit(right)
    assert not is_cuit(wrong)


@given(PREFIXES, MIDDLES, st.integers(0, 9))
def test_the_office_agrees_about_check_digits(prefix: str, middle: str, last: int) -> None:
    text = f"{prefix}{middle}{last}"
    assert has_check_digit(int(text)) == is_cuit(text)
