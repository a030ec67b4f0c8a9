"""The states of a job. Script headers declare the transitions; see `docs/design/states.md`."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Final

from faena.errors import ArgumentError, as_text, nearest, shown


class State(StrEnum):
    """A job is in exactly one state until retention removes it."""

    BLOCKED = "blocked"
    """Waiting for other jobs."""

    DELAYED = "delayed"
    """Waiting for an instant."""

    READY = "ready"
    """Waiting for a worker."""

    RUNNING = "running"
    """Leased to a worker."""

    COMPLETED = "completed"
    """Done; retention decides how long it and its result are kept."""

    DEAD = "dead"
    """Given up; the dead-letter desk has it."""

    CANCELLED = "cancelled"
    """Cancelled before it was done."""


FINISHED: Final = frozenset({State.COMPLETED, State.DEAD, State.CANCELLED})
LIVE: Final = frozenset(State) - FINISHED


def state_of(value: State | str, valid: Collection[State]) -> State:
    """The state with this name, if it is one of the valid ones."""
    words = {state.value: state for state in valid}
    word = value.value if isinstance(value, State) else as_text(value)
    if word not in words:
        is_other = word in {state.value for state in State}  # so no typo
        kind = "one that this call accepts" if is_other else "the name of a state"
        raise ArgumentError(
            f"state must be {kind}, got {shown(word)}; "
            f"{nearest(word, words, never=words if is_other else ())}",
            field="state",
            value=value,
        )
    return words[word]
