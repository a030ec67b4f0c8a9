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
    between_us,
    check_choice,
    check_is,
    derive,
    optional_whole,
)
from faena.options.order import Order
from faena.options.priority import Priority, priority_of
from faena.options.retain import Retain
from faena.retry import Retry
from faena.values.duration import Duration
from faena.values.numbers import keep_whole

_SHORTEST_LEASE_US: Final = 100_000
_LONGEST_LEASE_US: Final = 3_600_000_000
_SHORTEST_AGE_STEP_US: Final = 1_000
_LONGEST_AGE_STEP_US: Final = 86_400_000_000
_LARGEST_PAYLOAD: Final = 128 * 1_048_576
_MOST_EVENTS: Final = 1_000_000
MOST_SHARDS: Final = 64
MOST_RUNNING: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """How a queue serves its jobs."""

    order: Order = Order.NONE
    """What starts in the order it came; see `Order`."""

    on_failure: str = "block"
    """Whether the jobs behind one that failed wait for its next attempt ("block"), or "pass"."""

    fair: bool | str | None = None
    """Whether tenants take turns: by "jobs" (True), or by the "time" that their jobs take. None: by
    jobs where jobs carry a tenant, unless the whole queue keeps an order."""

    limits: Sequence[Limit] = ()
    """Claims allowed on the whole queue, exact; several stack."""

    tenant_limits: Sequence[Limit] = ()
    """Claims allowed for each tenant, exact; several stack."""

    key_limits: Sequence[Limit] = ()
    """Claims allowed for each key of a tenant, exact; several stack. Jobs without `key=` are not
    limited by them."""

    learning: bool = False
    """Whether limits fall when a handler raises `RateLimited`, to recover slowly."""

    concurrency: int = 5
    """Jobs of this queue that one worker process runs at a time: 1 to 10,000."""

    max_running: int | None = None
    """Jobs running at a time in all workers together: 1 to 10⁹; None sets no bound."""

    tenant_max_running: int | None = None
    """The same for each tenant."""

    timeout: Duration | None = None
    """How long one attempt may run; None leaves it to the job's priority."""

    priority: int = Priority.NORMAL
    """Of jobs that name none: 1 (soonest) to 100, or a level's name."""

    retry: Retry = field(default_factory=Retry.exponential)
    """What follows a failed attempt."""

    backpressure: Backpressure | None = None
    """When producers are slowed and refused; None accepts whatever the broker can hold."""

    retain: Retain = field(default_factory=Retain)
    """How long finished jobs are kept."""

    lease: Duration = "30s"
    """How long a worker may be silent before its jobs are rescued: 100ms to 1h."""

    max_deliveries: int = 3
    """Deliveries a job may lose with their workers, in its life, before it is dead: 1 to 100."""

    age_step: Duration = "5m"
    """The wait that is worth one step of priority: 1ms to 1d."""

    retry_boost: int = 2
    """Steps of priority that each attempt used is worth: 0 (none) to 10."""

    payload_limit: int = 1_048_576
    """Bytes one encoded payload may have: 1 to 128 MiB; larger ones never reach the wire."""

    events_kept: int = 500
    """Batches of changes that the queue's stream of events keeps, about: 0 (none) to 1,000,000."""

    shards: int = 1
    """Shards that share the queue's lanes, each in its own hash slot: 1 to 64. The number grows at
    run time, also when code that asks for more enqueues or serves; see `Queue.reshard`."""

    is_fair: bool = field(init=False, repr=False, compare=False)
    """Whether jobs that carry a tenant stand in its lane."""

    is_laned: bool = field(init=False, repr=False, compare=False)
    """Whether those without a tenant have a lane as well, from the first one on."""

    units: frozenset[str] = field(init=False, repr=False, compare=False)
    """What its limits by cost count."""

    hooks: dict[tuple[str, str], str] = field(
        init=False, repr=False, compare=False, default_factory=dict[tuple[str, str], str]
    )
    """(dead or failed, task) → the task whose jobs are made then; "" takes another program's back.
    Filled while tasks are registered, after the queue was made."""

    costs: dict[str, Mapping[str, int]] = field(
        init=False, repr=False, compare=False, default_factory=dict[str, Mapping[str, int]]
    )
    """Task → what its jobs are estimated at, for whoever makes them without its function. Filled as
    `hooks` are."""

    timeout_us: int | None = field(init=False, repr=False, compare=False)
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
        # With 1000 attempts, a boost of 10 and a step of a day a score still is exact in a double.
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
        lease_us = between_us("lease", self.lease, _SHORTEST_LEASE_US, _LONGEST_LEASE_US)
        derive(self, "lease_us", lease_us)
        step_us = between_us("age_step", self.age_step, _SHORTEST_AGE_STEP_US, _LONGEST_AGE_STEP_US)
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

    def _check_tenant_bounds(self) -> None:
        for name in ("tenant_soft", "tenant_hard"):
            bound = getattr(self.backpressure, name, None)
            if bound is not None and not self.is_fair:
                raise ConfigError(
                    f"backpressure {name} must not be given where tenants have no lanes, got "
                    f"{bound}: {'fair is off' if self.fair is False else 'fair=True gives them'}",
                    field=name,
                    value=bound,
                )

    def _check_costs(self) -> None:
        limits = (*self.limits, *self.tenant_limits)
        derive(self, "units", frozenset(one.cost for one in limits if one.cost is not None))
        if self.units and self.learning:
            raise ConfigError(
                f"learning must be off where a limit is by cost, got {limits}: a refusal does "
                f"not say how much less of it would do",
                field="learning",
                value=True,
            )

    def _check_key_limits(self) -> None:
        for limit in self.key_limits:
            if limit.cost is not None:
                raise ConfigError(
                    f"key_limits must be on claims, got {limit}; limits and tenant_limits may be "
                    f"by cost",
                    field="key_limits",
                    value=self.key_limits,
                )
        if self.key_limits and self.order in {Order.TENANT, Order.QUEUE}:
            raise ConfigError(
                f"key_limits must not be given where order is {self.order.value!r}: a job that "
                f"waits for its key would hold up those of other keys; order 'key' goes with them",
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
    """Refuse to learn where code declares nothing that could fall; operators may remove limits."""
    if options.learning and not (options.limits or options.tenant_limits):
        raise ConfigError(
            "learning must come with limits or tenant_limits, which are what falls, got neither",
            field="learning",
            value=True,
        )
    return options


def check_parts(options: QueueOptions, shards: int) -> None:
    """Refuse bounds on a whole queue of which not every shard would have a part."""
    if shards == 1:
        return
    if options.order is Order.QUEUE:
        raise ConfigError(
            f"shards must be 1 where the whole queue keeps an order, got {shards}; "
            f"an order by tenant or by key may have more",
            field="shards",
            value=shards,
        )
    for limit in options.limits:
        if limit.cost is not None:
            raise ConfigError(
                f"shards must be 1 where a limit of the queue is by cost, got {limit}: its parts "
                f"could be too small for a job; tenant_limits may be by cost",
                field="shards",
                value=shards,
            )
    if options.key_limits:
        raise ConfigError(
            f"shards must be 1 where keys have limits, got {shards}: what a key has used would not "
            f"move with its tenant",
            field="shards",
            value=shards,
        )
    press = options.backpressure
    bounds = {f"limit {limit}": limit.max for limit in options.limits}
    bounds |= {"max_running": options.max_running, "hard": press and press.hard}
    for what, most in bounds.items():
        if most is not None and most < shards:
            raise ConfigError(
                f"{what} must leave each of {shards} shards at least one, got {most}",
                field="shards",
                value=shards,
            )
