"""All scenarios at their smallest, on a whole stage; and an invoice that is lost on the way."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from apps.load.figure import Figure, Findings, Goal, Line, Panel
from apps.load.goals import ELSEWHERE
from apps.load.scenario import SCENARIOS, play_all
from apps.load.scene import Scene, Sizes

from apps.load import report
from tests._support.valkey import Server

SMALLEST = Sizes(scale=0.008, organizations=3, users=20, rows=1_200)
STOLEN = "DELETE FROM campotech.invoices WHERE job_id IS NOT NULL AND number = 1 RETURNING id"


class Silent:
    """Shows nothing."""

    def say(self, line: str) -> None:
        pass

    def begin(self, name: str, seconds: float) -> None:
        pass

    def show(self, facts: Mapping[str, str]) -> None:
        pass


async def steal(scene: Scene) -> Findings:
    """What a system would do that loses an invoice after it was accepted."""
    findings = Findings("thief")
    stolen = await scene.stage.rows(STOLEN)
    findings.facts["stolen"] = str(len(stolen))
    await scene.books.judge(findings)
    return findings


@pytest.fixture
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage removes settings of others; they come back."""
    for name, value in os.environ.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("own_environment")
async def test_all_scenarios_end_and_a_lost_invoice_is_noticed(
    tmp_path: Path, database: str, server: Server
):
    servers = {"CAMPOTECH_DATABASE_URL": database, "CAMPOTECH_BROKER_URL": server.url}
    scenarios = {**SCENARIOS, "thief": steal}
    found = await play_all(scenarios, SMALLEST, tmp_path, Silent(), servers)
    *honest, thief = found
    broken = [one for each in honest for one in each.promises if one.broken]
    assert not broken
    for each in honest:  # a busy machine may end no job of a kind in so short a time
        assert any(figure.measured is not None for figure in each.figures)
    stolen = int(thief.facts["stolen"])
    counted = {one.name: one.broken for one in thief.promises}
    assert stolen > 0
    assert (counted["lost"], counted["CAE given twice"]) == (stolen, stolen)
    assert not thief.is_kept


def test_a_report_has_all_figures_and_a_plot(tmp_path: Path):
    findings = Findings("stress", panels=[Panel("users & more", [Line("users", [(0, 1), (2, 9)])])])
    findings.measure(Goal("completion", "004 §9.1.5", 500, "ms"), 620, "p95 of 10")
    findings.none("lost", 0, "accepted, and there is no invoice")
    about = {"at": "now", "machine": "2 cores", "users": 1_000}
    path = report.write(tmp_path / "made", about, [findings], ELSEWHERE)
    assert "| completion | 004 §9.1.5 | < 500 ms | 620 ms | does not hold | p95 of 10 |" in (
        path.read_text("utf-8")
    )
    assert "users &amp; more" in path.with_suffix(".svg").read_text("utf-8")
    told = json.loads(path.with_suffix(".json").read_text("utf-8"))
    assert told["scenarios"][0]["figures"][0]["verdict"] == "does not hold"


@pytest.mark.parametrize(
    ("measured", "is_most", "verdict"),
    [
        (99.0, True, "holds"),
        (100.0, True, "does not hold"),
        (100.0, False, "holds"),
        (99.0, False, "does not hold"),
        (None, True, "cannot be said here"),
        (float("nan"), True, "cannot be said here"),
    ],
)
def test_a_figure_holds_or_not(measured: float | None, is_most: bool, verdict: str):
    goal = Goal("one", "004", 100, "ms", is_most)
    assert Figure(goal=goal, measured=measured).verdict == verdict
