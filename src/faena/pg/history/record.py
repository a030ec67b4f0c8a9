"""An end of a job as a row: what PostgreSQL cannot hold is replaced, and nothing fails over it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from faena.engine.calls.history import Finishing

_LONGEST_MESSAGE: Final = 8_000
_LONGEST_TEXT: Final = 500
_LARGEST: Final = 2_147_483_647
_NUL: Final = "\0"
_UNKNOWN: Final = "\ufffd"


def row_of(one: Finishing) -> dict[str, Any]:
    """The columns by name; instants and durations in microseconds, payload and result as texts."""
    enqueued_at = _before(one.enqueued_at, one.finished_at)
    started_at = _before(one.started_at, one.finished_at)
    return {
        "id": _text(one.id),
        "queue": one.queue,
        "finished_at": one.finished_at,
        "state": one.state,
        "task": _text(one.task),
        "tenant": _text(one.tenant),
        "key": _text(one.key),
        "priority": _whole(one.priority),
        "attempts": _whole(one.attempts),
        "losses": _whole(one.losses),
        "enqueued_at": enqueued_at,
        "started_at": started_at,
        "wait_us": _between(enqueued_at, started_at),
        "run_us": _between(started_at, one.finished_at),
        "worker": _text(one.worker),
        "error": _text(one.error),
        "code": _text(one.code),
        "message": _text(one.message, _LONGEST_MESSAGE),
        "origin": _text(one.origin),
        "retry_of": _text(one.retry_of),
        "flow": _text(one.flow),
        "group": _text(one.group),
        "payload": _json(one.payload),
        "result": _json(one.result),
    }


def without_json(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same without what only `jsonb` may refuse, such as a number that is too large for it."""
    return {**row, "payload": None, "result": None}


def _text(text: str | None, most: int = _LONGEST_TEXT) -> str | None:
    """PostgreSQL has no NUL in texts, and no halves of surrogate pairs."""
    if text is None:
        return None
    whole = text[:most].replace(_NUL, _UNKNOWN)
    return whole.encode("utf-8", "replace").decode()


def _whole(number: int) -> int:
    return max(-_LARGEST, min(number, _LARGEST))


def _before(at: int | None, finished_at: int) -> int | None:
    """An instant of a job's life; what another program made of it is unknown."""
    return at if at is not None and 0 <= at <= finished_at else None


def _between(since: int | None, until: int | None) -> int | None:
    """A duration; clocks that were set back make none."""
    return None if since is None or until is None else max(0, until - since)


def _json(encoded: bytes | None) -> str | None:
    """JSON that `jsonb` takes; None if it is no JSON."""
    if encoded is None:
        return None
    text = encoded.decode("utf-8", "replace").replace(_NUL, _UNKNOWN)
    if "\\u" not in text:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    cleaned = json.dumps(value, ensure_ascii=False).replace("\\u0000", _UNKNOWN)
    return cleaned.encode("utf-8", "replace").decode()
