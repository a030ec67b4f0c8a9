"""Instants and numbers, for people."""

from __future__ import annotations

from datetime import UTC, datetime

_LATEST_US = 253_402_300_799_000_000
"""The end of the year 9999."""


def instant(us: int) -> str:
    """A server's instant for people."""
    shown = datetime.fromtimestamp(max(0, min(us, _LATEST_US)) / 1e6, UTC)
    return shown.strftime("%Y-%m-%d %H:%M:%S UTC")


def times(number: int) -> str:
    """How often something happened."""
    return "once" if number == 1 else f"{number} times"


def number(count: int, what: str) -> str:
    """So many of something."""
    return f"{count} {what}{'s' * (count != 1)}"
