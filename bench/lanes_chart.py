"""The chart of a run: plain SVG, bars for drains, waits and shares, and the curve of claims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from bench.lanes_claims import Curve
from bench.lanes_drain import Rated
from bench.lanes_fairness import Neighbours, Shares
from bench.svg import heading, page

_PANEL_W, _PANEL_H = 480, 320
_LABEL_W, _VALUE_W, _BAR_H, _HEAD_H = 130, 130, 18, 34
_COLOURS = ("#c2410c", "#2563eb")
_AXIS_X, _AXIS_Y = 46, 40


class Bar(NamedTuple):
    """A length with its name and the words beside it."""

    label: str
    length: float
    words: str
    is_ours: bool = True


def draw(
    drains: Sequence[Rated],
    curves: Sequence[Curve],
    neighbours: Neighbours | None,
    shares: Sequence[Shares],
    subtitle: str,
) -> str:
    """Four panels, of which those without figures stay empty."""
    panels = (
        _bars("drain (jobs/s, more is better)", _drain_bars(drains)),
        _curves("server time of a claim by lanes (times that without)", curves),
        _bars("wait of a quiet tenant (ms, less is better)", _wait_bars(neighbours)),
        _bars("jobs served, by weight (as much each is fair)", _share_bars(shares)),
    )
    return page("tenants in turn", subtitle, panels, (_PANEL_W, _PANEL_H))


def _drain_bars(drains: Sequence[Rated]) -> list[Bar]:
    return [
        Bar(one.case.name, one.rate, f"{one.rate:,.0f} ({100 * one.ratio:.0f} %)", i > 0)
        for i, one in enumerate(drains)
    ]


def _wait_bars(found: Neighbours | None) -> list[Bar]:
    if found is None:
        return []
    return [
        Bar(f"{name}, {share}", ms, f"{ms:.2f}", waits is found.beside)
        for name, waits in (("alone", found.alone), (f"beside {found.noise:,}", found.beside))
        for share, ms in (("p50", waits.p50), ("p99", waits.p99))
    ]


def _share_bars(shares: Sequence[Shares]) -> list[Bar]:
    """Of weighted tenants each; of equal ones the least and the most."""
    bars: list[Bar] = []
    for one in shares:
        pairs = sorted(zip(one.weights, one.served, strict=True))
        is_equal = len(set(one.weights)) == 1
        for weight, jobs in (pairs[0], pairs[-1]) if is_equal else pairs:
            name = f"one of {len(pairs)} equal" if is_equal else f"weight {weight}"
            part = jobs / weight * len(pairs) / sum(one.served) * sum(one.weights) / len(pairs)
            bars.append(Bar(name, part, f"{jobs:,} jobs, {part:.3f}", not is_equal))
    return bars


def _bars(title: str, bars: Sequence[Bar]) -> str:
    top = max((bar.length for bar in bars), default=1.0) or 1.0
    room = _PANEL_W - _LABEL_W - _VALUE_W
    parts = [heading(title)]
    for row, bar in enumerate(bars):
        y, length = _HEAD_H + row * _BAR_H, max(bar.length / top * room, 1.0)
        colour = _COLOURS[0] if bar.is_ours else "#94a3b8"
        parts.append(
            f'<text x="{_LABEL_W - 6}" y="{y + 12}" text-anchor="end">{escape(bar.label)}</text>'
            f'<rect x="{_LABEL_W}" y="{y + 2}" width="{length:.1f}" height="{_BAR_H - 5}" '
            f'fill="{colour}"/>'
            f'<text x="{_LABEL_W + length + 5:.1f}" y="{y + 12}">{escape(bar.words)}</text>'
        )
    return "".join(parts)


def _curves(title: str, curves: Sequence[Curve]) -> str:
    """Points as measured, a line as fitted, as multiples of the same claim without lanes."""
    if not curves:
        return heading(title)
    most = max(us / curve.unlaned for curve in curves for _, us in curve.points) * 1.3
    decades = math.log10(max(lanes for lanes, _ in curves[0].points))
    parts = [heading(title), *_axes(most, math.ceil(decades), decades)]
    for number, (curve, colour) in enumerate(zip(curves, _COLOURS, strict=False)):
        for lanes, us in curve.points:
            x, y = _x(lanes, decades), _y(us / curve.unlaned, most)
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
        first, last = curve.points[0][0], curve.points[-1][0]
        begins, ends = (curve.fit.at(lanes) / curve.unlaned for lanes in (first, last))
        parts.append(
            f'<line x1="{_x(first, decades):.1f}" y1="{_y(begins, most):.1f}" '
            f'x2="{_x(last, decades):.1f}" y2="{_y(ends, most):.1f}" '
            f'stroke="{colour}"/>'
        )
        words = (
            f"claims of {curve.size}: {curve.fit.base:.1f} + {curve.fit.slope:.2f} log10(lanes) us"
        )
        y = _HEAD_H + 10 + 14 * number
        parts.append(f'<text x="{_AXIS_X + 8}" y="{y}" fill="{colour}">{words}</text>')
    return "".join(parts)


def _axes(most: float, decades: int, width: float) -> list[str]:
    ticks = [
        f'<text x="{_x(10**power, width):.1f}" y="{_PANEL_H - _AXIS_Y + 16}" '
        f'text-anchor="middle">{10**power:,}</text>'
        for power in range(1, decades + 1)
    ]
    marks = [
        f'<text x="{_AXIS_X - 6}" y="{_y(most * part / 4, most) + 4:.1f}" text-anchor="end">'
        f"{most * part / 4:.1f}</text>"
        f'<line x1="{_AXIS_X}" x2="{_PANEL_W - 20}" y1="{_y(most * part / 4, most):.1f}" '
        f'y2="{_y(most * part / 4, most):.1f}" stroke="#e2e8f0"/>'
        for part in range(5)
    ]
    return marks + ticks


def _x(lanes: float, decades: float) -> float:
    return _AXIS_X + (math.log10(lanes) - 0.8) / (decades - 0.8) * (_PANEL_W - _AXIS_X - 40)


def _y(times: float, most: float) -> float:
    return _PANEL_H - _AXIS_Y - times / most * (_PANEL_H - _AXIS_Y - _HEAD_H - 10)
