"""What the viewer sees: a table that changes, or plain lines where there is no terminal."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from examples.lively.verdict import Verdict

_LINES = 10
_PLAIN_EVERY_S = 2.0
_STATES = ("ready", "delayed", "running", "completed", "dead")


@dataclass(frozen=True)
class Row:
    """One queue at one moment."""

    queue: str
    counts: dict[str, int]
    rate: float
    hold: str


class Screen:
    """Shows rows and tells events."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._began = time.monotonic()
        self._events: deque[str] = deque(maxlen=_LINES)
        self._rows: list[Row] = []
        self._plain_at = 0.0
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

    def say(self, event: str) -> None:
        """One line about something that happened."""
        line = f"{time.monotonic() - self._began:5.1f} s  {event}"
        self._events.append(line)
        if self._live is None:
            self._console.print(line, soft_wrap=True)
        else:
            self._draw(self._live)

    def show(self, rows: list[Row]) -> None:
        """The queues as they are now."""
        self._rows = rows
        if self._live is not None:
            self._draw(self._live)
        elif time.monotonic() >= self._plain_at:
            self._plain_at = time.monotonic() + _PLAIN_EVERY_S
            self.say(_summary(rows))

    def conclude(self, verdict: Verdict) -> None:
        """The closing table."""
        self._console.print(_closing(verdict))

    def _draw(self, live: Live) -> None:
        live.update(Group(_table(self._rows), Text("\n".join(self._events))), refresh=True)


def _table(rows: list[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=0)
    table.add_column("queue", no_wrap=True)
    for name in (*_STATES, "rate/s"):
        table.add_column(name, justify="right", min_width=5)
    table.add_column("held", min_width=12, no_wrap=True)
    for row in rows:
        counts = [f"{row.counts[state]:,}" for state in _STATES]
        table.add_row(row.queue, *counts, f"{row.rate:,.0f}", f"[yellow]{row.hold}[/yellow]")
    return table


def _summary(rows: list[Row]) -> str:
    sums = [f"{sum(row.counts[state] for row in rows):,} {state}" for state in _STATES]
    return f"{' · '.join(sums)} · {sum(row.rate for row in rows):,.0f}/s"


def _closing(verdict: Verdict) -> Table:
    table = Table(title="the day in figures", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column(style="dim")
    for name, note in (
        ("jobs", "accepted by the queues"),
        ("completed", ""),
        ("dead", "out of attempts, or discarded"),
        ("cancelled", "called off while waiting or running"),
        ("waiting", "not finished yet"),
    ):
        table.add_row(name, f"{getattr(verdict, name):,}", note)
    table.add_section()
    table.add_row(
        "retries", f"{verdict.retries:,}", "failed attempts that were followed by another"
    )
    table.add_row("rescued", f"{verdict.rescued:,}", "deliveries lost with the killed worker")
    table.add_section()
    table.add_row("starts", f"{verdict.starts:,}", "handler starts in the ledger, a plain file")
    table.add_row("expected", f"{_expected(verdict):,}", _why(verdict))
    table.add_section()
    for name, note in (
        ("lost", "accepted, and nowhere to be found"),
        ("doubled", "started more often than anything explains"),
        ("astray", "ended otherwise than planned"),
    ):
        number = getattr(verdict, name)
        color = "red" if number else "green"
        table.add_row(name, f"[{color}]{number:,}[/{color}]", note)
    return table


def _expected(verdict: Verdict) -> int:
    return verdict.planned_starts + verdict.after_rescue + verdict.after_limit


def _why(verdict: Verdict) -> str:
    return (
        f"{verdict.planned_starts:,} planned, {verdict.after_rescue:,} after a rescue, "
        f"{verdict.after_limit:,} after a 429"
    )
