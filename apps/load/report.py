"""What a run leaves behind: a report in Markdown, the figures as JSON, and a plot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.report import machine

from apps.load.chart import draw
from apps.load.figure import Figure, Findings

__all__ = ["machine", "write"]


def write(
    directory: Path,
    about: Mapping[str, Any],
    found: Sequence[Findings],
    elsewhere: Sequence[Figure],
) -> Path:
    """Write all three, and say where the report is; those of an earlier run are replaced."""
    directory.mkdir(parents=True, exist_ok=True)
    report, data, plot = (directory / f"load.{kind}" for kind in ("md", "json", "svg"))
    told = {
        **about,
        "scenarios": [one.to_dict() for one in found],
        "notMeasured": [one.to_dict() for one in elsewhere],
    }
    data.write_text(json.dumps(told, indent=2, ensure_ascii=False), "utf-8")
    subtitle = f"{about['machine']}, {about['users']:,} users, {about['at']}"
    plot.write_text(draw(found, subtitle), "utf-8")
    report.write_text(_markdown(about, found, elsewhere, plot.name), "utf-8")
    return report


def _markdown(
    about: Mapping[str, Any], found: Sequence[Findings], elsewhere: Sequence[Figure], plot: str
) -> str:
    figures = [*(one for each in found for one in each.figures), *elsewhere]
    lines = [
        "# CampoTech under load",
        "",
        ", ".join(f"{name} {_plain(value)}" for name, value in about.items()),
        "",
        f"![curves]({plot})",
        "",
        "## Figures",
        "",
        *figure_table(figures),
        "",
        "## Promises",
        "",
        *promise_table(found),
    ]
    for each in found:
        lines += ["", f"## {each.scenario.capitalize()}", ""]
        lines += [f"- {name}: {value}" for name, value in each.facts.items()]
    return "\n".join(lines) + "\n"


def figure_table(figures: Sequence[Figure]) -> list[str]:
    """Lines of a table in Markdown."""
    rows = [
        f"| {one.goal.name} | {one.goal.section} | {one.goal.words} | {one.words} | {one.verdict} "
        f"| {one.note} |"
        for one in figures
    ]
    return ["| figure | section | goal | measured | | note |", "|---|---|---:|---:|---|---|", *rows]


def promise_table(found: Sequence[Findings]) -> list[str]:
    """Lines of a table in Markdown."""
    rows = [
        f"| {each.scenario} | {one.name} | {one.broken:,} | {one.note} |"
        for each in found
        for one in each.promises
    ]
    return ["| scenario | what must be 0 | | |", "|---|---|---:|---|", *rows]


def _plain(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else f"{value}"
