"""Texts as log lines may have them: encodable, of a bounded length, without control characters."""

from __future__ import annotations

import logging
import re
from typing import Final

LONGEST: Final = 16_384
"""Characters of a message or a traceback. The middle of a longer one is left out: its beginning
says what happened, its end where."""

LONGEST_FIELD: Final = 2_048

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""All but tab and newline: a terminal would obey them."""


def bounded(text: str, most: int = LONGEST) -> str:
    """A text that can be encoded, without its middle if it is too long."""
    if len(text) > most:
        left_out = len(text) - most
        text = f"{text[: most // 2]} … {left_out} characters … {text[-(most // 2) :]}"
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def message_of(record: logging.LogRecord) -> str:
    """The message of a record, whatever its arguments are."""
    try:
        return bounded(record.getMessage())
    except Exception:  # noqa: BLE001 - a user's arguments or their __str__ may do anything
        return bounded(f"{_written(record.msg)} (its arguments cannot be written)")


def shown(text: str) -> str:
    """For people: control characters escaped, and further lines indented, so that no text looks
    like a line of its own."""
    safe = _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)
    return safe.replace("\n", "\n    ")


def _written(given: object) -> str:
    return given if isinstance(given, str) else type(given).__name__
