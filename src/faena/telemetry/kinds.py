"""Everything that an event can be about; `docs/events.md` shows this table."""

from __future__ import annotations

from typing import Final, NamedTuple


class Kind(NamedTuple):
    """One name of events."""

    name: str
    about: str
    """job, flow, group, schedule, queue, upstream …: what the event's `job` or `value` names."""
    means: str


KINDS: Final = (
    Kind("enqueued", "job", "accepted, from a producer or as a new job made of a dead one"),
    Kind("replaced", "job", "replaced by a newer job with the same unique claim"),
    Kind("promoted", "job", "no longer delayed"),
    Kind("unblocked", "job", "no longer waiting for another job"),
    Kind("changed", "job", "its delay or priority was changed"),
    Kind("claimed", "job", "started by a worker"),
    Kind("completed", "job", "completed"),
    Kind("retried", "job", "an attempt failed, and the job will be retried"),
    Kind("snoozed", "job", "postponed by its handler"),
    Kind(
        "parked",
        "job",
        "put off by a worker: unknown task or version, or its upstream takes no calls",
    ),
    Kind("limited", "job", "postponed because a provider limited the rate"),
    Kind("released", "job", "released by a stopping worker"),
    Kind("rescued", "job", "put back after its worker was lost"),
    Kind("dead", "job", "failed for good"),
    Kind("fell_back", "job", "its fallback was used: a function, another task or a person's hands"),
    Kind("escalated", "job", "handed over to a person, as a job of its own"),
    Kind("fallback_failed", "job", "its fallback failed as well, and the job is dead"),
    Kind("cancelled", "job", "cancelled"),
    Kind("stopping", "job", "running, and asked to stop"),
    Kind("removed", "job", "removed by hand"),
    Kind("rerun", "job", "finished, and ready again: the same job, with fresh attempts"),
    Kind("retried_as_new", "job", "dead, and retried as a new job that is linked to it"),
    Kind("dead_discarded", "job", "dead, and discarded at the desk"),
    Kind("dead_resolved", "job", "dead, and resolved at the desk"),
    Kind("moved_out", "job", "moving to another shard"),
    Kind("moved_in", "job", "moved here from another shard"),
    Kind("flow_completed", "flow", "all of its nodes have completed"),
    Kind("flow_failed", "flow", "a node has failed"),
    Kind("flow_cancelling", "flow", "being cancelled by hand"),
    Kind("flow_cancelled", "flow", "cancelled"),
    Kind("flow_rerun", "flow", "running again: new jobs for the nodes that had not completed"),
    Kind("group_finished", "group", "all of its members have ended"),
    Kind("schedule_fired", "job", "created by a schedule"),
    Kind("schedule_skipped", "job", "not created, because the previous job is still live"),
    Kind("schedule_refused", "job", "not accepted by the queue"),
    Kind("schedule_missed", "job", "not created, because its instant did not fire in time"),
    Kind("schedule_changed", "schedule", "created, edited, paused or resumed by hand"),
    Kind("schedule_removed", "schedule", "removed by hand"),
    Kind("tenant_changed", "queue", "the settings of a tenant were changed: its lane"),
    Kind("paused", "queue", "held by hand: the reason"),
    Kind("resumed", "queue", "no longer held: the reason"),
    Kind("configured", "queue", "a setting was changed by hand: its name on the server"),
    Kind("reset", "queue", "a setting was reset to the code's value: its name on the server"),
    Kind("cleaned", "queue", "jobs were removed by hand: their state and number, `dead:50`"),
    Kind("dead_surge", "queue", "more deaths in an hour than `alert_new`: their number"),
    Kind("dead_many", "queue", "more pending dead jobs than `alert_waiting`: their number"),
    Kind(
        "dead_old", "queue", "a dead job has been pending for longer than `alert_age`: its queue/id"
    ),
    Kind("upstream_open", "upstream", "its breaker has opened: no more calls; the reason"),
    Kind("upstream_half_open", "upstream", "its breaker lets probes through"),
    Kind("upstream_recovering", "upstream", "its probes succeeded: more and more calls"),
    Kind("upstream_closed", "upstream", "its breaker has closed: all calls"),
    Kind("upstream_rate_limited", "upstream", "it asked for no calls for some time"),
    Kind("upstream_fallback_failed", "upstream", "a call fell back, and that failed as well"),
    Kind("upstream_panic", "upstream", "in panic: no call at all; who called it, and the reason"),
    Kind("upstream_panic_ended", "upstream", "its panic was ended, or is over; the reason it had"),
    Kind("upstream_forgotten", "upstream", "removed by hand; `$` for the budgets of all upstreams"),
    Kind("feature_healthy", "feature", "all is well again: what it was before"),
    Kind("feature_degraded", "feature", "degraded: what it was before, and the source"),
    Kind("feature_offline", "feature", "offline: what it was before, and the source"),
    Kind("feature_set", "feature", "set by hand: the state, and the message"),
    Kind("feature_cleared", "feature", "no longer set by hand"),
    Kind("feature_forgotten", "feature", "removed by hand"),
    Kind("level_on", "level", "switched on: the message"),
    Kind("level_off", "level", "switched off"),
    Kind("level_forgotten", "level", "removed by hand"),
    Kind("budget_threshold", "upstream", "how much of a budget is spent; a currency for the total"),
    Kind("budget_used_up", "upstream", "a hard budget has no room for another call; likewise"),
    Kind("alert_firing", "alert", "fires: its rule and subject; the severity and the value"),
    Kind("alert_escalated", "alert", "was a warning, and is critical; likewise"),
    Kind("alert_eased", "alert", "was critical, and is a warning; likewise"),
    Kind("alert_resolved", "alert", "fires no more; likewise"),
    Kind("alert_silenced", "alert", "silenced by hand: rule and subject, `*` for any; the reason"),
    Kind("alert_unsilenced", "alert", "no longer silenced; likewise"),
    Kind("outbox_late", "database", "jobs wait too long in its outbox: how many, and how long"),
    Kind("outbox_on_time", "database", "jobs wait in its outbox no longer than they should"),
    Kind("replica_late", "app", "a process reads from the primary, not from its replica: why"),
    Kind("replica_on_time", "app", "that process reads from the replica again"),
    Kind("history_late", "shard", "ended jobs wait too long to be stored: how long"),
    Kind("history_on_time", "shard", "ended jobs wait no longer than they should"),
    Kind("history_gap", "shard", "ended jobs found no room, and are lost to it: how many"),
    Kind("partitions_short", "table", "partitions are missing, or will be soon: the problems"),
    Kind("archive_failed", "table", "old rows could not be archived or deleted: the reason"),
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
