"""The thirteen queues, on one screen: limits, slots, attempts, pauses, time limits, order.

`isolation` says whose rate the limit is: of the queue as a whole (shared), or of each organisation
(org). `order` is what jobs wait for: nothing, their organisation, their entity, or the queue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from apps.campotech import thresholds
from apps.campotech.pace import Pace
from faena import Backpressure, Faena, Order, Priority, Queue, Retain, Retry

Backoff = Literal["exponential", "fixed", "afip", "whatsapp"]
HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW
EXP: Final = "exponential"
NONE, ORG, ENTITY, ALL = Order.NONE, Order.TENANT, Order.KEY, Order.QUEUE


@dataclass(frozen=True, slots=True)
class Row:
    """One queue."""

    name: str
    priority: Priority
    rate: str
    isolation: Literal["shared", "org"]
    slots: int
    attempts: int
    backoff: Backoff
    timeout: str
    order: Order
    is_idempotent: bool = False

    @property
    def needs_turns(self) -> bool:
        """Whether its order or its rate is that of each organisation."""
        return self.isolation == "org" or self.order in (ORG, ENTITY)

    @property
    def alias(self) -> str:
        """How the specification spells it."""
        return self.name.replace(".", ":")


ROWS: Final = (
    Row("afip.invoice", HIGH, "10/min", "shared", 3, 5, "afip", "60s", ORG),
    Row("payment.webhook", HIGH, "100/min", "shared", 10, 5, EXP, "30s", NONE, is_idempotent=True),
    Row("whatsapp.outbound", HIGH, "50/min", "org", 5, 3, "whatsapp", "30s", ORG),
    Row("whatsapp.inbound", NORMAL, "200/min", "shared", 20, 3, EXP, "10s", NONE),
    Row("voice.transcription", NORMAL, "20/min", "shared", 5, 3, EXP, "120s", NONE),
    Row("voice.extraction", NORMAL, "50/min", "shared", 10, 3, EXP, "30s", NONE),
    Row("job.notification", NORMAL, "100/min", "org", 10, 3, EXP, "30s", NONE),
    Row("invoice.pdf", NORMAL, "50/min", "shared", 5, 3, EXP, "60s", NONE),
    Row("sync.offline", LOW, "100/min", "org", 10, 5, EXP, "30s", ENTITY),
    Row("reconciliation", LOW, "5/min", "shared", 2, 3, EXP, "300s", ALL),
    Row("cleanup", LOW, "10/min", "shared", 2, 2, "fixed", "60s", NONE),
    Row("analytics", LOW, "50/min", "shared", 5, 2, "fixed", "30s", NONE),
    Row("scheduler", NORMAL, "100/min", "shared", 5, 3, EXP, "10s", NONE),
)

POOLS: Final[dict[str, tuple[int, int, str, tuple[str, ...]]]] = {
    "high": (2, 5, "512Mi", ("afip.invoice", "payment.webhook", "whatsapp.outbound")),
    "normal": (3, 10, "1Gi", ("whatsapp.inbound", "voice.transcription", "voice.extraction",
                              "job.notification", "invoice.pdf")),
    "low": (1, 5, "256Mi", ("sync.offline", "reconciliation", "cleanup", "analytics")),
    "scheduler": (1, 5, "256Mi", ("scheduler",)),
}  # fmt: skip
"""Instances, jobs at a time in each, memory of each, queues."""

AFIP: Final = ("30s", "2m", "5m", "15m", "30m")
WHATSAPP: Final = ("5s", "15s", "60s")
FIXED: Final = ("30s",)

KEPT: Final = Retain(completed="24h", completed_count=1_000, dead="30d", dead_count=10_000)
FULL: Final = Backpressure(soft=100, hard=500)
PAYLOAD_LIMIT: Final = 1 << 20
BATCH_LIMIT: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What an operator may change."""

    is_fair: bool = True
    """Organisations take turns, also where neither order nor rate is theirs."""
    has_backpressure: bool = True
    """Full queues slow producers down, then refuse jobs."""
    lease: str = "30s"
    """How long after its last sign of life a worker has lost its jobs."""


def retry_of(row: Row, pace: Pace) -> Retry:
    """When a failed attempt of a queue is made again; a fifth more or less, at random."""
    floor = pace.of("1s")
    if row.backoff == "exponential":
        return Retry.exponential(
            base=pace.of("1s"), factor=2, cap=pace.of("5m"), floor=floor, attempts=row.attempts
        )
    waits = {"afip": AFIP, "whatsapp": WHATSAPP, "fixed": FIXED}[row.backoff]
    return Retry.steps(*map(pace.of, waits), attempts=row.attempts, floor=floor)


def declare(app: Faena, pace: Pace, flags: Flags) -> dict[str, Queue]:
    """Declare all queues and pools; the queues by their names."""
    queues = {row.name: _declare(app, row, pace, flags) for row in ROWS}
    for name, (instances, slots, memory, served) in POOLS.items():
        app.pool(name, served, instances=instances, concurrency=slots, memory=memory)
    return queues


def _declare(app: Faena, row: Row, pace: Pace, flags: Flags) -> Queue:
    limits = [pace.limit(row.rate)]
    return app.queue(
        row.name,
        priority=row.priority,
        limits=limits if row.isolation == "shared" else [],
        tenant_limits=limits if row.isolation == "org" else [],
        order=row.order,
        fair=flags.is_fair or row.needs_turns,
        concurrency=row.slots,
        timeout=row.timeout,
        lease=flags.lease,
        retry=retry_of(row, pace),
        retain=KEPT,
        backpressure=FULL if flags.has_backpressure else None,
        payload_limit=PAYLOAD_LIMIT,
        alerts=thresholds.declared(row.name, pace),
    )


def find(name: str) -> Row:
    """The row of a queue, by its name or as the specification spells it."""
    found = [row for row in ROWS if name in (row.name, row.alias)]
    if not found:
        known = ", ".join(row.name for row in ROWS)
        raise LookupError(f"queue must be one of {known}, got {name!r}")
    return found[0]
