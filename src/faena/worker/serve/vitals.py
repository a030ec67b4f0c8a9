"""What a worker process tells about itself when it is asked."""

from __future__ import annotations

import msgspec


class Vitals(msgspec.Struct, frozen=True, kw_only=True):
    """One worker process at one instant."""

    name: str
    """As in leases and logs."""
    is_stopping: bool
    running: int
    """Jobs."""
    slots: int
    """Jobs that may run at a time."""
    queues: tuple[str, ...]
    latency_ms: float | None
    """The round trip of a script; None if the broker did not run it in time."""
    broker: str | None = None
    """Why it did not."""
    stalled: tuple[str, ...] = ()
    """Why queues are not served as they should be: a sentence for each."""
    servers: dict[str, str | None] = {}
    """Other servers that the app uses, such as `database`: why one does not answer, or None."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker process has made for an answer."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
