"""The words of `docs/concepts.md` are those of the code, the scripts, the keys and the commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import faena
from faena.cli.catalogue import CATALOGUE
from faena.engine.keys import CATALOGUE as KEYS
from faena.engine.keys import CHANNELS

_PAGE = Path(__file__).parents[2] / "docs" / "concepts.md"
_SOURCE = Path(faena.__file__).parent

SERVING = {"values", "cli", "testing", "contrib"}
"""Folders that serve every capability and have no word of their own."""

PLAIN = {
    "a state or a step of a job that the page on states explains": """
        blocked cancel cancelled change clean completed delayed dead enqueue enqueued promote ready
        receive received remove renew running sent state waiting
    """,
    "an operation or a thing as any program has it": """
        about adaptive admit alert alerts answer arguments audit await body budgets bytes
        call check clock conf configure cost costs count database declare delete divided done due
        duplicate ends errors expired expires explain fields finish forget forgotten graph
        hour idle index info keep key keys known line link listpack logs look lot lots message
        messages metadata minute minutes names note notify now obliterate open order others
        outcomes override overview pace packed page paging panic period permit place presence
        rate read recipients record report reserved results retained retention run safe samples scan
        score search session settings sliding spend spenders spending spent stats stop stream
        streams sweep table throttled time totals tries try unique upkeep view views walk warned
    """,
    "what is done with features, their checks and alerts": """
        begin evaluate history notices set silence silences states switch
    """,
    "an adjective of things that are explained": """
        troubled
    """,
    "a word between others": """
        all and at by closed end enter fair for from in join leave once one other out over pass take
        valid
    """,
}
"""Words of names that mean here what they mean everywhere, by why they are not on the page."""


def folders() -> set[str]:
    return {one.parent.name for one in _SOURCE.glob("*/__init__.py")} - SERVING


def commands() -> set[str]:
    return set(CATALOGUE)


@pytest.mark.parametrize(("column", "found"), [("code", folders()), ("commands", commands())])
def test_every_name_belongs_to_a_word_of_the_list(column: str, found: set[str]) -> None:
    named = {name for row in rows("The words") for name in re.findall(r"`([^`]+)`", row[column])}
    assert named == found


def test_words_are_few_and_each_is_explained_once() -> None:
    words = [row["word"] for row in rows("The words")]
    inner = [word for row in rows("Words inside the broker") for word in row["word"].split(", ")]
    assert len(words) <= 64  # those of PostgreSQL, telemetry and the dashboard included
    assert len(words + inner) == len({*words, *inner})
    assert all(row["meaning"] for title in _TITLES for row in rows(title))


@pytest.mark.parametrize("what", ["scripts", "keys"])
def test_names_of_scripts_and_keys_are_made_of_words_that_are_explained(what: str) -> None:
    listed = set(forms(explained())) | {word for words in PLAIN.values() for word in words.split()}
    private = {
        word: name
        for name in NAMES[what]
        for word in re.findall("[a-z]+", name)
        if word not in listed
    }
    assert not private, f"explain in docs/concepts.md, or use a word of it (word: name): {private}"


def test_folders_of_scripts_and_their_parts_are_capabilities() -> None:
    lua = _SOURCE / "engine" / "lua"
    found = {path.parent.name for path in lua.rglob("*.lua")} - {"lib"}
    modules = {path.stem for path in _SOURCE.glob("*.py")}
    assert found <= folders() | modules | set(forms(explained()))


def test_a_word_that_no_name_has_is_not_listed_as_plain() -> None:
    used = {
        word for names in NAMES.values() for name in names for word in re.findall("[a-z]+", name)
    }
    assert {word for words in PLAIN.values() for word in words.split()} <= used


NAMES = {
    "scripts": sorted(path.stem for path in (_SOURCE / "engine" / "lua").rglob("*.lua")),
    "keys": [*(key.name for key in KEYS), *(name for name, _ in CHANNELS)],
}
_TITLES = ("The words", "Words inside the broker")


def explained() -> Iterator[str]:
    """Each single word of both tables."""
    return (
        word
        for title in _TITLES
        for row in rows(title)
        for word in re.findall("[a-z]+", row["word"])
    )


def forms(words: Iterable[str]) -> Iterator[str]:
    """As names use them: claims, parked, marked, settles, redriver, relocator."""
    for word in words:
        yield from (word, f"{word}s", f"{word}d", f"{word}ed", f"{word}r", f"{word}ing")
        yield from (f"{word[:-1]}ing", re.sub("ion$", "or", word))


def rows(title: str) -> list[dict[str, str]]:
    _, _, text = _PAGE.read_text("utf-8").partition(f"## {title}\n")
    lines = re.findall(r"^\| (.*) \|$", text.partition("\n## ")[0], re.MULTILINE)
    heads, *found = ([cell.strip() for cell in line.split(" | ")] for line in lines)
    return [dict(zip(heads, cells, strict=True)) for cells in found]
