"""The chart of a run: plain SVG, one panel of bars per work, no dependency to draw it."""

from __future__ import annotations

from xml.sax.saxutils import escape

from bench.campaign import Results, plain
from bench.catalogue import FAENA, Work
from bench.svg import GAP, heading, page

_PANEL_W, _BAR_H, _HEAD_H = 460, 18, 34
_LABEL_W, _VALUE_W = 96, 84
_BAR_W = _PANEL_W - _LABEL_W - _VALUE_W


def draw(results: Results, subtitle: str) -> str:
    """Render all works; bars are linear from zero, and every bar carries its figure."""
    panel_h = _HEAD_H + _BAR_H * len(results.systems) + GAP
    panels = [_panel(results, work) for work in results.works]
    return page("faena and its peers", subtitle, panels, (_PANEL_W, panel_h))


def _panel(results: Results, work: Work) -> str:
    figures = {system.name: results.median(work, system) for system in results.systems}
    top = max((figure for figure in figures.values() if figure), default=1.0)
    aim = "more" if work.more_is_better else "less"
    title = f"{work.label} ({work.unit}, {aim} is better)"
    bars = [
        _bar(name, figure, top, _HEAD_H + row * _BAR_H)
        for row, (name, figure) in enumerate(figures.items())
    ]
    return f"{heading(title)}{''.join(bars)}"


def _bar(name: str, figure: float | None, top: float, y: int) -> str:
    label = f'<text x="{_LABEL_W - 6}" y="{y + 12}" text-anchor="end">{escape(name)}</text>'
    if figure is None:
        return f'{label}<text x="{_LABEL_W}" y="{y + 12}" fill="#999999">not measured</text>'
    length = max(figure / top * _BAR_W, 1.0)
    colour = "#c2410c" if name == FAENA.name else "#94a3b8"
    bar = f'width="{length:.1f}" height="{_BAR_H - 5}" fill="{colour}"'
    value = f'<text x="{_LABEL_W + length + 5:.1f}" y="{y + 12}">{plain(figure)}</text>'
    return f'{label}<rect x="{_LABEL_W}" y="{y + 2}" {bar}/>{value}'
