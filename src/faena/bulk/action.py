"""What can be done to many jobs, and to jobs in which states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from faena.errors import unknown_name
from faena.states import FINISHED, State


class Action(NamedTuple):
    """One of them."""

    name: str
    states: frozenset[State]
    """Jobs in another state are left alone."""
    done: frozenset[str]
    """What a shard answers where it was done; any other answer is why it was not."""


_WAITING: Final = frozenset({State.READY, State.DELAYED, State.BLOCKED})
_DEAD: Final = frozenset({State.DEAD})
_DONE: Final = frozenset({"OK"})

ACTIONS: Final[Mapping[str, Action]] = {
    one.name: one
    for one in (
        Action("promote", frozenset({State.DELAYED}), frozenset({"promoted", "ready", "blocked"})),
        Action("cancel", _WAITING | {State.RUNNING}, frozenset({"cancelled", "asked"})),
        Action("rerun", FINISHED, frozenset({"ready", "blocked"})),
        Action("retry", _DEAD, _DONE),
        Action("resolve", _DEAD, _DONE),
        Action("discard", _DEAD, _DONE),
        Action("remove", FINISHED - _DEAD, frozenset({"removed"})),
    )
}
"""By name."""


def action_of(name: str) -> Action:
    """The action of a name; the error suggests the nearest one."""
    if name not in ACTIONS:
        raise unknown_name("action", name, list(ACTIONS), value=name)
    return ACTIONS[name]
