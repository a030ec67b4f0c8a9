"""The samples of a page by name: those of the metrics, and the same under other systems' names.

Each sample is there once: values whose labels become equal are added up. Prometheus refuses a whole
page that has a sample twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from faena.telemetry.histogram import Histogram
from faena.telemetry.metrics.bucket import BOUNDS_S
from faena.telemetry.metrics.declared import METRICS
from faena.telemetry.metrics.metric import TOTAL, Alias, Facts, Metric, Observed, Sample

Samples = dict[tuple[str, ...], float | Observed]
"""Values of the labels → number."""


class Family(NamedTuple):
    """All samples of one name."""

    name: str
    """Without the `_total` of counters."""
    kind: str
    text: str
    unit: str
    labels: tuple[str, ...]
    samples: Samples
    factor: float = 1.0
    """What durations are multiplied by."""
    bounds_s: tuple[float, ...] = BOUNDS_S


def families(facts: Facts, *, aliases: bool) -> list[Family]:
    """What a page has; names without any sample are left out."""
    read = [(metric, list(metric.read(facts))) for metric in METRICS]
    own = [_own(metric, samples) for metric, samples in read if samples]
    return [*own, *(_others(read) if aliases else ())]


def _own(metric: Metric, samples: Iterable[Sample]) -> Family:
    found: Samples = {}
    _add(found, samples)
    return Family(metric.family, metric.kind, metric.text, metric.unit, metric.labels, found)


def _others(read: Iterable[tuple[Metric, list[Sample]]]) -> Iterable[Family]:
    """Several metrics can have parts of one name, such as outcomes that are a label there."""
    found: dict[str, Family] = {}
    for metric, samples in read:
        for alias in metric.aliases if samples else ():
            family = found.get(alias.name)
            if family is None:
                family = found[alias.name] = _family_of(alias, metric)
            _add(family.samples, _renamed(alias, metric, samples))
    return found.values()


def _family_of(alias: Alias, metric: Metric) -> Family:
    return Family(
        name=alias.name.removesuffix(TOTAL) if metric.kind == "counter" else alias.name,
        kind=metric.kind,
        text=f"{alias.written} of {alias.system}.",
        unit="",
        labels=alias.labels,
        samples={},
        factor=alias.factor,
        bounds_s=alias.bounds_s or BOUNDS_S,
    )


def _renamed(alias: Alias, metric: Metric, samples: Iterable[Sample]) -> Iterator[Sample]:
    for sample in samples:
        values = dict(zip(metric.labels, sample.labels, strict=True))
        if all(values[name] == value for name, value in alias.only.items()):
            taken = {name: values[of] for name, of in alias.keeps.items()} | dict(alias.fixed)
            yield Sample(tuple(taken[name] for name in alias.labels), sample.value)


def _add(found: Samples, samples: Iterable[Sample]) -> None:
    for labels, value in samples:
        names = tuple(map(_encodable, labels))
        known = found.get(names)
        found[names] = value if known is None else _sum(known, value)


def _sum(one: float | Observed, other: float | Observed) -> float | Observed:
    if isinstance(one, Observed) or isinstance(other, Observed):
        both = [each for each in (one, other) if isinstance(each, Observed)]
        merged = Histogram().merge(each.histogram for each in both)
        return Observed(merged, next((each.exemplar for each in both if each.exemplar), None))
    return one + other


def _encodable(value: str) -> str:
    """One name with an unpaired surrogate would spoil the page."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()
