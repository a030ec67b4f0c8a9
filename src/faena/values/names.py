"""Names and ids, checked once at the edge: whatever passes here is safe in keys, URLs and logs."""

from __future__ import annotations

import re
from typing import Any

from faena.errors import ArgumentError, ConfigError

NAME = "[a-z0-9][a-z0-9._-]{0,63}"
LABEL_MAX = 128
WORDS_MAX = 128
REASON_MAX = 200

_NAME = re.compile(NAME)


def check_name(what: str, value: Any) -> str:
    """Return `value` when it is a valid queue, task or pool name."""
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise ConfigError(
        f"{what} must be 1 to 64 of a-z, 0-9, '.', '_', '-' and start with a letter or digit, "
        f"got {value!r}",
        field=what,
        value=value,
    )


def check_label(what: str, value: Any) -> str:
    """Return `value` when it may stand as a tenant, key or job id: short, printable, not blank."""
    if isinstance(value, str) and 0 < len(value) <= LABEL_MAX and _is_clean(value):
        return value
    raise ArgumentError(
        f"{what} must be 1 to {LABEL_MAX} printable characters without spaces, got {value!r}",
        field=what,
        value=value,
    )


def check_words(what: str, value: Any) -> str:
    """Return `value` when it may stand as an error's name or code: a label that may have spaces."""
    if isinstance(value, str) and 0 < len(value) <= WORDS_MAX and value.isprintable():
        return value
    raise ConfigError(
        f"{what} must be 1 to {WORDS_MAX} printable characters, got {value!r}",
        field=what,
        value=value,
    )


def check_reason(value: Any) -> str:
    """Return `value` when it may stand as the reason of a hold: a line, not blank."""
    is_text = isinstance(value, str) and value.isprintable() and bool(value.strip())
    if is_text and len(value) <= REASON_MAX:
        return value
    raise ConfigError(
        f"reason must be 1 to {REASON_MAX} printable characters, got {value!r}",
        field="reason",
        value=value,
    )


def as_words(text: str) -> str:
    """A text of somebody's so that it passes as words: cut, with escapes for what is no sign."""
    signs = [
        sign if sign.isprintable() else sign.encode("unicode_escape").decode()
        for sign in text[:WORDS_MAX]
    ]
    return "".join(signs)[:WORDS_MAX]


def _is_clean(text: str) -> bool:
    # An unpaired surrogate is "not printable" too, so whatever passes can be encoded as UTF-8.
    return text.isprintable() and " " not in text
