"""A flow as a picture: its nodes in layers, by what they wait for.

Nodes of a large flow that are of one task, in one layer, are drawn as one, with how many of them
are in each state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from faena.flows import NodeView

_SINGLY: Final = 60
"""The most nodes that are drawn each on its own."""
_BOXES: Final = 120
"""The most boxes of a picture; layers beyond are left out."""
_WIDE, _HIGH = 180, 44
_BESIDE, _BELOW = 60, 20
_MARGIN: Final = 8
_LONGEST: Final = 21
WORST: Final = ("dead", "cancelled", "skipped", "sent", "waiting", "completed")
"""States of nodes, what somebody should look at first."""


class Box(NamedTuple):
    """A node, or several."""

    x: int
    y: int
    title: str
    """Cut to fit; the whole name is in `names`."""
    names: str
    state: str
    """The worst of its nodes."""
    counts: Sequence[tuple[str, int]]
    """State → how many, the worst first."""
    node: NodeView | None
    """None where there are several."""


class Graph(NamedTuple):
    """It, as a template draws it."""

    boxes: Sequence[Box]
    edges: Sequence[str]
    """Paths."""
    width: int
    height: int
    is_folded: bool
    left_out: int
    """Nodes that are not drawn."""


def graph_of(nodes: Sequence[NodeView]) -> Graph:
    """The picture of a flow."""
    depth = _depths(nodes)
    is_folded = len(nodes) > _SINGLY
    groups: dict[tuple[int, str], list[NodeView]] = {}
    for node in nodes:
        name = node.task if is_folded else node.name
        groups.setdefault((depth[node.name], name), []).append(node)
    layers: dict[int, list[tuple[int, str]]] = {}
    for key in sorted(groups, key=lambda one: one[0])[:_BOXES]:
        layers.setdefault(key[0], []).append(key)
    tallest = max((len(one) for one in layers.values()), default=0)
    boxes: dict[tuple[int, str], Box] = {}
    for layer, keys in layers.items():
        above = (tallest - len(keys)) * (_HIGH + _BELOW) // 2
        for row, key in enumerate(keys):
            x = _MARGIN + layer * (_WIDE + _BESIDE)
            y = _MARGIN + above + row * (_HIGH + _BELOW)
            boxes[key] = _box(x, y, key[1], groups[key])
    where = {node.name: key for key in boxes for node in groups[key]}
    return Graph(
        boxes=[*boxes.values()],
        edges=_edges(boxes, groups, where),
        width=2 * _MARGIN + len(layers) * (_WIDE + _BESIDE) - _BESIDE if layers else 0,
        height=2 * _MARGIN + tallest * (_HIGH + _BELOW) - _BELOW if layers else 0,
        is_folded=is_folded,
        left_out=len(nodes) - len(where),
    )


def _depths(nodes: Sequence[NodeView]) -> Mapping[str, int]:
    """How many layers are before each node; a plan has no circles."""
    parents, depth = {node.name: node.after for node in nodes}, dict[str, int]()
    for name in parents:
        waiting = [name]
        while waiting:
            first = waiting[-1]
            missing = [one for one in parents.get(first, ()) if one not in depth]
            if missing and len(waiting) <= len(parents):
                waiting += missing
                continue
            above = (depth.get(one, 0) + 1 for one in parents.get(first, ()))
            depth[first] = max(above, default=0)
            waiting.pop()
    return depth


def _box(x: int, y: int, name: str, nodes: Sequence[NodeView]) -> Box:
    counts = Counter(node.state for node in nodes)
    ranked = sorted(counts.items(), key=lambda one: _rank(one[0]))
    title = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    node = nodes[0] if len(nodes) == 1 else None
    return Box(x, y, title, name, ranked[0][0], ranked, node)


def _edges(
    boxes: Mapping[tuple[int, str], Box],
    groups: Mapping[tuple[int, str], Sequence[NodeView]],
    where: Mapping[str, tuple[int, str]],
) -> list[str]:
    found: dict[str, None] = {}
    for key, box in boxes.items():
        for node in groups[key]:
            for name in node.after:
                parent = boxes.get(where.get(name, key))
                if parent is not None and parent is not box:
                    found[_curve(parent, box)] = None
    return [*found]


def _curve(parent: Box, child: Box) -> str:
    begin, end = parent.x + _WIDE, child.x
    above, below = parent.y + _HIGH // 2, child.y + _HIGH // 2
    middle = (begin + end) // 2
    return f"M{begin},{above}C{middle},{above} {middle},{below} {end},{below}"


def _rank(state: str) -> int:
    return WORST.index(state) if state in WORST else len(WORST)


def worst_first(nodes: Sequence[NodeView]) -> list[NodeView]:
    """The nodes in order of how much somebody should look at them."""
    return sorted(nodes, key=lambda node: _rank(node.state))
