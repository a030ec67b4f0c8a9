"""The plot of a run: curves over the seconds of each scenario."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from bench.svg import heading, page

from apps.load.figure import Findings, Panel

_WIDTH, _HEIGHT = 480, 260
_LEFT, _RIGHT, _HEAD, _FOOT = 56, 16, 52, 34
_COLOURS: Final = ("#c2410c", "#2563eb", "#15803d")
_MOST_POINTS: Final = 400


def draw(found: Sequence[Findings], subtitle: str) -> str:
    """Each panel of each scenario."""
    panels = [_panel(each.scenario, one) for each in found for one in each.panels]
    return page("CampoTech under load", subtitle, panels, (_WIDTH, _HEIGHT))


def _panel(scenario: str, panel: Panel) -> str:
    points = [point for line in panel.lines for point in line.points]
    title = heading(f"{scenario}: {panel.title}")
    if not points:
        return f'{title}<text x="{_LEFT}" y="60" fill="#999999">nothing was measured</text>'
    width = max(1.0, *(second for second, _ in points))
    top = _round_up(max(value for _, value in points))
    curves = [
        _curve(line.label, _thinned(line.points), number, width, top)
        for number, line in enumerate(panel.lines)
    ]
    return f"{title}{_axes(width, top)}{''.join(curves)}"


def _curve(
    label: str, points: Sequence[tuple[float, float]], number: int, width: float, top: float
) -> str:
    colour = _COLOURS[number % len(_COLOURS)]
    path = " ".join(f"{_x(second, width):.1f},{_y(value, top):.1f}" for second, value in points)
    name = f'<text x="{_LEFT + 130 * number}" y="38" fill="{colour}">{escape(label)}</text>'
    return f'{name}<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _axes(width: float, top: float) -> str:
    parts: list[str] = []
    for part in range(5):
        y, value = _y(top * part / 4, top), top * part / 4
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke="#e2e8f0"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.4g}</text>'
        )
        second = width * part / 4
        parts.append(
            f'<text x="{_x(second, width):.1f}" y="{_HEIGHT - _FOOT + 16}" '
            f'text-anchor="middle">{second:,.0f} s</text>'
        )
    return "".join(parts)


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """So few that a plot stays small; of each group the highest."""
    ordered = sorted(points)
    size = -(-len(ordered) // _MOST_POINTS) or 1
    groups = (ordered[at : at + size] for at in range(0, len(ordered), size))
    return [max(group, key=lambda point: point[1]) for group in groups]


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10 …, so that the axis has round numbers."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 4, 8, 10) if value <= step * power)


def _x(second: float, width: float) -> float:
    return _LEFT + second / width * (_WIDTH - _LEFT - _RIGHT)


def _y(value: float, top: float) -> float:
    return _HEIGHT - _FOOT - value / top * (_HEIGHT - _FOOT - _HEAD)
