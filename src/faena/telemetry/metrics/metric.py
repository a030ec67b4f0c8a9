"""What a metric is: its name, what it tells, and how it is read.

Everything else follows from these declarations: the page that Prometheus scrapes, the reference,
the rules and the dashboards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from faena.options.metrics import MOST_TENANTS
from faena.telemetry.histogram import Histogram
from faena.telemetry.measured import Exemplar, Measurements
from faena.telemetry.snapshot import Snapshot

Kind = Literal["counter", "gauge", "histogram"]
Source = Literal["broker", "worker"]
"""Who knows it: the broker, for all processes alike, or the worker process that measured it."""

TOTAL: Final = "_total"
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class Observed(NamedTuple):
    """Durations, and one of them whose trace is known."""

    histogram: Histogram
    exemplar: Exemplar | None = None


class Sample(NamedTuple):
    """One number of a metric, with the values of its labels."""

    labels: tuple[str, ...]
    value: float | Observed


class Facts(NamedTuple):
    """What the numbers of a page are taken from."""

    snapshot: Snapshot | None = None
    """None if the broker was not asked, or did not answer."""
    measured: Measurements | None = None
    """None in a process that is no worker."""
    is_up: bool | None = None
    """Whether the broker answered; None if it was not asked."""
    tenants: int = MOST_TENANTS
    """How many tenants of a queue are named."""


class Alias(NamedTuple):
    """The same numbers under the name of another system."""

    system: str
    written: str
    """As that system writes it."""
    name: str
    """As the page has it."""
    labels: tuple[str, ...]
    keeps: Mapping[str, str]
    """Label of the alias → label of the metric. What is not kept is added up."""
    fixed: Mapping[str, str] = _NONE
    """Labels of the alias that always have the same value."""
    only: Mapping[str, str] = _NONE
    """The values that labels of the metric must have; other samples are left out."""
    factor: float = 1.0
    """What numbers are multiplied by: another unit."""
    bounds_s: tuple[float, ...] = ()
    """The buckets, if they are others than those of the metric."""


class Metric(NamedTuple):
    """One declared metric."""

    name: str
    """As it is queried: counters end in `_total`, and a unit stands at the end of the rest."""
    kind: Kind
    labels: tuple[str, ...]
    """In addition to `app`, which all have."""
    text: str
    """What it tells, in one or two sentences."""
    source: Source
    read: Callable[[Facts], Iterable[Sample]]
    unit: str = ""
    aliases: tuple[Alias, ...] = ()

    @property
    def family(self) -> str:
        """Its name in OpenMetrics, where only samples of counters end in `_total`."""
        return self.name.removesuffix(TOTAL) if self.kind == "counter" else self.name
