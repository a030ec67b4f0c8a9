"""Payloads as a page shows them: fields that sound secret are veiled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

VEIL: Final = "veiled"
_SECRET: Final = re.compile(
    r"pass(word|wd|phrase)?$|secret|token|api_?key|authorization|cookie|credential|private_?key|"
    r"^(cvv|cvc|pin|iban|card_?number|cbu)$",
    re.IGNORECASE,
)
_DEEPEST: Final = 30


def is_secret(field: str) -> bool:
    """Whether a field, or one that it is in, is veiled: `card.number`."""
    return any(_SECRET.search(name) for name in field.split("."))


def veiled(value: Any, depth: int = 0) -> Any:
    """The value, with what secret fields hold replaced by a word."""
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {
            str(name): VEIL if _SECRET.search(str(name)) else veiled(one, depth + 1)
            for name, one in value.items()
        }
    if isinstance(value, list):
        return [veiled(one, depth + 1) for one in value]
    return value
