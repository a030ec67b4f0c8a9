"""The page of metrics: each with its type, labels and unit, and what other systems call it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from faena.telemetry.metrics.declared import METRICS
from faena.telemetry.metrics.metric import Alias, Metric

INTRO = (
    "What [pages of metrics](../metrics.md) have. Every metric also has the label `app`. Names "
    "without any sample are left out, such as those of upstreams where there are none.\n\n"
    "With `Faena(metrics=Metrics(aliases=True))` the same numbers are there a second time, "
    "under the names of the systems at the end of this page."
)
SYSTEMS = ("CampoTech", "CEP", "ZapHub")
_PARTS = {
    "broker": (
        "From the broker",
        "The same on every page that has them, whoever asks: over processes, take the `max`.",
    ),
    "worker": (
        "From a worker",
        "What that process has measured since it began: over workers, take the `sum`.",
    ),
}
_OWN = ("metric", "type", "labels", "unit", "meaning")
_THEIRS = ("there", "on the page", "labels", "is")


def sections() -> Iterator[str]:
    """Own metrics by who knows them, then the names of other systems."""
    for source, (title, text) in _PARTS.items():
        found = [_own(one) for one in METRICS if one.source == source]
        yield "\n".join([f"## {title}", "", text, "", *_table(_OWN, found)])
    for system in SYSTEMS:
        rows = _table(_THEIRS, _others(system))
        yield "\n".join([f"## Names of {system}", "", *rows])


def _own(metric: Metric) -> list[str]:
    return [
        _code(metric.name),
        metric.kind,
        ", ".join(map(_code, metric.labels)),
        metric.unit,
        metric.text,
    ]


def _others(system: str) -> Iterator[list[str]]:
    """One row for each name, with all metrics that it is made of."""
    parts: dict[str, list[tuple[Metric, Alias]]] = {}
    for metric in METRICS:
        for alias in metric.aliases:
            if alias.system == system:
                parts.setdefault(alias.written, []).append((metric, alias))
    for written, found in parts.items():
        alias = found[0][1]
        made = " + ".join(dict.fromkeys(_made_of(*one) for one in found))
        yield [_code(written), _code(alias.name), ", ".join(map(_code, alias.labels)), made]


def _made_of(metric: Metric, alias: Alias) -> str:
    only = ", ".join(f'{label}="{value}"' for label, value in alias.only.items())
    fixed = ", ".join(f'{label}="{value}"' for label, value in alias.fixed.items())
    name = _code(f"{metric.name}{{{only}}}" if only else metric.name)
    unit = " in milliseconds" if alias.factor == 1000 else ""
    return f"{name}{unit}{f' as {_code(fixed)}' if fixed else ''}"


def _code(text: str) -> str:
    return f"`{text}`"


def _table(heads: Sequence[str], rows: Iterable[list[str]]) -> list[str]:
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    rule = "|".join(["---"] * len(heads))
    return [f"| {' | '.join(heads)} |", f"|{rule}|", *(f"| {line} |" for line in lines)]
