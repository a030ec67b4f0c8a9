"""Queries on declared metrics, which know how a metric is added up.

What the broker knows is on the page of every process that asked it, so all processes tell the same
number and one of them counts: `max`. What a worker has measured is its own part: `sum`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from faena.telemetry.metrics.declared import METRICS
from faena.telemetry.metrics.metric import Metric

KNOWN: Final[Mapping[str, Metric]] = {one.name: one for one in METRICS}
_NAME: Final = re.compile(r"\b(?:app[a-z_]*:)?faena_[a-z_]+(?::[a-z0-9_]+)?\b")
_ENDINGS: Final = ("_bucket", "_count", "_sum")
_LABEL: Final = re.compile(r"[a-z]+")
_OPEN: Final = re.compile(r"=~|!=")
"""Conditions that leave several values."""


def latest(name: str, *where: str, by: Sequence[str] | None = None) -> str:
    """The number that there is now, by the metric's labels, or by some of them."""
    return _added(name, f"{_declared(name).name}{_braces(where)}", where, by)


def rate(
    name: str, *where: str, by: Sequence[str] | None = None, window: str = "$__rate_interval"
) -> str:
    """How often a second, lately."""
    return _added(name, f"rate({name}{_braces(where)}[{window}])", where, by)


def increase(name: str, *where: str, by: Sequence[str] | None = None, window: str) -> str:
    """How often in a window."""
    return _added(name, f"increase({name}{_braces(where)}[{window}])", where, by)


def quantile(
    part: float, name: str, *where: str, by: Sequence[str], window: str = "$__rate_interval"
) -> str:
    """The duration that a part of all did not exceed lately."""
    if _declared(name).kind != "histogram":
        raise ValueError(f"{name} must be a histogram")
    labels = ", ".join(("app", *by, "le"))
    buckets = f"sum by ({labels}) (rate({name}_bucket{_braces(where)}[{window}]))"
    return f"histogram_quantile({part:g}, {buckets})"


def names_in(query: str) -> set[str]:
    """The metrics that a query names, as they are declared, and the recorded ones."""
    found: set[str] = set()
    for name in _NAME.findall(query):
        plain = [name.removesuffix(end) for end in _ENDINGS if name.endswith(end)]
        found.add(next((one for one in plain if one in KNOWN), name))
    return found


def unknown_in(queries: Iterable[str], recorded: Iterable[str]) -> set[str]:
    """Names that nothing declares."""
    named = {name for query in queries for name in names_in(query)}
    return named - {*KNOWN} - {*recorded}


def _added(name: str, query: str, where: Sequence[str], by: Sequence[str] | None) -> str:
    metric = _declared(name)
    fixed = {_label(one) for one in where if not _OPEN.search(one)}
    labels = [one for one in metric.labels if one not in fixed] if by is None else [*by]
    for one in {*labels, *map(_label, where)} - {*metric.labels, "app"}:
        raise ValueError(f"{name} has no label {one}")
    how = "max" if metric.source == "broker" else "sum"
    return f"{how} by ({', '.join(('app', *labels))}) ({query})"


def _declared(name: str) -> Metric:
    if name not in KNOWN:
        raise ValueError(f"{name} is not declared")
    return KNOWN[name]


def _label(where: str) -> str:
    found = _LABEL.match(where)
    return found[0] if found else ""


def _braces(where: Sequence[str]) -> str:
    return f"{{{', '.join(where)}}}" if where else ""
