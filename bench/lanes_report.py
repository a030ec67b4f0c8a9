"""What a run of `./dev bench lanes` leaves behind: tables, and two files in `results/`."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.lanes_chart import draw
from bench.lanes_claims import Curve
from bench.lanes_drain import Rated
from bench.lanes_fairness import Neighbours, Shares

_RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(slots=True, kw_only=True)
class Findings:
    """Whatever was measured; a part that was not asked for is empty."""

    jobs: int
    drains: Sequence[Rated] = ()
    curves: Sequence[Curve] = ()
    neighbours: Neighbours | None = None
    shares: list[Shares] = field(default_factory=list[Shares])

    broken: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def stood(self) -> list[Rated]:
        """The cases that were drained at least once."""
        return [one for one in self.drains if one.drains]

    @property
    def failed(self) -> dict[str, list[str]]:
        """Why parts, and single drains, failed."""
        drains = {one.case.name: list(one.failed) for one in self.drains if one.failed}
        return {part: [reason] for part, reason in self.broken.items()} | drains


def figures(found: Findings) -> dict[str, Any]:
    """The medians by part, as JSON has them."""
    return {
        "jobs": found.jobs,
        "drain": {
            one.case.name: {
                "jobs_per_s": round(one.rate),
                "ratio": round(one.ratio, 3),
                "server_us_per_job": round(one.server_us, 2),
                "server_cpu_us_per_job": round(one.server_cpu_us, 2),
                "enqueue_per_s": round(one.enqueue_rate),
                "ratios": [round(ratio, 3) for ratio in one.ratios],
                "samples": [round(drain.jobs_per_s) for drain in one.drains],
            }
            for one in found.stood
        },
        "failed": found.failed,
        "claims": {str(curve.size): _curve_figures(curve) for curve in found.curves},
        "neighbours": found.neighbours and _neighbour_figures(found.neighbours),
        "shares": [
            {"weights": list(one.weights), "served": list(one.served), "jain": round(one.jain, 6)}
            for one in found.shares
        ],
    }


def _neighbour_figures(found: Neighbours) -> dict[str, Any]:
    return {
        "alone": found.alone._asdict(),
        "beside": found.beside._asdict(),
        "noise": found.noise,
        "noise_left": found.noise_left,
    }


def _curve_figures(curve: Curve) -> dict[str, Any]:
    return {
        "us_per_job": {str(lanes): round(us, 2) for lanes, us in curve.points},
        "unlaned_us_per_job": round(curve.unlaned, 2),
        "fit": {name: round(value, 4) for name, value in curve.fit._asdict().items()},
    }


def write_files(found: Findings, about: str) -> list[Path]:
    """Keep the run for later."""
    _RESULTS.mkdir(exist_ok=True)
    stem = _RESULTS / f"lanes-{time.strftime('%Y%m%dT%H%M%S')}"
    data, chart = stem.with_suffix(".json"), stem.with_suffix(".svg")
    data.write_text(json.dumps({"about": about, **figures(found)}, indent=1))
    chart.write_text(draw(found.stood, found.curves, found.neighbours, found.shares, about))
    return [data, chart]


def print_tables(found: Findings, console: Console) -> None:
    """A table for each part."""
    tables = (
        found.drains and _drain_table(found),
        found.curves and _claims_table(found.curves),
        found.neighbours and _neighbours_table(found.neighbours),
        found.shares and _shares_table(found.shares),
    )
    for table in filter(None, tables):
        console.print(table)
    for what, reasons in found.failed.items():
        console.print(f"failed {what}: {'; '.join(reasons)}", style="red", markup=False)
    for curve in found.curves:
        fit = curve.fit
        console.print(
            f"claims of {curve.size}: {fit.base:.1f} + {fit.slope:.2f} * log10(lanes) us a job, "
            f"R2 {fit.r2:.2f}",
            highlight=False,
        )


def _drain_table(found: Findings) -> Table:
    names = ("jobs/s", "ratio", "least", "most", "us", "cpu us", "filled/s")
    title = f"drain of {found.jobs:,} jobs by one worker process; us of the server per job"
    table = _table(title, "queue", names)
    for one in found.stood:
        ratios = (one.ratio, min(one.ratios), max(one.ratios))
        costs = (f"{one.server_us:.1f}", f"{one.server_cpu_us:.1f}", f"{one.enqueue_rate:,.0f}")
        percents = (f"{100 * ratio:.0f} %" for ratio in ratios)
        table.add_row(one.case.name, f"{one.rate:,.0f}", *percents, *costs)
    return table


def _claims_table(curves: Sequence[Curve]) -> Table:
    heads = [head for curve in curves for head in (f"claims of {curve.size}", "fit")]
    table = _table("server time by the number of lanes, us a job (FCALL)", "lanes", heads)
    cells = [cell for curve in curves for cell in (f"{curve.unlaned:.1f}", "")]
    table.add_row("unlaned", *cells)
    for at, (lanes, _) in enumerate(curves[0].points):
        cells = [cell for curve in curves for cell in _claim_cells(curve, at)]
        table.add_row(f"{lanes:,}", *cells)
    return table


def _claim_cells(curve: Curve, at: int) -> tuple[str, str]:
    return f"{curve.points[at][1]:.1f}", f"{curve.fit.at(curve.points[at][0]):.1f}"


def _neighbours_table(found: Neighbours) -> Table:
    names = ("p50 ms", "p90 ms", "p99 ms", "jobs")
    table = _table("wait of a quiet tenant's job", "beside", names)
    for beside, one in (("nobody", found.alone), (f"{found.noise:,} waiting jobs", found.beside)):
        table.add_row(
            beside, f"{one.p50:.2f}", f"{one.p90:.2f}", f"{one.p99:.2f}", str(one.samples)
        )
    ratios = (both[1] / both[0] for both in zip(found.alone[:3], found.beside[:3], strict=True))
    table.add_row("times as long", *(f"{ratio:.2f}" for ratio in ratios), "")
    return table


def _shares_table(shares: Sequence[Shares]) -> Table:
    table = _table("shares of busy tenants", "weights", ("served", "Jain's index"))
    for one in shares:
        is_equal = len(set(one.weights)) == 1
        weights = f"{len(one.weights)} equal" if is_equal else " : ".join(map(str, one.weights))
        given = " : ".join(f"{part:.3f}" for part in one.relative)
        served = f"{min(one.served):,} to {max(one.served):,}" if is_equal else given
        table.add_row(weights, served, f"{one.jain:.5f}")
    return table


def _table(title: str, first: str, names: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column(first, no_wrap=True)
    for name in names:
        table.add_column(name, justify="right")
    return table
