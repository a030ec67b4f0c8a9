"""The states of a job. The ways from one to another are told by the headers of the scripts, and
shown in `docs/design/states.md`.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Final

from faena.errors import ConfigError, as_text, nearest, shown


class State(StrEnum):
    """Where a job is; it is in exactly one state until it is pruned."""

    BLOCKED = "blocked"
    """Waiting for other jobs."""

    DELAYED = "delayed"
    """Waiting for an instant."""

    READY = "ready"
    """Waiting for a worker."""

    RUNNING = "running"
    """Leased to a worker."""

    COMPLETED = "completed"
    """Done; its result is kept as long as the queue retains it."""

    DEAD = "dead"
    """Given up; it waits at the dead-letter desk."""

    CANCELLED = "cancelled"
    """Called off before it was done."""


FINISHED: Final = frozenset({State.COMPLETED, State.DEAD, State.CANCELLED})
LIVE: Final = frozenset(State) - FINISHED


def state_of(value: State | str, valid: Collection[State]) -> State:
    """The state that a caller names, when it is one of the valid ones."""
    words = {state.value: state for state in valid}
    word = value.value if isinstance(value, State) else as_text(value)
    if word not in words:
        meant = words if word in {state.value for state in State} else ()  # and so no slip
        raise ConfigError(
            f"state must be one that fits here, got {shown(word)}; "
            f"{nearest(word, words, never=meant)}",
            field="state",
            value=value,
        )
    return words[word]
