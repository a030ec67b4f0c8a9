"""Where somebody is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID, uuid5

CHANNEL: Final = "campotech_tracking"
"""Of NOTIFY: organisations with new positions, with commas in between."""
OVERLAP: Final = timedelta(seconds=10)
"""Longer than a batch takes to commit: a reader looks back so far, and may see positions again."""
INTERVAL: Final = "30s"
"""Of viewers who poll."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a technician was at an instant."""

    organization: UUID
    technician: UUID
    latitude: float
    longitude: float
    accuracy: float | None = None
    """In metres."""
    recorded_at: datetime

    @property
    def id(self) -> UUID:
        """The same for the same report: a device may send it twice."""
        return uuid5(self.technician, self.recorded_at.isoformat())


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Who is watched: a technician, whoever does a job, or the whole organisation."""

    organization: UUID
    technician: UUID | None = None
    job: UUID | None = None
