"""Rules and dashboards: what `./dev deploy` writes, and no metric in them that there is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from deploy.monitoring.dashboard import DASHBOARDS
from deploy.monitoring.page import PAGES, ROOT
from deploy.monitoring.query import latest, names_in, quantile, rate, unknown_in
from deploy.monitoring.rule import RECORDED, queries

NAMES = [one.name for one in RECORDED]


@pytest.mark.parametrize("page", PAGES)
def test_a_file_is_what_the_declaration_says(page: str) -> None:
    assert (ROOT / page).read_text("utf-8") == PAGES[page](), "run ./dev deploy"


def test_there_is_no_other_file() -> None:
    there = {f"grafana/{one.name}" for one in (ROOT / "grafana").iterdir()}
    assert there == {name for name in PAGES if name.startswith("grafana/")}


def test_no_query_names_an_unknown_metric() -> None:
    shown = [query for one in DASHBOARDS for query in one.queries()]
    assert unknown_in([*queries(), *shown], NAMES) == set()
    assert len({*NAMES}) == len(NAMES)


def test_names_are_found_in_queries() -> None:
    wrong = "sum(rate(faena_job_run_seconds_bucket[5m])) / faena_nonsense + app_queue:faena_x:y5m"
    assert names_in(wrong) == {"faena_job_run_seconds", "faena_nonsense", "app_queue:faena_x:y5m"}
    assert unknown_in([wrong], NAMES) == {"faena_nonsense", "app_queue:faena_x:y5m"}


def test_what_the_broker_knows_counts_once_and_what_workers_measured_is_added_up() -> None:
    assert latest("faena_jobs", 'state="ready"') == (
        'max by (app, queue) (faena_jobs{state="ready"})'
    )
    assert rate("faena_attempts_started_total", window="5m") == (
        "sum by (app, queue, task) (rate(faena_attempts_started_total[5m]))"
    )


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: latest("faena_job"), "faena_job is not declared"),
        (lambda: latest("faena_jobs", 'tenant="a"'), "faena_jobs has no label tenant"),
        (lambda: latest("faena_jobs", by=["task"]), "faena_jobs has no label task"),
        (lambda: quantile(0.5, "faena_jobs", by=["queue"]), "faena_jobs must be a histogram"),
    ],
)
def test_a_query_that_cannot_be_is_refused(ask: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ask()


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda one: one.name)
def test_panels_of_a_dashboard_lie_side_by_side(dashboard: Any) -> None:
    document = json.loads(dashboard.written())
    taken: set[tuple[int, int]] = set()
    for panel in document["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in document["panels"]}) == len(document["panels"])
