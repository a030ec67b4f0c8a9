"""When somebody is told about a queue: its depth, waits, errors and stalled jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, NamedTuple

import faena
from apps.campotech.pace import Pace

_SHORTEST_MS: Final = 1_000.0


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


def declared(queue: str, pace: Pace) -> faena.Thresholds:
    """The same, as Faena judges them."""
    known = thresholds_of(queue)
    return faena.Thresholds(
        depth=known.depth,
        wait=waits(known.wait_ms, pace),
        error_rate=known.error_percent,
        stalled=known.stalled_per_hour,
    )


def waits(level: Level, pace: Pace) -> tuple[timedelta, timedelta]:
    """Shorter at another speed, but a second at least: computers do not work faster."""
    share = max(1 / pace.speed, _SHORTEST_MS / level.warning)
    return (
        timedelta(milliseconds=level.warning * share),
        timedelta(milliseconds=level.critical * share),
    )
