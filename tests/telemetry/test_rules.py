"""Rules of Prometheus, judged by the real promtool: what fires, when, and what does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from deploy.monitoring.page import ROOT
from deploy.monitoring.rule import ALERTS

from tests._support.prometheus import needed, promtool

RULES = ROOT / "prometheus" / "faena.rules.yml"
LABELS = {"app": "shop", "instance": "one"}
QUEUE = {**LABELS, "queue": "mail"}


class Case(NamedTuple):
    """Series, and the alerts that they must have fired at some minutes."""

    series: dict[str, str]
    fired: dict[int, set[str]]
    """Minute → alerts, each with `!` for a critical one."""


def series(name: str, labels: dict[str, str] | None = None, **more: str) -> str:
    given = {**(QUEUE if labels is None else labels), **more}
    told = ", ".join(f'{key}="{value}"' for key, value in given.items())
    return f"{name}{{{told}}}"


UP = series("faena_broker_up", LABELS)
NODE = {**LABELS, "node": "redis:6379"}
AFIP = {**LABELS, "upstream": "afip"}
BUDGET = {**AFIP, "currency": "USD", "per": "day", "scope": "upstream"}

OLDEST = series("faena_queue_oldest_ready_seconds")
WAITS = {"FaenaJobsWait"}
SLOW = {*WAITS, "FaenaJobsWait!"}
SILENCE = {"FaenaNothingClaimed", "FaenaNothingClaimed!"}
SILENT = {
    OLDEST: "0x14 0+60x60",
    series("faena_workers"): "2x60",
    series("faena_slot_utilization_ratio"): "0.5x60",
    series("faena_jobs_claimed_total"): "0+5x10 50x60",
}
"""Workers with room that claim nothing after ten minutes."""

CASES: dict[str, Case] = {
    "depth": Case(
        {
            series("faena_jobs", state="ready"): "90x5 91x5 300x5 99x5",
            series("faena_jobs", state="blocked"): "9x15 0x5",
            series("faena_jobs", state="delayed"): "5000x20",
        },
        {
            4: set(),
            9: {"FaenaQueueDeep"},
            16: {"FaenaQueueDeep", "FaenaQueueDeep!"},
            22: set(),
        },
    ),
    "backlog": Case(
        {series("faena_queue_depth"): "1001x3 1000x3 1001x10"},
        {4: set(), 10: set(), 14: {"FaenaQueueBacklog"}},
    ),
    "wait": Case(
        {series("faena_queue_oldest_ready_seconds"): "29x5 30x5 120x5"},
        {4: set(), 9: {"FaenaJobsWait"}, 15: {"FaenaJobsWait", "FaenaJobsWait!"}},
    ),
    "failures": Case(
        {
            series("faena_jobs_completed_total"): "0+960x60",
            series("faena_jobs_retried_total"): "0+30x20 600+180x40",
            series("faena_jobs_dead_total"): "0x60",
        },
        {15: set(), 35: {"FaenaAttemptsFail", "FaenaAttemptsFail!"}},
    ),
    "few failures": Case(
        {
            series("faena_jobs_completed_total"): "0+1x60",
            series("faena_jobs_retried_total"): "0x20 1x40",
            series("faena_jobs_dead_total"): "0x60",
        },
        {23: set()},
    ),
    "lost": Case(
        {series("faena_jobs_rescued_total"): "0x60 6x120 6+1x60"},
        {59: set(), 90: {"FaenaWorkersLost"}, 220: {"FaenaWorkersLost", "FaenaWorkersLost!"}},
    ),
    "utilization": Case(
        {series("faena_slot_utilization_ratio"): "1x10 0.5x5 1x20"},
        {10: set(), 30: set(), 33: {"FaenaSlotsFull"}},
    ),
    "no worker": Case(
        {
            OLDEST: "0+60x20",
            series("faena_workers"): "0x20",
            series("faena_queue_held"): "0x20",
        },
        {
            1: WAITS,
            2: {*WAITS, "FaenaJobsWait!", "FaenaNoWorker"},
            5: {*WAITS, "FaenaJobsWait!", "FaenaNoWorker", "FaenaNoWorker!"},
        },
    ),
    "silent workers": Case(
        {**SILENT, series("faena_queue_held"): "0x60"},
        {13: set(), 17: {*SLOW, "FaenaNothingClaimed"}, 25: {*SLOW, *SILENCE}},
    ),
    "held": Case({**SILENT, series("faena_queue_held"): "1x60"}, {25: SLOW}),
    "full": Case(
        {
            **SILENT,
            series("faena_queue_held"): "0x60",
            series("faena_slot_utilization_ratio"): "1x60",
        },
        {12: set(), 25: {*SLOW, "FaenaSlotsFull"}},
    ),
    "deaths": Case(
        {series("faena_jobs_dead_total"): "0x70 11x10"},
        {69: set(), 71: {"FaenaJobsDie"}},
    ),
    "dead letters": Case(
        {series("faena_jobs", state="dead"): "100x5 101x10"},
        {6: set(), 14: {"FaenaDeadLetters"}},
    ),
    "old dead letters": Case(
        {series("faena_dead_oldest_seconds"): "86400x5 86401x5"},
        {5: set(), 7: {"FaenaDeadLettersOld"}},
    ),
    "schedules": Case(
        {series("faena_schedules_missed_total"): "0x5 1x100"},
        {4: set(), 8: {"FaenaScheduleMissed"}, 100: set()},
    ),
    "nobody scraped": Case({UP: "1x5 stale", "up": "1x20"}, {5: set(), 15: {"FaenaNotScraped!"}}),
    "one process cut off": Case(
        {UP: "0x20", series("faena_broker_up", {"app": "shop", "instance": "two"}): "1x20"},
        {4: set(), 6: {"FaenaBrokerUnreachable"}},
    ),
    "all cut off": Case({UP: "1x2 0x2"}, {4: {"FaenaBrokerDown!"}}),
    "node": Case(
        {series("faena_broker_node_up", NODE): "1x5 0x5"}, {5: set(), 8: {"FaenaBrokerNodeDown!"}}
    ),
    "memory": Case(
        {
            series("faena_broker_memory_used_bytes", NODE): "79x10 80x10 90x10",
            series("faena_broker_memory_max_bytes", NODE): "100x40",
        },
        {
            10: set(),
            18: {"FaenaBrokerMemory"},
            29: {"FaenaBrokerMemory", "FaenaBrokerMemory!"},
        },
    ),
    "breaker": Case(
        {series("faena_upstream_breaker", AFIP, state="open"): "0x5 1x5"},
        {5: set(), 8: {"FaenaBreakerOpen"}},
    ),
    "panic": Case({series("faena_upstream_panic", AFIP): "0x2 1x2"}, {4: {"FaenaUpstreamPanic!"}}),
    "budget": Case(
        {
            series("faena_budget_spent", BUDGET): "79x5 80x5 100x5",
            series("faena_budget_amount", BUDGET): "100x15",
            series("faena_budget_used_up", BUDGET): "0x10 1x5",
        },
        {
            4: set(),
            9: {"FaenaBudgetNearlySpent"},
            14: {"FaenaBudgetNearlySpent", "FaenaBudgetUsedUp!"},
        },
    ),
    "feature": Case(
        {
            series("faena_feature", LABELS, feature="ai", state="degraded"): "1x5 0x5",
            series("faena_feature", LABELS, feature="ai", state="offline"): "0x5 1x5",
        },
        {4: {"FaenaFeatureDegraded"}, 9: {"FaenaFeatureOffline!"}},
    ),
}


def test_every_alert_is_tried() -> None:
    fired = {
        name.rstrip("!")
        for case in CASES.values()
        for names in case.fired.values()
        for name in names
    }
    assert fired == {one.name for group in ALERTS.values() for one in group}


def test_the_real_promtool_accepts_rules_and_settings() -> None:
    needed()
    promtool("check", "rules", str(RULES))
    promtool("check", "config", str(ROOT / "prometheus" / "prometheus.yml"))


@pytest.mark.parametrize("about", CASES)
def test_an_alert_fires_when_it_must(about: str, tmp_path: Path) -> None:
    needed()
    case = CASES[about]
    series = {UP: "1x300", **case.series}
    document: dict[str, Any] = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": one, "values": text} for one, text in series.items()],
                "promql_expr_test": [judged(at, names) for at, names in case.fired.items()],
            }
        ],
    }
    path = tmp_path / "test.yml"
    path.write_text(json.dumps(document))
    promtool("test", "rules", str(path))


def judged(minute: int, names: set[str]) -> dict[str, Any]:
    """Which alerts must have fired then, and no other."""
    firing = 'count by (alertname, severity) (ALERTS{alertstate="firing"})'
    samples = [{"labels": labels_of(name), "value": 1} for name in sorted(names)]
    return {"expr": firing, "eval_time": f"{minute}m", "exp_samples": samples}


def labels_of(name: str) -> str:
    severity = "critical" if name.endswith("!") else "warning"
    plain = name.rstrip("!")
    return f'{{alertname="{plain}", severity="{severity}"}}'
