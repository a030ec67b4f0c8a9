"""Everything that an event can be about; `docs/events.md` shows this table."""

from __future__ import annotations

from typing import Final, NamedTuple


class Kind(NamedTuple):
    """One name of events."""

    name: str
    about: str
    """job, flow, group, schedule or queue: what the event's `job` or `value` names."""
    means: str


KINDS: Final = (
    Kind("enqueued", "job", "taken in, by a producer or as the retry of a dead one"),
    Kind("replaced", "job", "given up for a newer one with the same unique claim"),
    Kind("promoted", "job", "no longer delayed"),
    Kind("unblocked", "job", "no longer waiting for another job"),
    Kind("changed", "job", "given another delay or priority"),
    Kind("claimed", "job", "started by a worker"),
    Kind("completed", "job", "done"),
    Kind("retried", "job", "failed, and to be tried again"),
    Kind("snoozed", "job", "put off by its handler"),
    Kind("limited", "job", "put off because a provider said so"),
    Kind("released", "job", "handed back by a worker that stops"),
    Kind("rescued", "job", "taken from a worker that is gone"),
    Kind("dead", "job", "given up"),
    Kind("cancelled", "job", "called off"),
    Kind("stopping", "job", "running, and asked to stop"),
    Kind("removed", "job", "taken out by hand"),
    Kind("redriven", "job", "finished, and run again under its id"),
    Kind("dead_retried", "job", "dead, and retried as a new job"),
    Kind("dead_discarded", "job", "dead, and given up for good"),
    Kind("dead_resolved", "job", "dead, and dealt with by hand"),
    Kind("departed", "job", "on its way to another shard"),
    Kind("arrived", "job", "come from another shard"),
    Kind("flow_completed", "flow", "all of its nodes have completed"),
    Kind("flow_failed", "flow", "a node has failed"),
    Kind("flow_cancelling", "flow", "being called off by hand"),
    Kind("flow_cancelled", "flow", "called off"),
    Kind("flow_retried", "flow", "run again, what of it has not completed"),
    Kind("group_finished", "group", "all of its members have ended"),
    Kind("schedule_fired", "job", "made by a schedule"),
    Kind("schedule_skipped", "job", "not made, because the one before is still there"),
    Kind("schedule_refused", "job", "not taken in"),
    Kind("schedule_missed", "job", "not made, because nobody fired its instant in time"),
    Kind("schedule_changed", "schedule", "made, edited, paused or resumed by hand"),
    Kind("schedule_removed", "schedule", "removed by hand"),
    Kind("tenant_changed", "queue", "something was decided for a tenant: its lane"),
    Kind("paused", "queue", "held by hand: the reason"),
    Kind("resumed", "queue", "no longer held: the reason"),
    Kind("configured", "queue", "a setting was changed by hand: its name on the server"),
    Kind("reset", "queue", "code decides a setting again: its name on the server"),
    Kind("cleaned", "queue", "jobs were removed by hand: their state and number, `dead:50`"),
    Kind("dead_surge", "queue", "more deaths in an hour than `alert_new`: their number"),
    Kind("dead_many", "queue", "more pending dead jobs than `alert_waiting`: their number"),
    Kind("dead_old", "queue", "a dead job is pending for longer than `alert_age`: its queue/id"),
    Kind("gap", "queue", "events before this one are lost: see below"),
)

NAMES: Final = tuple(kind.name for kind in KINDS)
OF_JOBS: Final = frozenset(kind.name for kind in KINDS if kind.about == "job")
OF_REASONS: Final = frozenset({"paused", "resumed"})
"""What these name is one text, in which there may be spaces."""


def table() -> str:
    """The kinds as Markdown, one row for each."""
    rows = [f"| `{kind.name}` | {kind.about} | {kind.means} |" for kind in KINDS]
    return "\n".join(["| name | about | means |", "|---|---|---|", *rows])
