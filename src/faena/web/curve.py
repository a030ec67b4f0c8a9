"""Lines over time as the paths of SVG."""

from __future__ import annotations

from collections.abc import Sequence


def spark(values: Sequence[float], height: int = 24) -> str:
    """A line with its area below, in a box 100 wide; its top is the largest value."""
    if not values:
        return ""
    most, room = max(values) or 1.0, height - 4
    step = 100 / max(1, len(values) - 1)
    points = [
        f"{at * step:.3g},{height - 2 - room * max(0.0, value) / most:.3g}"
        for at, value in enumerate(values)
    ]
    first, last = points[0].partition(",")[2], points[-1].partition(",")[2]
    below = height + 16
    return f"M-9,{below}V{first}L{' '.join(points)}L109,{last}V{below}"


def parts(numbers: Sequence[tuple[str, int]], most: int) -> list[tuple[str, float, float]]:
    """The parts of a bar as (name, start, width) in percent.

    Bars grow with the square root of their sum, so that small queues stay visible.
    """
    total = sum(number for _, number in numbers)
    if not total or not most:
        return []
    whole, found, at = 100 * (total / most) ** 0.5, list[tuple[str, float, float]](), 0.0
    for name, number in numbers:
        width = whole * number / total
        if number:
            found.append((name, round(at, 1), round(max(width, 0.4), 1)))
        at += width
    return found
