"""Names of metrics: good ones, those of other systems, and none that collides with another."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from faena.telemetry.kinds import OF_JOBS
from faena.telemetry.metrics.counter_metric import COUNTED
from faena.telemetry.metrics.declared import METRICS
from faena.telemetry.metrics.metric import Alias, Kind, Metric

CAMPOTECH_COUNTERS = (
    *("enqueued", "completed", "failed", "retried", "stalled", "dlq_added", "rate_limited"),
    "idempotent_skip",
)
CAMPOTECH_GAUGES = ("waiting", "active", "delayed", "paused", "workers")
CAMPOTECH_HISTOGRAMS = ("wait_time", "process_time", "total_time")
CAMPOTECH_PLAIN = (
    *("queue.dispatched", "queue.duplicate_prevented", "backpressure.rejected"),
    *("backpressure.delayed", "dlq.retried", "dlq.discarded"),
    *("queue.job.completed", "queue.job.failed", "queue.job.stalled"),
)

WANTED: dict[tuple[str, str], tuple[str, Kind, tuple[str, ...]]] = {
    **{
        ("CampoTech", f"queue.{{name}}.{name}"): (f"queue_{name}_total", "counter", ("queue",))
        for name in CAMPOTECH_COUNTERS
    },
    **{
        ("CampoTech", f"queue.{{name}}.{name}"): (f"queue_{name}", "gauge", ("queue",))
        for name in CAMPOTECH_GAUGES
    },
    **{
        ("CampoTech", f"queue.{{name}}.{name}"): (f"queue_{name}", "histogram", ("queue",))
        for name in CAMPOTECH_HISTOGRAMS
    },
    **{
        ("CampoTech", name): (f"{name.replace('.', '_')}_total", "counter", ("queue",))
        for name in CAMPOTECH_PLAIN
    },
    ("CEP", "jobs_processed_total"): ("jobs_processed_total", "counter", ("queue", "status")),
    ("CEP", "job_duration_seconds"): ("job_duration_seconds", "histogram", ("queue", "job_name")),
    ("CEP", "queue_length"): ("queue_length", "gauge", ("queue", "state")),
    ("ZapHub", "bullmq_jobs_processed_total"): (
        "bullmq_jobs_processed_total",
        "counter",
        ("queue", "status"),
    ),
    ("ZapHub", "bullmq_queue_depth"): ("bullmq_queue_depth", "gauge", ("queue",)),
}
"""What the systems that moved here call their metrics → name, kind and labels on our page."""

UNITS = ("seconds", "bytes", "ratio")
RESERVED = {"app", "job", "instance", "le", "quantile", "exported_job", "exported_instance"}
"""Labels that Prometheus sets, or every metric has."""


def aliases() -> list[tuple[Metric, Alias]]:
    return [(metric, alias) for metric in METRICS for alias in metric.aliases]


def test_every_metric_of_other_systems_is_there_under_its_name_and_no_other() -> None:
    found = {
        (alias.system, alias.written): (alias.name, metric.kind, alias.labels)
        for metric, alias in aliases()
    }
    assert found == WANTED


def test_a_histogram_keeps_the_buckets_that_its_dashboards_know() -> None:
    (found,) = {alias.bounds_s for _, alias in aliases() if alias.name == "job_duration_seconds"}
    assert found == (0.1, 0.5, 1, 5, 10, 30, 60)
    in_ms = {alias.factor for _, alias in aliases() if alias.name == "queue_wait_time"}
    assert in_ms == {1000}


def test_one_name_is_one_kind_of_metric() -> None:
    own = [(one.family, one.kind) for one in METRICS]
    assert len(dict(own)) == len(own)
    shapes: dict[str, set[object]] = {}
    kinds: dict[str, Kind] = dict(own)
    for metric, alias in aliases():
        family = alias.name.removesuffix("_total") if metric.kind == "counter" else alias.name
        assert kinds.setdefault(family, metric.kind) == metric.kind, family
        shape = (family in dict(own), alias.labels, alias.factor, alias.bounds_s)
        shapes.setdefault(family, set()).add(shape)
    assert {name: found for name, found in shapes.items() if len(found) > 1} == {}
    lines = Counter(line for name, kind in kinds.items() for line in written(name, kind))
    assert [line for line, number in lines.items() if number > 1] == []


def written(family: str, kind: Kind) -> list[str]:
    """The names that the page has for a family: its own, and those of its samples."""
    ends = {"counter": ("total", "created"), "histogram": ("bucket", "count", "sum", "created")}
    return [family, *(f"{family}_{end}" for end in ends.get(kind, ()))]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_name_says_what_is_counted_and_in_which_unit(metric: Metric) -> None:
    assert re.fullmatch(r"faena_[a-z]+(_[a-z]+)*", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert metric.unit in {"", *UNITS}
    assert not metric.unit or metric.family.endswith(f"_{metric.unit}")
    assert metric.kind != "histogram" or metric.unit == "seconds"
    assert [unit for unit in UNITS if unit in metric.family.split("_")] in ([], [metric.unit])
    assert not RESERVED & {*metric.labels}
    assert metric.text.endswith(".")


def test_aliases_keep_labels_that_there_are() -> None:
    for metric, alias in aliases():
        assert {*alias.keeps} | {*alias.fixed} == {*alias.labels}, alias
        assert {*alias.keeps.values()} | {*alias.only} <= {*metric.labels}, alias


NOT_SHOWN = {
    *("changed", "stopping"),  # nothing has happened to the job yet
    *("moved_out", "moved_in"),  # between shards, which are no part of the picture
}


def test_every_transition_of_a_job_is_a_counter() -> None:
    assert COUNTED >= OF_JOBS - NOT_SHOWN
