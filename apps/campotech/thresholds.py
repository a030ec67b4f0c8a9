"""When somebody is told about a queue: its depth, waits, errors and stalled jobs."""

from __future__ import annotations

from typing import Final, NamedTuple


class Level(NamedTuple):
    """Two values of one measure, the second one worse."""

    warning: float
    critical: float


class Thresholds(NamedTuple):
    """Those of one queue."""

    depth: Level = Level(100, 300)
    """Jobs that wait."""
    wait_ms: Level = Level(30_000, 120_000)
    """How long a job waits until it starts."""
    error_percent: Level = Level(5, 15)
    """Attempts that fail."""
    stalled_per_hour: Level = Level(5, 20)
    """Jobs whose worker was lost."""


DEFAULT: Final = Thresholds()
OF: Final[dict[str, Thresholds]] = {
    "afip.invoice": Thresholds(depth=Level(50, 100), wait_ms=Level(60_000, 300_000)),
    "payment.webhook": Thresholds(depth=Level(100, 500), wait_ms=Level(5_000, 30_000)),
    "whatsapp.outbound": Thresholds(depth=Level(200, 500), wait_ms=Level(10_000, 60_000)),
    "voice.transcription": Thresholds(depth=Level(50, 100)),
}


def thresholds_of(queue: str) -> Thresholds:
    """Its own, else those of all."""
    return OF.get(queue, DEFAULT)
