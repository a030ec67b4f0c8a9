"""A notice as a person or a program reads it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from faena.engine.calls.alerts import Change, Notice
from faena.values.duration import describe

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WORDS: Final = {
    "firing": "fires",
    "escalated": "is critical now",
    "eased": "is a warning now",
    "resolved": "is resolved",
    "repeated": "still fires",
}
_MOST_NAMED: Final = 3
"""Alerts that a title names; the others are counted."""


def title(app: str, notice: Notice) -> str:
    """One line."""
    named = [_headline(one) for one in notice.changes]
    more = len(named) - _MOST_NAMED
    tail = f" and {more} more" if more > 0 else ""
    return f"[{app}] {notice.severity}: {', '.join(named[:_MOST_NAMED])}{tail}"


def text(app: str, notice: Notice) -> str:
    """The title, and a line for each alert."""
    lines = [f"- {_headline(one)}{_line(one, notice)}" for one in notice.changes]
    return "\n".join([title(app, notice), "", *lines])


def document(app: str, name: str, notice: Notice) -> dict[str, Any]:
    """For programs."""
    return {
        "id": name,
        "app": app,
        "severity": notice.severity,
        "at": iso(notice.at),
        "title": title(app, notice),
        "alerts": [
            {
                "change": one.kind,
                "rule": one.rule,
                "subject": one.subject,
                "severity": one.severity,
                "since": iso(one.since),
                "text": one.text,
            }
            for one in notice.changes
        ],
    }


def iso(us: int) -> str:
    """An instant of the server."""
    return (_EPOCH + timedelta(microseconds=us)).isoformat().replace("+00:00", "Z")


def _headline(change: Change) -> str:
    return f"{change.rule} of {change.subject} {_WORDS.get(change.kind, change.kind)}"


def _line(change: Change, notice: Notice) -> str:
    """The value, and how long the alert lasts."""
    lasting_us = round((notice.at - change.since) / 1e6) * 1_000_000
    lasting = f"; for {describe(lasting_us)}" if change.since and lasting_us > 0 else ""
    return f": {change.text}{lasting}"
