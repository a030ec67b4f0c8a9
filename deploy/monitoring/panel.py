"""A panel of a dashboard, and how it is written for Grafana."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
COLUMNS: Final = 24
HEIGHT: Final = 8
_STAT_HEIGHT: Final = 4


class Query(NamedTuple):
    """A query, and what its lines are called."""

    text: str
    legend: str = ""


class Panel(NamedTuple):
    """One chart or number."""

    title: str
    queries: Sequence[Query]
    unit: str = "short"
    """As Grafana calls it: short, s, percentunit, bytes, ops."""
    kind: str = "timeseries"
    """timeseries, stat or bargauge."""
    text: str = ""
    """What it shows, where the title does not say it."""
    width: int = 8
    """Of 24 columns."""

    @property
    def height(self) -> int:
        return _STAT_HEIGHT if self.kind == "stat" else HEIGHT


def chart(title: str, *queries: Query, unit: str = "short", text: str = "") -> Panel:
    """Lines over time, three charts in a row."""
    return Panel(title, queries, unit, text=text)


def number(title: str, query: str, *, unit: str = "short", text: str = "") -> Panel:
    """One number, six in a row."""
    return Panel(title, [Query(query)], unit, "stat", text, width=4)


def laid_out(panels: Sequence[Panel]) -> list[dict[str, Any]]:
    """From left to right, row by row; a row is as high as its panels."""
    found: list[dict[str, Any]] = []
    left, top, height = 0, 0, 0
    for at, panel in enumerate(panels, 1):
        if left + panel.width > COLUMNS or (height and panel.height != height):
            left, top = 0, top + height
        height = panel.height
        place = {"x": left, "y": top, "w": panel.width, "h": height}
        found.append(_written(at, panel) | {"gridPos": place})
        left += panel.width
    return found


def _written(number: int, panel: Panel) -> dict[str, Any]:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": _options(panel),
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": SOURCE,
                "expr": query.text,
                "legendFormat": query.legend or "__auto",
            }
            for at, query in enumerate(panel.queries)
        ],
    }


def _options(panel: Panel) -> dict[str, Any]:
    if panel.kind == "timeseries":
        legend = {"displayMode": "list", "placement": "bottom", "showLegend": True}
        return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
    return {"reduceOptions": {"calcs": ["lastNotNull"]}}
