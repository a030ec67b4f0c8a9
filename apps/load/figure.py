"""Figures with their goals, promises that must hold, and what one scenario has found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Verdict = Literal["holds", "does not hold", "cannot be said here"]


class Goal(NamedTuple):
    """A figure that the specification asks for."""

    name: str
    section: str
    """The file of the specification and its section, such as `004 §9.1.3`."""
    limit: float
    unit: str
    is_most: bool = True
    """Whether less is better."""

    @property
    def words(self) -> str:
        """As a table shows it."""
        return f"{'<' if self.is_most else '≥'} {shown(self.limit, self.unit)}"

    def is_met(self, measured: float) -> bool:
        """Whether a value is good enough."""
        return measured < self.limit if self.is_most else measured >= self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A goal, and what was measured."""

    goal: Goal
    measured: float | None
    """None: it cannot be measured here."""
    note: str = ""
    """How it was measured, or why it was not."""

    @property
    def verdict(self) -> Verdict:
        """Whether the goal is met."""
        if self.measured is None or math.isnan(self.measured):
            return "cannot be said here"
        return "holds" if self.goal.is_met(self.measured) else "does not hold"

    @property
    def words(self) -> str:
        """The value."""
        if self.measured is None or math.isnan(self.measured):
            return "-"
        return shown(self.measured, self.goal.unit)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "figure": self.goal.name,
            "section": self.goal.section,
            "goal": self.goal.words,
            "measured": self.measured,
            "unit": self.goal.unit,
            "verdict": self.verdict,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Something that must not have happened."""

    name: str
    broken: int
    """How often it did."""
    note: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"promise": self.name, "broken": self.broken, "note": self.note}


class Line(NamedTuple):
    """A curve of a plot: values over seconds."""

    label: str
    points: list[tuple[float, float]]


class Panel(NamedTuple):
    """A plot of some curves with one unit."""

    title: str
    lines: list[Line]


@dataclass(slots=True)
class Findings:
    """What one scenario has found."""

    scenario: str
    figures: list[Figure] = field(default_factory=list[Figure])
    promises: list[Promise] = field(default_factory=list[Promise])
    facts: dict[str, str] = field(default_factory=dict[str, str])
    """What was done, and what else was seen."""
    panels: list[Panel] = field(default_factory=list[Panel])

    @property
    def is_kept(self) -> bool:
        """Whether no promise is broken."""
        return all(one.broken == 0 for one in self.promises)

    def measure(self, goal: Goal, measured: float | None, note: str = "") -> None:
        """One more figure."""
        self.figures.append(Figure(goal=goal, measured=measured, note=note))

    def none(self, name: str, broken: int, note: str) -> None:
        """One more promise: 0 is good."""
        self.promises.append(Promise(name=name, broken=broken, note=note))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "scenario": self.scenario,
            "figures": [one.to_dict() for one in self.figures],
            "promises": [one.to_dict() for one in self.promises],
            "facts": self.facts,
        }


def at_percent(values: Sequence[float], percent: float) -> float:
    """The value that so many of them do not exceed; not a number if there are none."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(len(ordered) * percent / 100) - 1)]


def share(values: Iterable[bool]) -> float:
    """How many percent are true; not a number if there are none."""
    known = list(values)
    return 100 * sum(known) / len(known) if known else math.nan


def percentiles(values: Sequence[float]) -> str:
    """p50, p95 and p99 of milliseconds, in words."""
    each = (f"p{part} {shown(at_percent(values, part), 'ms')}" for part in (50, 95, 99))
    return ", ".join(each) + f", of {len(values):,}"


def shown(value: float, unit: str) -> str:
    """A value with its unit."""
    if math.isnan(value):
        return "-"
    digits = 1 if 0 < abs(value) < 10 and value != round(value) else 0
    return f"{value:,.{digits}f} {unit}".rstrip()
