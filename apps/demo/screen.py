"""What the viewer sees: tables that change, or plain lines where there is no terminal."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import Final, Self

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from apps.demo.told import Alarm, PoolNeed, Told
from apps.demo.verdict import Verdict
from apps.demo.watch import Row

_LINES: Final = 12
_PLAIN_EVERY_S: Final = 5.0
_RATE_OVER_S: Final = 2.0
_STATES: Final = ("ready", "delayed", "running", "dead")


class Screen:
    """Shows queues and tells events; on standard error, if the figures are for a program."""

    def __init__(self, *, is_for_program: bool = False) -> None:
        self._console = Console(highlight=False, stderr=is_for_program)
        self._is_for_program = is_for_program
        self._began, self._clock = time.monotonic(), "--:--"
        self.began_at = time.time()
        """The instant from which seconds are counted."""
        self._events: deque[str] = deque(maxlen=_LINES)
        self._rows: list[Row] = []
        self._rates: dict[str, float] = {}
        self._before: dict[str, int] = {}
        self._before_at = self._plain_at = 0.0
        self._live = (
            Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None
        )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def set_clock(self, minutes: float) -> None:
        """The time of the day that is played."""
        self._clock = f"{int(minutes) // 60:02}:{int(minutes) % 60:02}"

    def say(self, event: str) -> None:
        """One line about something that happened."""
        line = f"{time.monotonic() - self._began:6.1f} s  {self._clock}  {event}"
        self._events.append(line)
        if self._live is None:
            self._console.print(line, soft_wrap=True, markup=False)
        else:
            self._draw(self._live)

    def show(self, rows: list[Row]) -> None:
        """The queues as they are now."""
        self._rows = rows
        self._measure(rows)
        if self._live is not None:
            self._draw(self._live)
        elif time.monotonic() >= self._plain_at:
            self._plain_at = time.monotonic() + _PLAIN_EVERY_S
            self.say(_summary(rows, sum(self._rates.values())))

    def conclude(self, verdict: Verdict, told: Told) -> None:
        """The closing tables."""
        if not self._is_for_program:
            tables = (_closing(verdict), _alerts(told.alarms), _pools(told.pools))
            self._console.print(*tables, sep="\n")

    def _measure(self, rows: list[Row]) -> None:
        now = time.monotonic()
        if passed := (now - self._before_at if self._before else 0.0):
            if passed < _RATE_OVER_S:
                return
            self._rates = {
                one.queue: (one.ended - self._before.get(one.queue, 0)) / passed for one in rows
            }
        self._before, self._before_at = {one.queue: one.ended for one in rows}, now

    def _draw(self, live: Live) -> None:
        head = Text(f"CampoTech, {self._clock}", style="bold")
        lines = Text("\n".join(self._events))
        live.update(Group(head, _table(self._rows, self._rates), lines), refresh=True)


def _table(rows: list[Row], rates: dict[str, float]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=0)
    table.add_column("queue", no_wrap=True)
    for name in (*_STATES, "ended", "per s"):
        table.add_column(name, justify="right", min_width=7)
    table.add_column("held", min_width=12, no_wrap=True)
    for row in rows:
        counts = [f"{row.counts[state]:,}" for state in _STATES]
        rate = f"{rates.get(row.queue, 0):,.0f}"
        hold = Text(row.hold, style="yellow")
        table.add_row(row.queue, *counts, f"{row.ended:,}", rate, hold)
    return table


def _summary(rows: list[Row], rate: float) -> str:
    sums = [f"{sum(row.counts[state] for row in rows):,} {state}" for state in _STATES]
    return f"{' · '.join(sums)} · {sum(row.ended for row in rows):,} ended · {rate:,.0f}/s"


def _closing(verdict: Verdict) -> Table:
    table = Table(title="the day in figures", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column(style="dim")
    for line in verdict.lines:
        style = {None: "", True: "green", False: "bold red"}[line.is_good]
        table.add_row(line.name, Text(line.value, style=style), line.note)
    return table


def _alerts(alarms: list[Alarm]) -> Table:
    table = Table(title="alerts that fired", title_justify="left", box=box.SIMPLE_HEAD, padding=0)
    for name in ("alert", "about", "severity"):
        table.add_column(name, no_wrap=True)
    for name in ("times", "fired", "resolved", "lasted"):
        table.add_column(name, justify="right", no_wrap=True)
    for alarm in alarms:
        worst, until = alarm.worst, alarm.resolved_s
        style = "bold red" if worst.severity == "critical" else "yellow"
        table.add_row(
            worst.rule,
            worst.subject,
            Text(worst.severity, style=style),
            f"{len(alarm.episodes)}",
            f"{alarm.episodes[0].fired_s:.1f} s",
            "still fires" if until is None else f"{until:.1f} s",
            f"{alarm.lasted_s:.1f} s" if alarm.lasted_s else "",
        )
    return table


def _pools(pools: list[PoolNeed]) -> Table:
    title = "advice for the pools: 70 % of slots in use are right"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0)
    table.add_column("pool", no_wrap=True)
    for name in ("workers", "slots", "in use", "right"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("advice", no_wrap=True)
    table.add_column("longest p95 of waits", no_wrap=True, style="dim")
    for one in pools:
        table.add_row(
            one.pool,
            f"{one.processes}",
            f"{one.slots}",
            f"{one.in_use:.1f}, {one.in_use / one.slots:.0%}",
            f"{one.recommended_slots}",
            one.advice,
            f"{one.wait_p95_s:,.0f} s {one.slowest}",
        )
    return table
