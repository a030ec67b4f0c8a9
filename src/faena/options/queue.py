"""The options of a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from faena.errors import ConfigError, shown
from faena.limits import Limit, check_stack
from faena.options.backpressure import Backpressure
from faena.options.fields import (
    attempt_us,
    check_choice,
    check_is,
    derive,
    optional_whole,
)
from faena.options.order import Order
from faena.options.priority import Priority, priority_of
from faena.options.retain import Retain
from faena.options.thresholds import Thresholds
from faena.retry import Retry
from faena.values.duration import Duration, to_us
from faena.values.numbers import keep_whole

_SHORTEST_LEASE_US: Final = 100_000
_LONGEST_LEASE_US: Final = 3_600_000_000
_SHORTEST_AGE_STEP_US: Final = 1_000
_LONGEST_AGE_STEP_US: Final = 86_400_000_000
_LONGEST_WAIT_US: Final = 30 * 86_400_000_000
_LARGEST_PAYLOAD: Final = 128 * 1_048_576
_MOST_EVENTS: Final = 1_000_000
MOST_SHARDS: Final = 64
MOST_RUNNING: Final = 1_000_000_000
HISTORY: Final = ("room", "payloads")
"""Settings of a queue's history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """How a queue serves its jobs."""

    order: Order = Order.NONE
    """Which jobs start in the order they were enqueued; see `Order`."""

    on_failure: str = "block"
    """In a queue with an order, whether jobs wait for the next attempt of a failed job before them
    ("block") or start before it ("pass")."""

    fair: bool | str | None = None
    """Whether tenants take turns: by number of "jobs" (True), or by the "time" that their jobs run.
    None: by jobs if jobs have tenants, unless the whole queue keeps an order."""

    limits: Sequence[Limit] = ()
    """Exact limits on claims of the whole queue; all of them apply."""

    tenant_limits: Sequence[Limit] = ()
    """Exact limits on claims of each tenant; all of them apply."""

    key_limits: Sequence[Limit] = ()
    """Exact limits on claims of each key of a tenant; all of them apply. Jobs without `key=` are
    not limited by them."""

    learning: bool = False
    """Whether limits are lowered when a handler raises `RateLimited`, and recover slowly."""

    concurrency: int = 5
    """The most jobs of this queue that one worker process runs at a time: 1 to 10,000."""

    objective: Duration = "30s"
    """How long a job should wait at most until it starts: 1ms to 30d. Advice and autoscalers go
    by it; it changes nothing else."""

    max_running: int | None = None
    """The most jobs that all workers together run at a time: 1 to 10⁹; None: no bound."""

    tenant_max_running: int | None = None
    """Like `max_running`, for each tenant."""

    timeout: Duration | None = None
    """How long one attempt may run; None: it depends on the job's priority."""

    priority: int = Priority.NORMAL
    """The default priority of jobs: 1 (soonest) to 100, or a level's name."""

    retry: Retry = field(default_factory=Retry.exponential)
    """The retry policy of jobs whose attempt fails."""

    backpressure: Backpressure | None = None
    """When producers are slowed down and refused; None: never, while the broker has memory."""

    retain: Retain = field(default_factory=Retain)
    """How long finished jobs are kept."""

    lease: Duration = "30s"
    """How long a worker may be silent before its jobs are rescued: 100ms to 1h."""

    max_deliveries: int = 3
    """How many lost deliveries (its worker died or froze) bury a job: 1 to 100."""

    age_step: Duration = "5m"
    """The waiting time that raises a job's priority by one step: 1ms to 1d."""

    retry_boost: int = 2
    """Steps of priority that a job gains with each attempt used: 0 (none) to 10."""

    payload_limit: int = 1_048_576
    """The largest encoded payload, in bytes: 1 to 128 MiB; larger ones are not sent."""

    events_kept: int = 500
    """About how many batches of events the queue keeps: 0 (none) to 1,000,000."""

    shards: int = 1
    """Shards that share the queue's lanes, each in its own hash slot: 1 to 64. The number grows at
    run time, too: by `Queue.reshard`, or when a program that declares more uses the queue."""

    alerts: Thresholds | None = None
    """From which values on the alerts of the app fire for this queue; None: as for all."""

    is_fair: bool = field(init=False, repr=False, compare=False)
    """Whether jobs with a tenant are in its lane."""

    is_laned: bool = field(init=False, repr=False, compare=False)
    """Whether jobs without a tenant have a lane as well, from the first job on."""

    units: frozenset[str] = field(init=False, repr=False, compare=False)
    """The units that its limits by cost count."""

    hooks: dict[tuple[str, str], str] = field(
        init=False, repr=False, compare=False, default_factory=dict[tuple[str, str], str]
    )
    """(dead or failed, task) → the hook to run; "" removes one that another program declared.
    Filled while tasks are registered, after construction."""

    costs: dict[str, Mapping[str, int]] = field(
        init=False, repr=False, compare=False, default_factory=dict[str, Mapping[str, int]]
    )
    """Task → the estimates of its jobs, for programs that enqueue it without its function. Filled
    like `hooks`."""

    history: dict[str, int | None] = field(
        init=False, repr=False, compare=False, default_factory=dict[str, int | None]
    )
    """Settings of the queue's history, by name; None turns one off. Filled like `hooks`, by the
    program that keeps the history."""

    timeout_us: int | None = field(init=False, repr=False, compare=False)
    objective_us: int = field(init=False, repr=False, compare=False)
    lease_us: int = field(init=False, repr=False, compare=False)
    age_step_us: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check_parts()
        check_is("learning", self.learning, bool)
        self._check_costs()
        self._check_key_limits()
        keep_whole(self, "concurrency", least=1, most=10_000)
        for name in ("max_running", "tenant_max_running"):
            value = optional_whole(name, getattr(self, name), least=1, most=MOST_RUNNING)
            derive(self, name, value)
        keep_whole(self, "max_deliveries", least=1, most=100)
        # With 1000 attempts, a boost of 10 and a step of a day, a double still holds exact scores.
        keep_whole(self, "retry_boost", least=0, most=10)
        keep_whole(self, "payload_limit", least=1, most=_LARGEST_PAYLOAD)
        keep_whole(self, "events_kept", least=0, most=_MOST_EVENTS)
        keep_whole(self, "shards", least=1, most=MOST_SHARDS)
        derive(self, "is_laned", self._is_laned())
        is_one_order = self.order is Order.QUEUE and self.fair is None
        derive(self, "is_fair", self.is_laned or not (self.fair is False or is_one_order))
        self._check_tenant_bounds()
        check_parts(self, self.shards)
        derive(self, "timeout_us", attempt_us(self.timeout))
        objective_us = to_us("objective", self.objective, least_us=1_000, most_us=_LONGEST_WAIT_US)
        derive(self, "objective_us", objective_us)
        lease_us = to_us(
            "lease", self.lease, least_us=_SHORTEST_LEASE_US, most_us=_LONGEST_LEASE_US
        )
        derive(self, "lease_us", lease_us)
        step_us = to_us(
            "age_step",
            self.age_step,
            least_us=_SHORTEST_AGE_STEP_US,
            most_us=_LONGEST_AGE_STEP_US,
        )
        derive(self, "age_step_us", step_us)

    def _check_parts(self) -> None:
        derive(self, "order", Order.of(self.order))
        derive(self, "limits", check_stack(self.limits, what="limits"))
        derive(self, "tenant_limits", check_stack(self.tenant_limits, what="tenant_limits"))
        derive(self, "key_limits", check_stack(self.key_limits, what="key_limits"))
        derive(self, "priority", priority_of(self.priority))
        check_is("retry", self.retry, Retry)
        check_is("retain", self.retain, Retain)
        if self.backpressure is not None:
            check_is("backpressure", self.backpressure, Backpressure)
        if self.alerts is not None:
            check_is("alerts", self.alerts, Thresholds)

    def _check_tenant_bounds(self) -> None:
        for name in ("tenant_soft", "tenant_hard"):
            bound = getattr(self.backpressure, name, None)
            if bound is not None and not self.is_fair:
                raise ConfigError(
                    f"backpressure {name} must not be given in a queue without lanes, got {bound}: "
                    f"{'remove fair=False' if self.fair is False else 'fair=True adds lanes'}",
                    field=name,
                    value=bound,
                )

    def _check_costs(self) -> None:
        limits = (*self.limits, *self.tenant_limits)
        derive(self, "units", frozenset(one.cost for one in limits if one.cost is not None))
        if self.units and self.learning:
            raise ConfigError(
                f"learning must be off with a limit by cost, got {limits}: a refusal does not "
                f"tell which cost would have been accepted",
                field="learning",
                value=True,
            )

    def _check_key_limits(self) -> None:
        for limit in self.key_limits:
            if limit.cost is not None:
                raise ConfigError(
                    f"key_limits must count claims, got {limit}; limits and tenant_limits may be "
                    f"by cost",
                    field="key_limits",
                    value=self.key_limits,
                )
        if self.key_limits and self.order in {Order.TENANT, Order.QUEUE}:
            raise ConfigError(
                f"key_limits must not be given with order {self.order.value!r}: a job that waits "
                f"for the limit of its key would block jobs of other keys; use order 'key'",
                field="key_limits",
                value=self.key_limits,
            )

    def _is_laned(self) -> bool:
        check_choice("on_failure", self.on_failure, ("block", "pass"))
        needs = {
            f"order {self.order.value!r}": self.order in {Order.TENANT, Order.KEY},
            "tenant_limits": bool(self.tenant_limits),
            "key_limits": bool(self.key_limits),
            "tenant_max_running": self.tenant_max_running is not None,
            "shards": self.shards > 1,
        }
        if self.fair is None:
            return any(needs.values())
        if not isinstance(self.fair, bool) and self.fair not in ("jobs", "time"):
            raise ConfigError(
                f"fair must be True, False, None, 'jobs' or 'time', got {shown(self.fair)}",
                field="fair",
                value=self.fair,
            )
        for what, is_needed in needs.items():
            if is_needed and not self.fair:
                raise ConfigError(f"fair must not be off: {what} needs lanes", field="fair")
        return bool(self.fair)


def check_learning(options: QueueOptions) -> QueueOptions:
    """Refuse `learning` without limits in code; operators may remove limits later."""
    if options.learning and not (options.limits or options.tenant_limits):
        raise ConfigError(
            "learning must be given with limits or tenant_limits, which it lowers, got neither",
            field="learning",
            value=True,
        )
    return options


def check_parts(options: QueueOptions, shards: int) -> None:
    """Refuse bounds on a whole queue that cannot be divided among its shards."""
    if shards == 1:
        return
    if options.order is Order.QUEUE:
        raise ConfigError(
            f"shards must be 1 with order 'queue', got {shards}; "
            f"a queue with order 'tenant' or 'key' may have more",
            field="shards",
            value=shards,
        )
    for limit in options.limits:
        if limit.cost is not None:
            raise ConfigError(
                f"shards must be 1 with the limit {limit}: a shard's part of it could be too "
                f"small for one job, got {shards}; use tenant_limits by cost instead",
                field="shards",
                value=shards,
            )
    if options.key_limits:
        raise ConfigError(
            f"shards must be 1 with key_limits, got {shards}: what a key has used would not move "
            f"with its tenant",
            field="shards",
            value=shards,
        )
    press = options.backpressure
    bounds = {f"limit {limit}": limit.max for limit in options.limits}
    bounds |= {"max_running": options.max_running, "hard": press and press.hard}
    for what, most in bounds.items():
        if most is not None and most < shards:
            raise ConfigError(
                f"{what} must be at least {shards}, one for each shard, got {most}",
                field="shards",
                value=shards,
            )
