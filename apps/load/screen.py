"""What the viewer sees: a bar and figures that change; plain lines where there is no terminal."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from apps.load.figure import Figure, Findings

_LINES: Final = 10
_PLAIN_EVERY_S: Final = 5.0
_BAR: Final = 60
_WIDE: Final = 150
"""Columns of a terminal in which notes have room; the report has them anyway."""
_STYLES: Final = {"holds": "green", "does not hold": "yellow", "cannot be said here": "dim"}


class Screen:
    """Shows how a load test goes; on standard error, if the figures are for a program."""

    def __init__(self, *, is_for_program: bool = False) -> None:
        self._console = Console(highlight=False, stderr=is_for_program)
        self._is_for_program = is_for_program
        self._began = self._part_began = time.monotonic()
        self._part, self._seconds, self._plain_at = "", 0.0, 0.0
        self._facts: Mapping[str, str] = {}
        self._events: deque[str] = deque(maxlen=_LINES)
        terminal = self._console.is_terminal
        self._live = Live(console=self._console, auto_refresh=False) if terminal else None

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

    def say(self, line: str) -> None:
        """One line about something that happened."""
        told = f"{time.monotonic() - self._began:6.1f} s  {self._part:<13} {line}"
        self._events.append(told)
        if self._live is None:
            self._console.print(told, soft_wrap=True, markup=False)
        else:
            self._draw(self._live)

    def begin(self, name: str, seconds: float) -> None:
        """A part that takes about so long."""
        self._part, self._seconds, self._part_began = name, seconds, time.monotonic()
        self._facts = {}
        self.say(f"begins; it takes about {seconds:.0f} s and what is left over then")

    def show(self, facts: Mapping[str, str]) -> None:
        """How it is now."""
        self._facts = facts
        if self._live is not None:
            self._draw(self._live)
        elif time.monotonic() >= self._plain_at:
            self._plain_at = time.monotonic() + _PLAIN_EVERY_S
            self.say(" · ".join(f"{name} {value}" for name, value in facts.items()))

    def conclude(self, found: Sequence[Findings], elsewhere: Sequence[Figure]) -> None:
        """The closing tables."""
        if self._is_for_program:
            return
        self._console.print(_promises(found))
        figures = [one for each in found for one in each.figures]
        self._console.print(self._figures([*figures, *elsewhere]))

    def tell(self, words: str) -> None:
        """Where something is, after the tables."""
        self._console.print(words, soft_wrap=True, markup=False)

    def _figures(self, figures: Sequence[Figure]) -> Table:
        has_notes = self._console.width >= _WIDE
        table = Table(title="figures", title_justify="left", box=box.SIMPLE_HEAD)
        for name in (
            "figure",
            "section",
            "goal",
            "measured",
            "",
            *(("note",) if has_notes else ()),
        ):
            table.add_column(name, justify="right" if name in ("goal", "measured") else "left")
        for one in figures:
            verdict = Text(one.verdict, style=_STYLES[one.verdict])
            cells = [one.goal.name, one.goal.section, one.goal.words, one.words, verdict]
            table.add_row(*cells, *((one.note,) if has_notes else ()))
        return table

    def _draw(self, live: Live) -> None:
        passed = time.monotonic() - self._part_began
        head = Text(f"{self._part or 'beginning'}, {passed:.0f} s", style="bold")
        bar = ProgressBar(total=max(self._seconds, 0.1), completed=passed, width=_BAR)
        facts = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for name, value in self._facts.items():
            facts.add_row(name, Text(value, justify="right"))
        live.update(Group(head, bar, facts, Text("\n".join(self._events))), refresh=True)


def _promises(found: Sequence[Findings]) -> Table:
    table = Table(title="promises", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("scenario", "what must be 0", "", ""):
        table.add_column(name, justify="right" if not name and len(table.columns) == 2 else "left")
    for each in found:
        for one in each.promises:
            style = "bold red" if one.broken else "green"
            table.add_row(each.scenario, one.name, Text(f"{one.broken:,}", style=style), one.note)
    return table
