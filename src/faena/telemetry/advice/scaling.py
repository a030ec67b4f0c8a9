"""A signal for autoscalers: how long jobs will wait for a slot, against how long they should.

    wait for a slot = what waits now, worked off by all slots
                    + the wait that 5 % of what comes would exceed (Erlang C)

The second part is at most five minutes while the slots can keep up, and five minutes times the
utilisation once they cannot, so it always grows with what is missing. Waits that slots do not
shorten are left out: for a limit, for a hold.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from faena.telemetry.advice import erlang
from faena.telemetry.advice.demand import arrived, load_of
from faena.telemetry.advice.erlang import Load
from faena.telemetry.statistics import QueueStatistics
from faena.values.view import View

if TYPE_CHECKING:  # a snapshot holds what is here
    from faena.telemetry.advice.judgement import Capacity
    from faena.telemetry.snapshot import QueueSnapshot

HORIZON_S: Final = 300.0
"""What the last five minutes were like is expected of the next five."""
_UNTIL: Final = 1e9


class QueueScaling(View, frozen=True, kw_only=True):
    """One queue, as an autoscaler sees it."""

    queue: str
    wait_ratio: float
    """Predicted wait ÷ objective: 1 means just met. 0 while the queue is held, since slots would
    not help; at least 1 while jobs wait and there is no slot at all."""
    predicted_wait_s: float
    """How long a job that comes now may wait for a slot; 5 % would wait longer."""
    objective_s: float
    slots: int
    """Slots of all workers now."""
    slots_wanted: int
    """Slots that would be right: 70 % in use, the objective met, what waits worked off within it.
    It does not depend on how many there are now; 0 if nothing comes and nothing waits."""
    ready: int
    running: int
    arrival_rate: float
    """Attempts that became ready, per second, in the last five minutes."""
    service_s: float | None
    """How long an attempt takes; None if none has ended lately."""


class Scaling(View, frozen=True, kw_only=True):
    """All queues of an app, for an autoscaler."""

    at: int
    """The server's microseconds."""
    queues: dict[str, QueueScaling]

    def to_dict(self) -> dict[str, Any]:
        """For KEDA's metrics-api scaler: `valueLocation` is `queues.mail.wait_ratio`."""
        return super().to_dict()


def scaling_of(
    seen: QueueSnapshot, recent: QueueStatistics | None, capacity: Capacity
) -> QueueScaling:
    """The signal of one queue; `recent` are its last minutes."""
    ready, running = seen.counts["ready"], seen.counts["running"]
    load, rate = _demand(recent, capacity.waiting(seen.counts))
    objective_s = capacity.objective_us / 1e6
    limit = capacity.limit_rate
    if load is not None and limit is not None:
        load = load._replace(rate=min(load.rate, limit))
    waited_s = _predicted_s(seen, load, capacity)
    ratio = waited_s / objective_s
    if seen.holds:
        ratio = 0.0
    elif ready and not seen.slots:
        ratio = max(1.0, ratio)
    return QueueScaling(
        queue=seen.queue,
        wait_ratio=ratio,
        predicted_wait_s=waited_s,
        objective_s=objective_s,
        slots=seen.slots,
        slots_wanted=_wanted(seen, load, capacity),
        ready=ready,
        running=running,
        arrival_rate=rate,
        service_s=load and load.service_s,
    )


def _demand(recent: QueueStatistics | None, waiting: int) -> tuple[Load | None, float]:
    """What comes, by the last minutes; None without an attempt that has ended."""
    if recent is None:
        return None, 0.0
    arrivals, window_s = arrived(recent, waiting), (recent.until - recent.since) / 1e6
    return load_of(recent.together(), arrivals, window_s), arrivals / window_s


def _predicted_s(seen: QueueSnapshot, load: Load | None, capacity: Capacity) -> float:
    oldest_s = (seen.oldest_us or 0) / 1e6
    if load is None:
        return oldest_s  # all that is known
    slots = capacity.slots(seen.slots)
    return _backlog_s(seen, load, slots, capacity.limit_rate) + _coming_s(slots, load)


def _backlog_s(seen: QueueSnapshot, load: Load, slots: int, limit: float | None) -> float:
    """How long the slots need to start what is ready now; 0 where a limit is slower than they."""
    waiting = seen.counts["ready"] - max(0, slots - seen.counts["running"])
    if waiting <= 0 or load.service_s <= 0:
        return 0.0
    started = slots / load.service_s
    return 0.0 if limit is not None and limit <= started else waiting / started


def _coming_s(slots: int, load: Load) -> float:
    waited_s = erlang.wait_s(slots, load)
    if waited_s is None:
        return HORIZON_S * load.erlangs / slots
    return min(waited_s, HORIZON_S)


def _wanted(seen: QueueSnapshot, load: Load | None, capacity: Capacity) -> int:
    ready, running = seen.counts["ready"], seen.counts["running"]
    most = capacity.max_running or erlang.MOST_SLOTS
    if load is None or load.erlangs <= 0:
        return min(most, capacity.slots(seen.slots) if ready or running else 0)
    objective_s, limit = capacity.objective_us / 1e6, capacity.limit_rate
    backlog = ready * load.service_s / objective_s if objective_s else 0.0
    work = load.erlangs + (backlog if not seen.holds else 0.0)
    if limit is not None:
        work = min(work, limit * load.service_s)
    wanted = max(
        erlang.slots_for_target(load),
        erlang.slots_for_wait(objective_s, load) or most,
        math.ceil(min(work, _UNTIL)),
    )
    return min(most, wanted)
