"""The life of a job: its states, and the only ways from one to another.

The table is the single source: tests drive the engine by it, and the diagram in
`docs/design/states.md` is drawn from it. It says what may happen; the scripts decide when.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from faena.errors import ConfigError, nearest


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


@dataclass(frozen=True, slots=True)
class Transition:
    """One arrow; `source` is None before a job exists, `target` is None when it is gone."""

    name: str
    source: State | None
    target: State | None
    why: str


TRANSITIONS: Final = (
    Transition("enqueue", None, State.READY, "to run as soon as a worker is free"),
    Transition("enqueue", None, State.DELAYED, "to run later"),
    Transition("enqueue", None, State.BLOCKED, "to run after other jobs"),
    Transition("promote", State.DELAYED, State.READY, "its instant came, or somebody said now"),
    Transition("promote", State.DELAYED, State.BLOCKED, "the same, in an order: not its turn"),
    Transition("promote", State.BLOCKED, State.READY, "the jobs it waited for are done"),
    Transition("claim", State.READY, State.RUNNING, "a worker took a lease on it"),
    Transition("renew", State.RUNNING, State.RUNNING, "the worker is alive and keeps the lease"),
    Transition("complete", State.RUNNING, State.COMPLETED, "the handler returned"),
    Transition("retry", State.RUNNING, State.DELAYED, "the handler failed and may try again"),
    Transition("retry", State.RUNNING, State.READY, "the same, at once or at the head of a lane"),
    Transition("snooze", State.RUNNING, State.DELAYED, "not now; no attempt is used"),
    Transition("snooze", State.RUNNING, State.READY, "handed back at once; no attempt is used"),
    Transition("bury", State.RUNNING, State.DEAD, "out of attempts, discarded or unreadable"),
    Transition("rescue", State.RUNNING, State.READY, "the lease ran out; no attempt is used"),
    Transition("rescue", State.RUNNING, State.DEAD, "the lease ran out once too often"),
    Transition("cancel", State.BLOCKED, State.CANCELLED, "called off"),
    Transition("cancel", State.DELAYED, State.CANCELLED, "called off"),
    Transition("cancel", State.READY, State.CANCELLED, "called off"),
    Transition("cancel", State.RUNNING, State.CANCELLED, "called off; the worker is told"),
    Transition("expire", State.READY, State.CANCELLED, "its turn came too late"),
    Transition("expire", State.BLOCKED, State.CANCELLED, "the same, behind others of its chain"),
    Transition("expire", State.RUNNING, State.CANCELLED, "too late to start it, or again"),
    Transition("redrive", State.DEAD, State.READY, "run again as the same job"),
    Transition("redrive", State.DEAD, State.BLOCKED, "the same, in an order: not its turn"),
    Transition("prune", State.COMPLETED, None, "retention ended"),
    Transition("prune", State.DEAD, None, "retention ended"),
    Transition("prune", State.CANCELLED, None, "retention ended"),
    Transition("remove", State.BLOCKED, None, "an operator took it away"),
    Transition("remove", State.DELAYED, None, "the same"),
    Transition("remove", State.READY, None, "the same"),
    Transition("remove", State.COMPLETED, None, "an operator took it away"),
    Transition("remove", State.DEAD, None, "the same"),
    Transition("remove", State.CANCELLED, None, "the same"),
)


def sources(name: str) -> frozenset[State | None]:
    """The states from which the transition called `name` may start."""
    return frozenset(one.source for one in TRANSITIONS if one.name == name)


def diagram() -> str:
    """The table as a mermaid state diagram."""
    arrows = [
        f"    {one.source or '[*]'} --> {one.target or '[*]'} : {one.name}" for one in TRANSITIONS
    ]
    return "\n".join(["stateDiagram-v2", *arrows])


def table() -> str:
    """The table as Markdown, one row for each arrow."""
    rows = [
        f"| {one.name} | {one.source or 'none'} | {one.target or 'gone'} | {one.why} |"
        for one in TRANSITIONS
    ]
    return "\n".join(["| transition | from | to | when |", "|---|---|---|---|", *rows])


def state_of(value: State | str, valid: Collection[State]) -> State:
    """The state that a caller names, when it is one of the valid ones."""
    words = {state.value: state for state in valid}
    word = value.value if isinstance(value, State) else str(value)
    if word not in words:
        meant = words if word in {state.value for state in State} else ()  # and so no slip
        raise ConfigError(
            f"state must be one that fits here, got {word!r}; {nearest(word, words, never=meant)}",
            field="state",
            value=value,
        )
    return words[word]
