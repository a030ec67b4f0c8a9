"""A request for erasure as operators see it."""

from __future__ import annotations

from datetime import datetime

from faena.pg.erasure.place import Kept
from faena.pg.erasure.record import State
from faena.values.view import View


class ErasureView(View, frozen=True, kw_only=True):
    """One request: what was erased, what is kept and why."""

    id: str
    tenant: str
    by: str
    """Who made the request."""
    reason: str
    state: State
    """waiting, or done: then nothing is left but what is kept."""
    step: str
    """The place it is at."""
    erased: dict[str, int]
    """How much was erased in each place."""
    kept: tuple[Kept, ...]
    """What a law protects, until when."""
    problem: str | None
    """What is in its way now."""
    requested_at: datetime
    done_at: datetime | None


class ErasurePlan(View, frozen=True, kw_only=True):
    """What is held of a tenant."""

    also = ("total",)

    tenant: str
    found: dict[str, int]
    """What an erasure would delete in each place."""
    live: int
    """Jobs of `found` that wait or run."""
    kept: tuple[Kept, ...]

    @property
    def total(self) -> int:
        """Of all places."""
        return sum(self.found.values())
