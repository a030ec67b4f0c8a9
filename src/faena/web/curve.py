"""Lines over time as the paths of SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

_DASH: Final = 6


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


def line(values: Sequence[float | None], most: float, width: int = 600, height: int = 140) -> str:
    """A line in a chart: a gap where there is no value, a dash for one alone; `most` is its top."""
    step, found, is_drawn = width / max(1, len(values) - 1), list[str](), False
    for at, value in enumerate(values):
        if value is None:
            is_drawn = False
            continue
        y = (height - 2) * (1 - max(0.0, value) / most) + 1 if most else height - 1
        is_alone = not is_drawn and (at + 1 == len(values) or values[at + 1] is None)
        point = f"{at * step - _DASH / 2 * is_alone:.4g},{y:.4g}"
        found.append(f"{'L' if is_drawn else 'M'}{point}{f'h{_DASH}' * is_alone}")
        is_drawn = True
    return "".join(found)


def top(values: Iterable[float | None], least: float) -> float:
    """The top of a chart: 1, 2 or 5 times a power of ten, not below the largest value."""
    most = max((value for value in values if value is not None), default=0.0)
    size = max(most, least)
    power = 10.0 ** math.floor(math.log10(size))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= size * 0.999)
