"""How jobs of each task ended, out of the rows of the history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from faena.engine.calls.history import STATES
from faena.pg.history.search import Search
from faena.pg.history.view import Spread, TaskStatistics
from faena.pg.postgres import Connection

_DECISIONS: Final = ("discarded", "resolved")
"""What is decided about a dead job is no end of its own."""
_ENDS: Final = tuple(state for state in STATES if state not in _DECISIONS)
_COUNTS: Final = ", ".join(f"count(*) FILTER (WHERE h.state = '{state}')" for state in _ENDS)


def _spread(name: str) -> str:
    parts = "ARRAY[0.5, 0.95, 0.99]::float8[]"
    return f"avg({name})::float8, percentile_cont({parts}) WITHIN GROUP (ORDER BY {name})"


async def statistics(
    connection: Connection, search: Search, window: timedelta | None
) -> list[TaskStatistics]:
    """One for each task and window, by queue, task and time."""
    words, values = search.conditions()
    start, before = "NULL::timestamptz", list[Any]()
    if window is not None:
        start, before = "date_bin(%s, h.finished_at, timestamptz 'epoch')", [window]
    where = " AND ".join([*words, "h.state <> ALL (%s)"])
    found = await connection.execute(
        f"SELECT h.queue, h.task, {start} AS start, {_spread('h.wait_us')}, {_spread('h.run_us')}, "  # noqa: S608 - constants and parameters
        f"{_COUNTS} FROM faena.history h WHERE {where} "
        f"GROUP BY h.queue, h.task, start ORDER BY h.queue, h.task, start".encode(),
        [*before, *values, [*_DECISIONS]],
    )
    return [_read(row) for row in await found.fetchall()]


def _read(row: tuple[Any, ...]) -> TaskStatistics:
    queue, task, start, wait, waits, run, runs, *numbers = row
    states = {state: number for state, number in zip(_ENDS, numbers, strict=True) if number}
    dead, ran = states.get("dead", 0), states.get("dead", 0) + states.get("completed", 0)
    return TaskStatistics(
        queue=queue,
        task=task,
        start=start,
        number=sum(numbers),
        states=states,
        error_rate=dead / ran if ran else None,
        wait=_seconds(wait, waits),
        run=_seconds(run, runs),
    )


def _seconds(mean: float | None, parts: Sequence[float | None] | None) -> Spread:
    p50, p95, p99 = (None if one is None else one / 1e6 for one in parts or (None, None, None))
    return Spread(mean=None if mean is None else mean / 1e6, p50=p50, p95=p95, p99=p99)
