"""The dashboards of Grafana: an overview, one queue, tenants, upstreams with costs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from deploy.monitoring.panel import SOURCE, Panel, Query, chart, laid_out, number
from deploy.monitoring.query import latest, quantile, rate

APP: Final = 'app=~"$app"'
QUEUE: Final = 'queue=~"$queue"'
UPSTREAM: Final = 'upstream=~"$upstream"'
_QUEUES: Final = ("queue",)


class Dashboard(NamedTuple):
    """One page of panels, for the chosen apps and values of some labels."""

    name: str
    title: str
    choices: Sequence[tuple[str, str]]
    """What a reader chooses from: label, and the metric whose values there are."""
    panels: Sequence[Panel]

    def queries(self) -> list[str]:
        """All of them."""
        return [query.text for panel in self.panels for query in panel.queries]

    def written(self) -> str:
        """As Grafana imports it."""
        document = {
            "uid": f"faena-{self.name}",
            "title": f"Faena: {self.title}",
            "tags": ["faena"],
            "schemaVersion": 39,
            "editable": True,
            "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"},
            "templating": {"list": [_source(), *(_choice(*one) for one in self.choices)]},
            "panels": laid_out(self.panels),
        }
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _source() -> dict[str, Any]:
    return {"name": "source", "label": "source", "type": "datasource", "query": "prometheus"}


def _choice(label: str, metric: str) -> dict[str, Any]:
    within = "" if label == "app" else f"{{{APP}}}"
    query = f"label_values({metric}{within}, {label})"
    return {
        "name": label,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": label},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _sum(query: str) -> str:
    return f"sum({query})"


def _states(*where: str, legend: str = "{{state}}") -> list[Query]:
    states = f"sum by (state) ({latest('faena_jobs', *where)})"
    return [Query(states, legend)]


def _recorded(name: str, *where: str) -> str:
    return f"{name}{{{', '.join(where)}}}"


def _quantiles(kind: str, legend: str) -> list[Query]:
    name = f"faena_job_{kind}_seconds"
    return [
        Query(quantile(part, name, APP, QUEUE, by=("queue", "task")), f"{legend} p{part * 100:.0f}")
        for part in (0.5, 0.95, 0.99)
    ]


_FAILED: Final = "app_queue:faena_attempts_failed:ratio_rate5m"
_APP: Final = ("app", "faena_jobs")

OVERVIEW: Final = Dashboard(
    "overview",
    "overview",
    [_APP],
    [
        number(
            "Ready", _sum(latest("faena_jobs", APP, 'state="ready"')), text="Jobs that could start."
        ),
        number("Running", _sum(latest("faena_jobs", APP, 'state="running"'))),
        number("Delayed", _sum(latest("faena_jobs", APP, 'state="delayed"'))),
        number(
            "Dead",
            _sum(latest("faena_jobs", APP, 'state="dead"')),
            text="Those that nobody has dealt with.",
        ),
        number(
            "Longest wait",
            f"max({latest('faena_queue_oldest_ready_seconds', APP)})",
            unit="s",
            text="How long the first ready job of any queue has been ready.",
        ),
        number(
            "Broker",
            f"min({latest('faena_broker_up', APP)})",
            text="1 while a process reaches it.",
        ),
        chart("Depth", Query(latest("faena_queue_depth", APP), "{{queue}}")),
        chart(
            "Completed a second",
            Query(rate("faena_jobs_completed_total", APP), "{{queue}}"),
            unit="ops",
        ),
        chart(
            "Failed attempts",
            Query(_recorded(_FAILED, APP), "{{queue}}"),
            unit="percentunit",
            text="Of all that ended within five minutes.",
        ),
        chart(
            "Longest wait by queue",
            Query(latest("faena_queue_oldest_ready_seconds", APP), "{{queue}}"),
            unit="s",
        ),
        chart(
            "Slots in use",
            Query(latest("faena_slot_utilization_ratio", APP), "{{queue}}"),
            unit="percentunit",
        ),
        chart("Workers", Query(latest("faena_workers", APP), "{{queue}}")),
        chart(
            "Memory of the broker",
            Query(latest("faena_broker_memory_used_bytes", APP), "{{node}} used"),
            Query(latest("faena_broker_memory_max_bytes", APP), "{{node}} at most"),
            unit="bytes",
        ),
        chart(
            "Round trip of a script",
            Query(latest("faena_broker_latency_seconds", APP), "{{node}}"),
            unit="s",
        ),
        chart(
            "Oldest dead job",
            Query(latest("faena_dead_oldest_seconds", APP), "{{queue}}"),
            unit="s",
            text="That nobody has dealt with.",
        ),
        chart(
            "Schedules missed",
            Query(rate("faena_schedules_missed_total", APP), "{{queue}}"),
            unit="ops",
        ),
    ],
)

ONE_QUEUE: Final = Dashboard(
    "queue",
    "queue",
    [_APP, ("queue", "faena_jobs")],
    [
        chart("Jobs by state", *_states(APP, QUEUE)),
        chart(
            "In and out a second",
            Query(rate("faena_jobs_enqueued_total", APP, QUEUE), "{{queue}} enqueued"),
            Query(rate("faena_jobs_completed_total", APP, QUEUE), "{{queue}} completed"),
            unit="ops",
        ),
        chart(
            "What goes wrong a second",
            Query(rate("faena_jobs_retried_total", APP, QUEUE), "{{queue}} retried"),
            Query(rate("faena_jobs_dead_total", APP, QUEUE), "{{queue}} dead"),
            Query(rate("faena_jobs_rescued_total", APP, QUEUE), "{{queue}} rescued"),
            Query(rate("faena_jobs_rejected_total", APP, QUEUE), "{{queue}} rejected"),
            Query(rate("faena_jobs_limited_total", APP, QUEUE), "{{queue}} limited"),
            unit="ops",
        ),
        chart("Wait", *_quantiles("wait", "{{task}}"), unit="s"),
        chart("Run", *_quantiles("run", "{{task}}"), unit="s"),
        chart("Total", *_quantiles("total", "{{task}}"), unit="s"),
        chart(
            "Attempts a second",
            Query(
                rate("faena_attempts_ended_total", APP, QUEUE, by=("task", "outcome")),
                "{{task}} {{outcome}}",
            ),
            unit="ops",
        ),
        chart(
            "Failed attempts",
            Query(_recorded(_FAILED, APP, QUEUE), "{{queue}}"),
            unit="percentunit",
        ),
        chart(
            "Slots",
            Query(latest("faena_worker_slots", APP, QUEUE), "{{queue}}"),
            Query(
                latest("faena_jobs", APP, QUEUE, 'state="running"', by=_QUEUES), "{{queue}} in use"
            ),
        ),
    ],
)

TENANTS: Final = Dashboard(
    "tenants",
    "tenants",
    [_APP, ("queue", "faena_tenant_live_jobs")],
    [
        chart(
            "Jobs that wait or run",
            Query(
                f"topk(10, {latest('faena_tenant_live_jobs', APP, QUEUE)})", "{{queue}} {{tenant}}"
            ),
            text="The ten tenants with the most.",
        ),
        chart(
            "Jobs that run",
            Query(
                f"topk(10, {latest('faena_tenant_running_jobs', APP, QUEUE)})",
                "{{queue}} {{tenant}}",
            ),
        ),
        chart(
            "Tenants in trouble with an upstream",
            Query(latest("faena_upstream_troubled_tenants", APP), "{{upstream}}"),
            text="Whose own breakers are not closed.",
        ),
    ],
)

UPSTREAMS: Final = Dashboard(
    "upstreams",
    "upstreams and costs",
    [_APP, ("upstream", "faena_upstream_panic")],
    [
        chart(
            "Breakers",
            Query(
                latest("faena_upstream_breaker", APP, UPSTREAM, 'state!="closed"'),
                "{{upstream}} {{state}}",
            ),
            text="1 while a breaker is in that state.",
        ),
        chart(
            "Calls in the window",
            Query(latest("faena_upstream_calls", APP, UPSTREAM), "{{upstream}}"),
            Query(latest("faena_upstream_failed_calls", APP, UPSTREAM), "{{upstream}} failed"),
            Query(latest("faena_upstream_slow_calls", APP, UPSTREAM), "{{upstream}} slow"),
        ),
        chart(
            "Limits in use",
            Query(
                _recorded("app_upstream:faena_upstream_limit_used:ratio", APP, UPSTREAM),
                "{{upstream}} {{limit}}",
            ),
            unit="percentunit",
        ),
        chart(
            "Budgets in use",
            Query(
                _recorded("app_upstream:faena_budget_spent:ratio", APP, 'upstream=~"($upstream|)"'),
                "{{upstream}} {{currency}} per {{per}} ({{scope}})",
            ),
            unit="percentunit",
        ),
        chart(
            "Spent",
            Query(
                latest("faena_budget_spent", APP, 'upstream=~"($upstream|)"'),
                "{{upstream}} {{currency}} per {{per}} ({{scope}})",
            ),
            text="In the period of the budget, in units of its currency.",
        ),
        chart(
            "Reserved",
            Query(
                latest("faena_budget_reserved", APP, 'upstream=~"($upstream|)"'),
                "{{upstream}} {{currency}} per {{per}} ({{scope}})",
            ),
            text="What calls under way may cost.",
        ),
        chart(
            "Panics and pauses",
            Query(latest("faena_upstream_panic", APP, UPSTREAM), "{{upstream}} in panic"),
            Query(latest("faena_upstream_paused", APP, UPSTREAM), "{{upstream}} paused"),
        ),
        chart(
            "Features",
            Query(latest("faena_feature", APP, 'state!="healthy"'), "{{feature}} {{state}}"),
        ),
    ],
)

DASHBOARDS: Final = (OVERVIEW, ONE_QUEUE, TENANTS, UPSTREAMS)
