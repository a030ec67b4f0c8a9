"""Cursors: read back where they belong, refused everywhere else."""

from __future__ import annotations

from typing import Any

import pytest

from faena.engine.calls.deadletter import Position
from faena.errors import ConfigError
from faena.sharding.consistent_read import is_behind
from faena.values.cursor import read_cursor, write_cursor

ABOUT = ("mail", "dead", True)
CURSOR = write_cursor(ABOUT, "1700000000000000", "job-1", (None, 5))


def test_a_cursor_names_its_place() -> None:
    read = read_cursor(CURSOR, ABOUT, "a page")
    assert (read.score, read.id, read.bounds) == ("1700000000000000", "job-1", (None, 5))


@pytest.mark.parametrize("about", [("mail", "dead", False), ("post", "dead", True), None])
def test_a_cursor_of_another_list_is_refused(about: object) -> None:
    with pytest.raises(ConfigError, match="cursor must come from a page of mail, got") as caught:
        read_cursor(CURSOR, about, "a page of mail")
    assert (caught.value.field, caught.value.value) == ("cursor", CURSOR)


@pytest.mark.parametrize(
    "cursor",
    ["", "zz", "ready/17/a", 17, b"x", "é", CURSOR[:-3], CURSOR + "!", "!" + CURSOR, ["a"],
     *(write_cursor(ABOUT, score, "a") for score in ("nan", "inf", "soon"))],
)  # fmt: skip
def test_what_is_no_cursor_is_refused(cursor: Any) -> None:
    with pytest.raises(ConfigError, match="leave it out for the first page"):
        read_cursor(cursor, ABOUT, "a page")


@pytest.mark.parametrize("is_reverse", [False, True])
def test_no_place_is_behind_itself_and_every_one_is_behind_none(is_reverse: bool) -> None:
    here, later = Position("5", "a"), Position("5", "b")
    assert not is_behind(here, here, is_reverse=is_reverse)
    assert is_behind(later, here, is_reverse=is_reverse) is not is_reverse
    assert is_behind(here, later, is_reverse=is_reverse) is is_reverse
    assert is_behind(here, Position(), is_reverse=is_reverse)
