"""The check that keeps files, functions and classes readable."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests._support import sizes

SOURCE, TEST, LUA = Path("src/x.py"), Path("tests/test_x.py"), Path("src/lua/x.lua")
LIB = Path("src/lua/lib/x.lua")


def lines(number: int) -> str:
    return "x = 1\n" * number


def function(number: int, waiver: str = "") -> str:
    return f"def f():{waiver}\n" + "    x = 1\n" * (number - 1)


def kind(number: int) -> str:
    return "class C:\n" + "    x = 1\n" * (number - 1)


def lua_function(number: int, waiver: str = "") -> str:
    return f"local function f(){waiver}\n" + "  local x = 1\n" * (number - 2) + "end\n"


@pytest.mark.parametrize(
    ("path", "largest", "too_large"),
    [
        (SOURCE, lines(400), lines(401)),
        (TEST, lines(500), lines(501)),
        (SOURCE, function(40), function(41)),
        (SOURCE, kind(300), kind(301)),
        (LUA, "\n" * 120, "\n" * 121),
        (LIB, lua_function(60), lua_function(61)),
    ],
)
def test_one_line_too_many_is_found(path: Path, largest: str, too_large: str) -> None:
    measure = sizes.measure_lua if path.suffix == ".lua" else sizes.measure_python
    assert list(measure(path, largest)) == []
    assert len(list(measure(path, too_large))) == 1


def test_a_library_of_lua_may_be_longer_than_a_script() -> None:
    assert list(sizes.measure_lua(LIB, "\n" * 200)) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (SOURCE, "# size: a table\n" + lines(500)),
        (SOURCE, function(60, waiver="  # size: one long match")),
        (LIB, lua_function(90, waiver=" -- size: a dispatch")),
    ],
)
def test_a_reason_waives_the_size(path: Path, text: str) -> None:
    measure = sizes.measure_lua if path.suffix == ".lua" else sizes.measure_python
    assert list(measure(path, text)) == []


def test_a_waiver_without_a_reason_is_none() -> None:
    assert len(list(sizes.measure_python(SOURCE, function(60, waiver="  # size: ")))) == 1


def test_an_offender_says_where_and_how_long() -> None:
    (found,) = sizes.measure_python(SOURCE, function(41))
    assert str(found) == "src/x.py:1 f has 41 lines, look again at 40"
