"""Why a job is where it is: the reasons there are, what each means and what must happen next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from faena.values.view import View

Detail = str | int | float | None


class Meaning(NamedTuple):
    """What a reason says of a job."""

    meaning: str
    next: str
    """What must happen next; names in braces are details. Empty: nothing more will happen."""


_HELD: Final = "an operator resumes it, or the hold ends"

REASONS: Final[Mapping[str, Meaning]] = {
    # in line
    "next": Meaning("nothing keeps it", "a worker with a free slot claims it"),
    "line": Meaning("other jobs come first", "the jobs before it start"),
    "turn": Meaning(
        "tenants take turns; `ahead` tenants come before its own", "its tenant's turn comes"
    ),
    "unserved": Meaning(
        "no worker serves its queue, or its shard", "start a worker for queue {queue}"
    ),
    "slots": Meaning(
        "all slots of all workers are taken", "a running job ends, or another worker is started"
    ),
    "no_handler": Meaning(
        "a worker did not know its task, or the version of its payload",
        "start a worker that has this task; it is tried again at the given time",
    ),
    # time
    "delayed": Meaning("it is not due yet", "its time comes, or it is promoted"),
    "retry": Meaning(
        "an attempt failed, and the next one waits", "its time comes, or it is promoted"
    ),
    "snoozed": Meaning("its handler put it off", "its time comes, or it is promoted"),
    "parked": Meaning("a worker put it off", "a worker tries it again at the given time"),
    "expires": Meaning("it must start before an instant", "it starts in time, or it is cancelled"),
    # other jobs
    "order": Meaning("it comes after another job of its queue, tenant or key", "job {job} ends"),
    "unique": Meaning("another job has its unique claim", "job {job} ends"),
    "flow": Meaning("it is a node of a flow, and nodes before it have not ended", "{first} ends"),
    "flow_building": Meaning(
        "its flow is not completely written", "the program that starts flow {flow} ends its call"
    ),
    "group": Meaning("it is a callback of a group whose members have not ended", "they end"),
    "group_open": Meaning("its group is not sealed", "the program seals group {group}"),
    "group_failed": Meaning(
        "it runs only if all members complete, and some did not",
        "members of group {group} that failed are run again and complete",
    ),
    # bounds
    "held": Meaning("its queue is held", _HELD),
    "rate_limited": Meaning(
        "a handler said that its provider wants no calls now", "the hold ends, or is released"
    ),
    "max_running": Meaning("its queue runs as many jobs as it may", "a running job ends"),
    "limit": Meaning("a limit of its queue is used up", "the limit has room again"),
    "tenant_held": Meaning("its tenant is held", _HELD),
    "tenant_max_running": Meaning(
        "its tenant runs as many jobs as it may", "a running job of this tenant ends"
    ),
    "tenant_limit": Meaning("a limit of its tenant is used up", "the limit has room again"),
    "key_limit": Meaning("a limit of its key is used up", "the limit has room again"),
    "too_costly": Meaning(
        "it, or the job before it, is estimated at more than a limit by cost allows at all",
        "raise the limit {limit}, or cancel the job",
    ),
    # upstreams
    "breaker": Meaning(
        "the circuit breaker of an upstream is not closed",
        "the next probe of upstream {upstream} succeeds",
    ),
    "panic": Meaning("an upstream is in panic", "an operator ends the panic of {upstream}"),
    "budget": Meaning(
        "a hard budget of an upstream has no room",
        "the period of the budget of {upstream} ends, or the budget is raised",
    ),
    "upstream_limit": Meaning(
        "a limit of an upstream is used up", "the limit of upstream {upstream} has room again"
    ),
    "upstream": Meaning(
        "an upstream took no calls when it was asked",
        "a worker asks upstream {upstream} again",
    ),
    # between places
    "tenant_moving": Meaning("its tenant moves to another shard", "the move ends"),
    "moving": Meaning("it is on its way to another shard", "the move to its shard goes on"),
    "pending_send": Meaning(
        "its flow or group has sent it, and it has not reached its queue",
        "a worker of queue {home} relays it",
    ),
    "outbox": Meaning(
        "its row in PostgreSQL has not been sent to the broker", "a relay of the app sends it"
    ),
    "outbox_sent": Meaning(
        "its row in PostgreSQL was sent, and the broker does not have it any more",
        "a relay hears of its end, or sends it again if the broker has lost its data",
    ),
    "outbox_refused": Meaning(
        "the broker never takes its row in PostgreSQL",
        "an operator corrects or deletes the row: {why}",
    ),
    # running
    "running": Meaning("a worker runs it", "its handler ends"),
    "gathering": Meaning(
        "a worker has it and may be gathering its batch", "the batch is full or its wait is over"
    ),
    "stopping": Meaning("it runs and is to be cancelled", "its handler stops"),
    "lease_over": Meaning(
        "it runs, but its worker has not renewed the lease",
        "a worker of queue {queue} rescues it",
    ),
    # ended
    "completed": Meaning("it has completed", ""),
    "cancelled": Meaning("it was cancelled", ""),
    "expired": Meaning("it did not start in time, and was cancelled", ""),
    "dead": Meaning("it is dead, and nothing retries it", "an operator decides at the desk"),
    "dead_retry": Meaning(
        "it is dead, and is retried automatically", "a worker retries it at the given time"
    ),
    "retried": Meaning("it is dead, and was retried as new", "job {job} tells how it goes on"),
    "discarded": Meaning("it is dead, and was discarded", ""),
    "resolved": Meaning("it is dead, and was resolved", ""),
    "skipped": Meaning(
        "its node of a flow is skipped: one before it failed", "the flow is run again"
    ),
    "removed": Meaning("its flow or group knows it, its queue does not have it any more", ""),
    "unknown": Meaning("the queue has no such job: it never existed, or retention removed it", ""),
}
"""Every code of a reason."""

_NOT_BY_TIME: Final = frozenset(
    {"unserved", "order", "unique", "flow", "flow_building", "group", "group_open"}
    | {"group_failed", "held", "rate_limited", "tenant_held", "tenant_moving", "moving"}
    | {"too_costly", "breaker", "panic", "budget", "upstream_limit", "upstream"}
    | {"pending_send", "outbox", "outbox_sent", "outbox_refused"}
)
"""What ends at no instant, unless the reason has one."""

_TRIED_AGAIN: Final = frozenset({"no_handler", "parked"})
"""What may go on after the instant that it has."""


class Reason(View, frozen=True, kw_only=True):
    """One reason why a job is where it is."""

    also = ("next",)

    code: str
    """See `docs/explain.md` for all of them."""
    words: str
    """It, as part of a sentence."""
    until: int | None = None
    """When it ends on its own; None if that depends on something else."""
    details: Mapping[str, Detail] = {}

    @property
    def is_stop(self) -> bool:
        """Whether nothing is known of when it ends."""
        return self.code in _TRIED_AGAIN or (self.until is None and self.code in _NOT_BY_TIME)

    @property
    def next(self) -> str:
        """What must happen next; empty for a job that has ended."""
        return REASONS[self.code].next.format_map(self.details)
