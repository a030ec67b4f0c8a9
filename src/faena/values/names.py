"""Checks of names and ids, done once at the API: what passes is safe in keys, URLs and logs."""

from __future__ import annotations

import re
from typing import Any

from faena.errors import ArgumentError, ConfigError, shown

NAME = "[a-z0-9][a-z0-9._-]{0,63}"
LABEL_MAX = 128
WORDS_MAX = 128
REASON_MAX = 200

_NAME = re.compile(NAME)


def is_name(value: Any) -> bool:
    """Whether this is a valid name of a queue, a task, a pool or a schedule."""
    return _NAME.fullmatch(_plain(value)) is not None


def check_name(what: str, value: Any) -> str:
    """Return `value` if it is a valid name."""
    if is_name(value):
        return _plain(value)
    raise ConfigError(
        f"{what} must be 1 to 64 of a-z, 0-9, '.', '_', '-' and start with a letter or digit, "
        f"got {shown(value)}",
        field=what,
        value=value,
    )


def check_label(what: str, value: Any) -> str:
    """Return `value` if it is a valid tenant, key or job id: short, printable, without spaces."""
    text = _plain(value)
    if 0 < len(text) <= LABEL_MAX and _is_clean(text):
        return text
    raise ArgumentError(
        f"{what} must be 1 to {LABEL_MAX} printable characters without spaces, got {shown(value)}",
        field=what,
        value=value,
    )


def check_words(what: str, value: Any) -> str:
    """Return `value` if it is a valid error name or code: like a label, but with spaces."""
    text = _plain(value)
    if 0 < len(text) <= WORDS_MAX and text.isprintable():
        return text
    raise ConfigError(
        f"{what} must be 1 to {WORDS_MAX} printable characters, got {shown(value)}",
        field=what,
        value=value,
    )


def check_reason(value: Any) -> str:
    """Return `value` if it is a valid reason of a hold: one line, not blank."""
    text = _plain(value)
    if text.isprintable() and text.strip() and len(text) <= REASON_MAX:
        return text
    raise ConfigError(
        f"reason must be 1 to {REASON_MAX} printable characters, got {shown(value)}",
        field="reason",
        value=value,
    )


def as_words(text: str) -> str:
    """Any string in a form that `check_words` accepts: cut, with unprintable characters escaped."""
    signs = [
        sign if sign.isprintable() else sign.encode("unicode_escape").decode()
        for sign in text[:WORDS_MAX]
    ]
    return "".join(signs)[:WORDS_MAX]


def is_utf8(text: str) -> bool:
    """Whether a string can be encoded: one with an unpaired surrogate cannot."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _plain(value: Any) -> str:
    """A plain str of a str, such as a StrEnum member; empty for anything else."""
    return str.__str__(value) if isinstance(value, str) else ""


def _is_clean(text: str) -> bool:
    # An unpaired surrogate is not printable either, so what passes can be encoded as UTF-8.
    return text.isprintable() and " " not in text
