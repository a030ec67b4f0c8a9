"""Every sentence of the pages is there in each language, with the same values."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

import faena.web
from faena.web.words import WORDS, Speaker, language_of

_FOLDER: Final = Path(faena.web.__file__).parent
_SAID: Final = re.compile(
    r"""\b(?:t|say|_say|said)\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+|(?:'(?:[^'\\]|\\.)*'\s*)+)"""
)
_VALUE: Final = re.compile(r"\{(\w+)(?:\|[^|{}]*\|[^|{}]*)?\}")


def _sentences() -> dict[str, str]:
    """What templates and pages say → where."""
    found: dict[str, str] = {}
    for path in sorted([*_FOLDER.rglob("*.html"), *_FOLDER.rglob("*.py")]):
        if "words" not in path.parts:
            for said in _SAID.findall(path.read_text("utf-8")):
                found.setdefault(ast.literal_eval(f"({said})"), path.name)
    return found


@pytest.mark.parametrize("language", ["es", "pt"])
def test_every_sentence_is_translated(language: str) -> None:
    missing = [
        f"{where}: {one}" for one, where in _sentences().items() if one not in WORDS[language]
    ]
    assert not missing


@pytest.mark.parametrize("language", ["es", "pt"])
def test_translations_have_the_values_of_the_sentence(language: str) -> None:
    wrong = [
        one
        for one, other in WORDS[language].items()
        if set(_VALUE.findall(one)) != set(_VALUE.findall(other))
    ]
    assert not wrong


def test_sentences_are_found() -> None:
    found = _sentences()
    assert len(found) > 100
    assert found["Skip to content"] == "base.html"


def test_one_and_many_have_words_of_their_own() -> None:
    say = Speaker("es")
    assert say("{n} {n|queue|queues}", n=1) == "1 cola"
    assert say("{n} {n|queue|queues}", n=2) == "2 colas"


def test_what_has_no_translation_is_said_in_english() -> None:
    assert Speaker("pt")("A sentence of {who}", who="nobody") == "A sentence of nobody"


@pytest.mark.parametrize(
    ("given", "cookie", "accepted", "language"),
    [
        ("es", "pt", "en", "es"),
        (None, "pt", "es", "pt"),
        ("xx", None, "de, pt;q=0.8, es;q=0.9", "es"),
        (None, None, "es-AR,es;q=0.9,en;q=0.1", "es"),
        (None, None, "fr;q=nonsense", "en"),
        (None, None, "", "en"),
    ],
)
def test_the_reader_is_spoken_to_in_a_language_of_theirs(
    given: str | None, cookie: str | None, accepted: str, language: str
) -> None:
    assert language_of(given, cookie, accepted) == language
