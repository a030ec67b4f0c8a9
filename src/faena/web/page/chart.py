"""Charts over a window: how long jobs waited and ran, and how many ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from faena.queue import Queue
from faena.telemetry.statistics import QueueStatistics, TaskStatistics
from faena.web.answer import Refusal
from faena.web.curve import line, top
from faena.web.figure import Figures

WINDOWS: Final[Mapping[str, tuple[str, str]]] = {
    "15m": ("15 min", "1m"),
    "1h": ("1 h", "1m"),
    "6h": ("6 h", "5m"),
    "24h": ("24 h", "15m"),
    "7d": ("7 d", "2h"),
    "30d": ("30 d", "6h"),
}
"""Window → its name, and the step of its charts."""
USUAL: Final = "1h"
_MARKS: Final = 5
_LEAST_US: Final = 1_000.0


class Chart(NamedTuple):
    """One chart: its axes as words, its lines as paths."""

    title: str
    says: str
    """What it shows, for those who do not see it."""
    y: Sequence[str]
    x: Sequence[str]
    lines: Sequence[tuple[str, str]]
    """Class and path of each."""


def window_of(given: str | None) -> str:
    """The window that a page is asked for."""
    window = given or USUAL
    if window not in WINDOWS:
        raise Refusal(422, "invalid", f"window must be one of {', '.join(WINDOWS)}")
    return window


async def charts(queue: Queue, window: str, write: Figures) -> list[Chart]:
    """The charts of a queue."""
    series = await queue.series(window, step=WINDOWS[window][1])
    points, tasks = series.points, [point.together() for point in series.points]
    minutes = series.step_us / 60_000_000
    marks = _marks(points, is_long=window in {"7d", "30d"})

    def timing(title: str, of: Callable[[TaskStatistics], tuple[float | None, ...]]) -> Chart:
        lines = [*zip(*map(of, tasks), strict=True)] if tasks else []
        most = top((value for one in lines for value in one), _LEAST_US)
        last = next((one for one in reversed(lines[1] if lines else ()) if one is not None), None)
        return Chart(
            title=title,
            says=f"{title}: p95 {write.duration(last)}",
            y=[write.duration(most), write.duration(most / 2), "0"],
            x=marks,
            lines=[(f"p{p}", line(one, most)) for p, one in zip((50, 95, 99), lines, strict=False)],
        )

    done = [point.counters.get("completed", 0) / minutes for point in points]
    failed = [_failed(point) / minutes for point in points]
    most = top([*done, *failed], 1.0)
    return [
        timing("Wait", lambda one: (one.wait.p50_us, one.wait.p95_us, one.wait.p99_us)),
        timing("Run", lambda one: (one.run.p50_us, one.run.p95_us, one.run.p99_us)),
        Chart(
            title="Ended a minute",
            says=f"{write.rough(sum(done) * minutes)}",
            y=[write.rough(most), write.rough(most / 2), "0"],
            x=marks,
            lines=[("completed", line(done, most)), ("failed", line(failed, most))],
        ),
    ]


def _failed(point: QueueStatistics) -> int:
    return point.counters.get("retried", 0) + point.counters.get("dead", 0)


def _marks(points: Sequence[QueueStatistics], *, is_long: bool) -> list[str]:
    if not points:
        return []
    first, last = points[0].since, points[-1].until
    form = "%d.%m." if is_long else "%H:%M"
    return [
        datetime.fromtimestamp((first + (last - first) * at / (_MARKS - 1)) / 1e6, UTC).strftime(
            form
        )
        for at in range(_MARKS)
    ]
