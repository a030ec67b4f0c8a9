"""The metrics of the broker and of what reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from faena.telemetry.metrics.metric import Facts, Metric, Sample
from faena.telemetry.snapshot import NodeSnapshot


def _up(facts: Facts) -> Iterator[Sample]:
    if facts.is_up is not None:
        yield Sample((), float(facts.is_up))


def _nodes(facts: Facts) -> tuple[NodeSnapshot, ...]:
    return facts.snapshot.nodes if facts.snapshot is not None else ()


def _node_up(facts: Facts) -> Iterator[Sample]:
    return (Sample((one.node,), float(one.latency_ms is not None)) for one in _nodes(facts))


def _latency(facts: Facts) -> Iterator[Sample]:
    for one in _nodes(facts):
        if one.latency_ms is not None:
            yield Sample((one.node,), one.latency_ms / 1000)


def _used(facts: Facts) -> Iterator[Sample]:
    for one in _nodes(facts):
        if one.memory_used is not None:
            yield Sample((one.node,), one.memory_used)


def _max(facts: Facts) -> Iterator[Sample]:
    for one in _nodes(facts):
        if one.memory_max is not None:
            yield Sample((one.node,), one.memory_max)


BROKER: Final = (
    Metric(
        "faena_broker_up",
        "gauge",
        (),
        "1 if the broker answered this process in time, else 0: then its numbers are missing.",
        "broker",
        _up,
    ),
    Metric(
        "faena_broker_node_up",
        "gauge",
        ("node",),
        "1 if this node of the broker answered, else 0.",
        "broker",
        _node_up,
    ),
    Metric(
        "faena_broker_latency_seconds",
        "gauge",
        ("node",),
        "The round trip of a script on a node.",
        "broker",
        _latency,
        unit="seconds",
    ),
    Metric(
        "faena_broker_memory_used_bytes",
        "gauge",
        ("node",),
        "Memory that a node uses.",
        "broker",
        _used,
        unit="bytes",
    ),
    Metric(
        "faena_broker_memory_max_bytes",
        "gauge",
        ("node",),
        "The most memory that a node may use; missing if it has no bound, or hides it.",
        "broker",
        _max,
        unit="bytes",
    ),
)
