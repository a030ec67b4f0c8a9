"""What autoscalers go by: the wait that is predicted, and the slots that would be right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from faena.telemetry.advice.scaling import QueueScaling
from faena.telemetry.metrics.metric import Facts, Metric, Sample


def _each(number: Callable[[QueueScaling], float]) -> Callable[[Facts], Iterator[Sample]]:
    def read(facts: Facts) -> Iterator[Sample]:
        for one in facts.snapshot.scaling if facts.snapshot is not None else ():
            yield Sample((one.queue,), number(one))

    return read


SCALING: Final = (
    Metric(
        "faena_queue_wait_ratio",
        "gauge",
        ("queue",),
        "How long a job that comes now may wait for a slot, divided by the queue's objective: 1 "
        "means just met. 0 while the queue is held.",
        "broker",
        _each(lambda one: one.wait_ratio),
        unit="ratio",
    ),
    Metric(
        "faena_queue_predicted_wait_seconds",
        "gauge",
        ("queue",),
        "How long a job that comes now may wait for a slot: 5 % would wait longer.",
        "broker",
        _each(lambda one: one.predicted_wait_s),
        unit="seconds",
    ),
    Metric(
        "faena_queue_slots_wanted",
        "gauge",
        ("queue",),
        "Slots of all workers that would be right: 70 % in use, and the objective met.",
        "broker",
        _each(lambda one: one.slots_wanted),
    ),
)
