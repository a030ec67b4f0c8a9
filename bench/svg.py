"""The frame of a chart: plain SVG with a title, panels in columns, no dependency to draw it."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

GAP, TOP = 24, 64
"""Around panels, and above the first one."""


def page(title: str, subtitle: str, panels: Sequence[str], size: tuple[int, int]) -> str:
    """Two columns of panels of one size; their text begins at their own corner."""
    panel_w, panel_h = size
    rows = -(-len(panels) // 2)
    width, height = 2 * (panel_w + GAP) + GAP, TOP + rows * panel_h
    placed = (
        f'<g transform="translate({GAP + i % 2 * (panel_w + GAP)},{TOP + i // 2 * panel_h})">'
        f"{panel}</g>"
        for i, panel in enumerate(panels)
    )
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">',
            '<g font-family="sans-serif" font-size="11">',
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            f'<text x="{GAP}" y="28" font-size="17" font-weight="bold">{escape(title)}</text>',
            f'<text x="{GAP}" y="46" fill="#666666">{escape(subtitle)}</text>',
            *placed,
            "</g></svg>\n",
        )
    )


def heading(title: str) -> str:
    """The first line of a panel."""
    return f'<text y="20" font-weight="bold">{escape(title)}</text>'
