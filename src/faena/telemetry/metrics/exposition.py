"""The page that Prometheus scrapes, written by prometheus-client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from faena.errors import ConfigError
from faena.telemetry.measured import Exemplar
from faena.telemetry.metrics.bucket import cumulative
from faena.telemetry.metrics.family import Family
from faena.telemetry.metrics.metric import TOTAL, Observed
from faena.values.view import View

if TYPE_CHECKING:
    from prometheus_client import core

_APP: Final = "app"


class Exposition(View, frozen=True, kw_only=True):
    """Metrics as Prometheus reads them."""

    apart = ("body",)

    body: bytes
    content_type: str
    problem: str | None = None
    """Why the broker's numbers are missing, if they are."""


def check_extra() -> None:
    """Refuse to go on without the package that writes pages."""
    if find_spec("prometheus_client") is None:
        raise ConfigError(
            "metrics need another package: pip install 'faena[metrics]'", field="metrics"
        )


def written(app: str, families: Sequence[Family], *, openmetrics: bool) -> tuple[bytes, str]:
    """The page and its content type."""
    from prometheus_client import exposition as text  # noqa: PLC0415 - an extra
    from prometheus_client.openmetrics import exposition as modern  # noqa: PLC0415 - an extra

    page = _Page(app, families)
    if openmetrics:
        return modern.generate_latest(page), modern.CONTENT_TYPE_LATEST
    return text.generate_latest(page), text.CONTENT_TYPE_PLAIN_0_0_4


class _Page:
    """What prometheus-client calls a collector."""

    def __init__(self, app: str, families: Sequence[Family]) -> None:
        self._app, self._families = app, families

    def collect(self) -> Iterator[core.Metric]:
        """The families in the form of the client."""
        return (_collected(self._app, one) for one in self._families)


def _collected(app: str, family: Family) -> core.Metric:
    from prometheus_client.core import HistogramMetricFamily, Metric  # noqa: PLC0415 - an extra

    labels = (_APP, *family.labels)
    if family.kind == "histogram":
        durations = HistogramMetricFamily(family.name, family.text, labels=labels, unit=family.unit)
        for values, one in family.samples.items():
            if isinstance(one, Observed):
                sum_s = one.histogram.sum_us / 1e6
                durations.add_metric((app, *values), _buckets(family, one), sum_s * family.factor)
        return durations
    numbers = Metric(family.name, family.text, family.kind, family.unit)
    name = f"{family.name}{TOTAL}" if family.kind == "counter" else family.name
    for values, one in family.samples.items():
        if not isinstance(one, Observed):
            numbers.add_sample(name, dict(zip(labels, (app, *values), strict=True)), one)
    return numbers


def _buckets(family: Family, one: Observed) -> list[Any]:
    from prometheus_client.utils import floatToGoString  # noqa: PLC0415 - an extra

    bounds_s = [*family.bounds_s, float("inf")]
    counts = cumulative(one.histogram, family.bounds_s)
    rows: list[Any] = [
        (floatToGoString(round(bound_s * family.factor, 6)), number)
        for bound_s, number in zip(bounds_s, counts, strict=True)
    ]
    if one.exemplar is not None:
        run_s = one.exemplar.run_us / 1e6
        at = next(at for at, bound_s in enumerate(bounds_s) if run_s <= bound_s)
        rows[at] = (*rows[at], _exemplar(one.exemplar, family.factor))
    return rows


def _exemplar(found: Exemplar, factor: float) -> Any:
    from prometheus_client.core import Exemplar as Example  # noqa: PLC0415 - an extra

    return Example({"trace_id": found.trace_id}, found.run_us / 1e6 * factor, found.at)
