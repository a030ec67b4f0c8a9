"""The words of `docs/concepts.md` are those of the code and of the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import faena
from faena.cli.catalogue import CATALOGUE

_PAGE = Path(__file__).parents[2] / "docs" / "concepts.md"
_SOURCE = Path(faena.__file__).parent

SERVING = {"values", "cli", "testing", "contrib"}
"""Folders that serve every capability and have no word of their own."""


def folders() -> set[str]:
    return {one.parent.name for one in _SOURCE.glob("*/__init__.py")} - SERVING


def commands() -> set[str]:
    return set(CATALOGUE)


@pytest.mark.parametrize(("column", "found"), [("code", folders()), ("commands", commands())])
def test_every_name_belongs_to_a_word_of_the_list(column: str, found: set[str]) -> None:
    assert {name for row in rows() for name in re.findall(r"`([^`]+)`", row[column])} == found


def test_words_are_few_and_each_is_explained_once() -> None:
    words = [row["word"] for row in rows()]
    assert len(words) == len(set(words)) <= 40
    assert all(row["meaning"] for row in rows())


def rows() -> list[dict[str, str]]:
    _, _, text = _PAGE.read_text().partition("## The words")
    lines = re.findall(r"^\| (.*) \|$", text.partition("\n## ")[0], re.MULTILINE)
    heads, *found = ([cell.strip() for cell in line.split(" | ")] for line in lines)
    return [dict(zip(heads, cells, strict=True)) for cells in found]
