"""What a run leaves behind: tables on the terminal, and a JSON and an SVG file in `results/`."""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.campaign import Results, plain
from bench.catalogue import FAENA, Peer, Work
from bench.chart import draw

_RESULTS = Path(__file__).resolve().parent / "results"
_COLUMNS = 6  # of works in one table, to fit an ordinary terminal


def print_tables(results: Results, console: Console) -> None:
    """Show the figures, how faena compares, and whatever is missing with its reason."""
    halves = [results.works[start : start + _COLUMNS] for start in (0, _COLUMNS)]
    for works in filter(None, halves):
        console.print(_figures_table(results, works))
        if any(results.median(work, FAENA) for work in works):
            console.print(_ratios_table(results, works))
    for system, reason in results.skipped.items():
        console.print(f"skipped {system}: {reason}", style="yellow", markup=False, soft_wrap=True)
    for step, reason in results.failed.items():
        console.print(f"failed {step}: {reason}", style="red", markup=False, soft_wrap=True)


def write_files(results: Results, about: dict[str, Any]) -> list[Path]:
    """Keep the run for later: every sample, and a chart of the medians."""
    _RESULTS.mkdir(exist_ok=True)
    stem = time.strftime("%Y%m%dT%H%M%S")
    data, chart = _RESULTS / f"{stem}.json", _RESULTS / f"{stem}.svg"
    data.write_text(json.dumps(_record(results, about), indent=1))
    chart.write_text(draw(results, f"{about['server']}, {about['machine']}"))
    return [data, chart]


def machine() -> str:
    """The box in one line, since figures of two boxes cannot be compared."""
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def _record(results: Results, about: dict[str, Any]) -> dict[str, Any]:
    return {
        **about,
        "versions": {system.name: list(system.packages) for system in results.systems},
        "units": {work.name: work.unit for work in results.works},
        "figures": results.figures(),
        "samples": results.samples,
        "skipped": results.skipped,
        "failed": results.failed,
    }


def _figures_table(results: Results, works: list[Work]) -> Table:
    table = _table("medians", works)
    for system in results.systems:
        cells = [plain(results.median(work, system)) for work in works]
        table.add_row(system.name, *cells, style="bold" if system is FAENA else None)
    return table


def _ratios_table(results: Results, works: list[Work]) -> Table:
    table = _table("how many times better faena is (below 1: worse)", works)
    for system in results.systems:
        if system is not FAENA:
            table.add_row(system.name, *(plain(ratio(results, work, system)) for work in works))
    return table


def ratio(results: Results, work: Work, system: Peer) -> float | None:
    """faena over the peer, turned so that more is better for faena; None when either is missing."""
    ours, theirs = results.median(work, FAENA), results.median(work, system)
    if not ours or not theirs:
        return None
    return ours / theirs if work.more_is_better else theirs / ours


def _table(title: str, works: list[Work]) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("system", no_wrap=True)
    for work in works:
        table.add_column(f"{work.label}\n{work.unit}", justify="right")
    return table
