"""What the pages say, in English, Spanish and Portuguese.

The English sentence is the key: pages read as they look, and what has no translation is shown in
English. A test finds sentences without one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from faena.web.words.es import ES
from faena.web.words.pt import PT

LANGUAGES: Final[Mapping[str, str]] = MappingProxyType(
    {"en": "English", "es": "Español", "pt": "Português"}
)
WORDS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({"en": {}, "es": ES, "pt": PT})
_PLURAL: Final = re.compile(r"\{(\w+)\|([^|{}]*)\|([^|{}]*)\}")
"""`{n|job|jobs}`: the first word for one, the second for all other numbers."""


class Speaker:
    """Says things in one language."""

    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else "en"
        self._words = WORDS[self.language]

    def __call__(self, sentence: str, /, **values: object) -> str:
        """The sentence, with its values: `t("{jobs} {n|job|jobs} wait", n=2, jobs="2")`."""
        text = self._words.get(sentence, sentence)
        if not values:
            return text
        text = _PLURAL.sub(lambda found: found[2 if values[found[1]] == 1 else 3], text)
        return text.format_map({name: str(value) for name, value in values.items()})


def language_of(given: str | None, cookie: str | None, accepted: str) -> str:
    """The first of these that is ours: one that was chosen, then what the browser prefers."""
    for one in (given, cookie):
        if one is not None and one in LANGUAGES:
            return one
    ranked: list[tuple[float, str]] = []
    for part in accepted[:500].split(","):
        tag, _, weight = part.strip().partition(";q=")
        try:
            ranked.append((-float(weight or 1), tag[:2].lower()))
        except ValueError:
            continue
    ranked.sort(key=lambda one: one[0])
    return next((tag for _, tag in ranked if tag in LANGUAGES), "en")
