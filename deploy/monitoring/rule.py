"""The rules of Prometheus: what is recorded, and what alerts, at the defaults of Faena's alerts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from deploy.monitoring.query import increase, latest, quantile, rate

QUEUE: Final = ("queue",)
TASK: Final = ("queue", "task")
BUDGET: Final = ("upstream", "currency", "per", "scope")
WINDOW: Final = "5m"
LEAST_ATTEMPTS: Final = 10
"""Of fewer within five minutes, nobody asks how many fail."""


class Recorded(NamedTuple):
    """A series that Prometheus computes once, for alerts and dashboards."""

    name: str
    """level:metric:operations, as Prometheus recommends."""
    query: str


class Alert(NamedTuple):
    """A condition, and how long it must hold."""

    name: str
    query: str
    lasting: str
    severity: str
    summary: str


def _rates() -> Iterator[Recorded]:
    names = {
        "completed": "faena_jobs_completed_total",
        "retried": "faena_jobs_retried_total",
        "dead": "faena_jobs_dead_total",
        "enqueued": "faena_jobs_enqueued_total",
    }
    for name, metric in names.items():
        yield Recorded(f"app_queue:faena_jobs_{name}:rate5m", rate(metric, window=WINDOW))
    failed = "app_queue:faena_jobs_retried:rate5m + app_queue:faena_jobs_dead:rate5m"
    yield Recorded("app_queue:faena_attempts_failed:rate5m", failed)
    ended = "app_queue:faena_jobs_completed:rate5m + app_queue:faena_attempts_failed:rate5m"
    yield Recorded("app_queue:faena_attempts_ended:rate5m", ended)
    ratio = "app_queue:faena_attempts_failed:rate5m / app_queue:faena_attempts_ended:rate5m"
    yield Recorded("app_queue:faena_attempts_failed:ratio_rate5m", ratio)
    rescued = increase("faena_jobs_rescued_total", window="1h")
    yield Recorded("app_queue:faena_jobs_rescued:increase1h", rescued)


def _times() -> Iterator[Recorded]:
    for kind in ("wait", "run", "total"):
        name = f"faena_job_{kind}_seconds"
        for part in (0.5, 0.95, 0.99):
            query = quantile(part, name, by=TASK, window=WINDOW)
            yield Recorded(f"app_queue_task:{name}:p{part * 100:.0f}_5m", query)


def _used() -> Iterator[Recorded]:
    used, most = (latest(f"faena_broker_memory_{one}_bytes") for one in ("used", "max"))
    yield Recorded("app_node:faena_broker_memory_used:ratio", f"{used} / {most}")
    spent, amount = latest("faena_budget_spent"), latest("faena_budget_amount")
    yield Recorded("app_upstream:faena_budget_spent:ratio", f"{spent} / {amount}")
    limit, most = latest("faena_upstream_limit_used"), latest("faena_upstream_limit_max")
    yield Recorded("app_upstream:faena_upstream_limit_used:ratio", f"{limit} / {most}")


RECORDED: Final = (*_rates(), *_times(), *_used())


def _levels(
    name: str, query: str, levels: Sequence[float], lasting: str, summary: str, also: str = ""
) -> Iterator[Alert]:
    """A warning, and from a higher threshold on a critical alert."""
    for severity, least in zip(("warning", "critical"), levels, strict=True):
        yield Alert(name, f"{query} >= {least:g}{also}", lasting, severity, summary)


_STATES: Final = latest("faena_jobs", 'state=~"ready|blocked"')
_WAITING: Final = f"sum by (app, queue) ({_STATES})"
_DEAD: Final = latest("faena_jobs", 'state="dead"', by=QUEUE)
_DEPTH: Final = latest("faena_queue_depth")
_OLDEST: Final = latest("faena_queue_oldest_ready_seconds")
_SERVED: Final = latest("faena_workers")
_FREE: Final = f"{latest('faena_slot_utilization_ratio')} < 1"
_NOT_HELD: Final = f"{latest('faena_queue_held')} == 0"
_CLAIMS: Final = increase("faena_jobs_claimed_total", window=WINDOW)
_FAILED: Final = "app_queue:faena_attempts_failed:ratio_rate5m"
_SILENT_S: Final = (120, 300)

QUEUES: Final = (
    *_levels(
        "FaenaQueueDeep",
        _WAITING,
        (100, 300),
        "0m",
        "{{ $value }} jobs wait in {{ $labels.queue }}.",
    ),
    Alert(
        "FaenaQueueBacklog",
        f"{_DEPTH} > 1000",
        "5m",
        "warning",
        "{{ $labels.queue }} has had more than 1,000 jobs for five minutes: {{ $value }}.",
    ),
    *_levels(
        "FaenaJobsWait",
        _OLDEST,
        (30, 120),
        "0m",
        "A job of {{ $labels.queue }} has been ready for {{ $value | humanizeDuration }}.",
    ),
    *_levels(
        "FaenaAttemptsFail",
        _FAILED,
        (0.05, 0.15),
        "0m",
        "{{ $value | humanizePercentage }} of the attempts in {{ $labels.queue }} fail.",
        also=f" and app_queue:faena_attempts_ended:rate5m * 300 >= {LEAST_ATTEMPTS}",
    ),
    *_levels(
        "FaenaWorkersLost",
        "app_queue:faena_jobs_rescued:increase1h",
        (5, 20),
        "0m",
        '{{ $value | printf "%.0f" }} jobs of {{ $labels.queue }} lost their worker in an hour.',
    ),
    Alert(
        "FaenaSlotsFull",
        f"{latest('faena_slot_utilization_ratio')} >= 0.95",
        "15m",
        "warning",
        "The workers of {{ $labels.queue }} have been full for a quarter of an hour.",
    ),
    *_levels(
        "FaenaNoWorker",
        _OLDEST,
        _SILENT_S,
        "0m",
        "{{ $labels.queue }} has no worker, and a job ready for {{ $value | humanizeDuration }}.",
        also=f" and {_SERVED} == 0 and {_NOT_HELD}",
    ),
    *_levels(
        "FaenaNothingClaimed",
        _OLDEST,
        _SILENT_S,
        "0m",
        "Workers of {{ $labels.queue }} have room and claim nothing, and a job has been ready for "
        "{{ $value | humanizeDuration }}.",
        also=f" and {_SERVED} > 0 and {_FREE} and {_NOT_HELD} and {_CLAIMS} == 0",
    ),
    Alert(
        "FaenaJobsDie",
        f"{increase('faena_jobs_dead_total', window='1h')} >= 10",
        "0m",
        "warning",
        '{{ $value | printf "%.0f" }} jobs of {{ $labels.queue }} died within an hour.',
    ),
    Alert(
        "FaenaDeadLetters",
        f"{_DEAD} > 100",
        "5m",
        "warning",
        "{{ $value }} dead jobs of {{ $labels.queue }} are not dealt with.",
    ),
    Alert(
        "FaenaDeadLettersOld",
        f"{latest('faena_dead_oldest_seconds')} > 86400",
        "0m",
        "warning",
        "A dead job of {{ $labels.queue }} has waited for {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "FaenaScheduleMissed",
        f"{increase('faena_schedules_missed_total', window='1h')} > 0",
        "0m",
        "warning",
        "Schedules of {{ $labels.queue }} did not fire in time.",
    ),
)


def _is(name: str, state: str) -> str:
    state = f'state="{state}"'
    return f"{latest(name, state)} == 1"


BROKER: Final = (
    Alert(
        "FaenaNotScraped",
        "absent(faena_broker_up)",
        "5m",
        "critical",
        "No process of Faena is scraped that asks the broker.",
    ),
    Alert(
        "FaenaBrokerDown",
        f"{latest('faena_broker_up')} == 0",
        "1m",
        "critical",
        "No process of {{ $labels.app }} reaches the broker.",
    ),
    Alert(
        "FaenaBrokerUnreachable",
        "faena_broker_up == 0",
        "5m",
        "warning",
        "{{ $labels.instance }} does not reach the broker.",
    ),
    Alert(
        "FaenaBrokerNodeDown",
        f"{latest('faena_broker_node_up')} == 0",
        "1m",
        "critical",
        "The node {{ $labels.node }} of the broker does not answer.",
    ),
    *_levels(
        "FaenaBrokerMemory",
        "app_node:faena_broker_memory_used:ratio",
        (0.8, 0.9),
        "0m",
        "{{ $labels.node }} uses {{ $value | humanizePercentage }} of its memory.",
    ),
)

_PERIOD: Final = "per {{ $labels.per }}"
_WHOSE: Final = '{{ or $labels.upstream "all upstreams" }}'

UPSTREAMS: Final = (
    Alert(
        "FaenaBreakerOpen",
        _is("faena_upstream_breaker", "open"),
        "1m",
        "warning",
        "The breaker of {{ $labels.upstream }} is open: its jobs wait.",
    ),
    Alert(
        "FaenaUpstreamPanic",
        f"{latest('faena_upstream_panic')} == 1",
        "0m",
        "critical",
        "{{ $labels.upstream }} is in panic: no call is permitted.",
    ),
    Alert(
        "FaenaBudgetNearlySpent",
        "app_upstream:faena_budget_spent:ratio >= 0.8",
        "0m",
        "warning",
        f"{{{{ $value | humanizePercentage }}}} of the budget {_PERIOD} of {_WHOSE} is spent.",
    ),
    Alert(
        "FaenaBudgetUsedUp",
        f"{latest('faena_budget_used_up')} == 1",
        "0m",
        "critical",
        f"The budget {_PERIOD} of {_WHOSE} has no room for a call.",
    ),
    Alert(
        "FaenaFeatureDegraded",
        _is("faena_feature", "degraded"),
        "1m",
        "warning",
        "The feature {{ $labels.feature }} is degraded.",
    ),
    Alert(
        "FaenaFeatureOffline",
        _is("faena_feature", "offline"),
        "1m",
        "critical",
        "The feature {{ $labels.feature }} is offline.",
    ),
)

ALERTS: Final = {"queues": QUEUES, "broker": BROKER, "upstreams": UPSTREAMS}
"""By group."""


def queries() -> list[str]:
    """All of them."""
    alerts = [one.query for group in ALERTS.values() for one in group]
    return [*(one.query for one in RECORDED), *alerts]
