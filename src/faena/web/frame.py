"""What a page has around its own content: how the whole stands, and what was just done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import TYPE_CHECKING, Final

from faena.errors import FaenaError
from faena.web.standing import Standing

if TYPE_CHECKING:
    from faena.web.audit import Record
    from faena.web.operation.operation import Undo
    from faena.web.route import Visit

_LATELY: Final = 50
"""Among so many changes the one is looked for that a page was sent back from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """It, for one request."""

    standing: Standing | None = None
    """None where the broker does not answer: the page then says so."""
    done: Record | None = None
    """What this reader has just changed."""
    told: str = ""
    """It, as a sentence with names of `values`."""
    values: Mapping[str, object] = field(default_factory=dict[str, object])
    undo: Undo | None = None
    """What takes it back, if something does and the reader may."""


async def frame_of(visit: Visit) -> Frame:
    """What is around the page that is asked for; never a reason not to show it."""
    try:
        standing = await visit.site.standings.now()
        done = await _done(visit)
    except (FaenaError, OSError):
        return Frame()
    if done is None:
        return Frame(standing=standing)
    operation = visit.site.operations.get(done.operation)
    undo = None if operation is None else operation.undoing(done)
    opposite = None if undo is None else visit.site.operations.get(undo.operation)
    may = opposite is not None and visit.caller.may(opposite.needs)
    told, values = sentence_of("" if operation is None else operation.told, done)
    return Frame(standing=standing, done=done, told=told, values=values, undo=undo if may else None)


def sentence_of(sentence: str, done: Record) -> tuple[str, Mapping[str, object]]:
    """What is said, if all of its names are known."""
    given = {name: value for name, value in done.arguments.items() if value is not None}
    values = given | done.where
    named = {name for _, name, _, _ in Formatter().parse(sentence) if name}
    return (sentence if named <= values.keys() else ""), values


async def _done(visit: Visit) -> Record | None:
    """The change of this reader that the address names."""
    name = visit.request.query_params.get("done")
    if not name:
        return None
    records = await visit.site.trail.last(_LATELY)
    mine = (one for one in records if one.id == name and one.by == visit.caller.name)
    return next(mine, None)
