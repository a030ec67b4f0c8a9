"""Background jobs for multi-tenant services: durable, fair, fast."""

from faena.app import Faena
from faena.deadletter.redrive_view import RedriveView
from faena.deadletter.views import DeadGroup, DeadLetter, DeadPage, DeadStats
from faena.declaring.hooks import Death, Failure
from faena.errors import FaenaError
from faena.flows import Flow, FlowView, Group, GroupView, NodeView, Plan
from faena.job import Job, JobView
from faena.limits import Limit
from faena.middleware import Middleware
from faena.options import (
    Backpressure,
    DeadLetters,
    Durability,
    Order,
    Priority,
    Retain,
    Settings,
    Unique,
)
from faena.outcomes import Discard, RateLimited, Snooze
from faena.pool import Pool
from faena.producing.handle import Handle
from faena.producing.receipt import Receipt
from faena.queue import Queue
from faena.remote import RemoteQueue, Stub
from faena.retry import Retry
from faena.scheduling.view import ScheduleView
from faena.states import State
from faena.task import Draft, Task
from faena.telemetry.events import Event
from faena.tenancy.shares import Shares, Waits
from faena.tenancy.tenants import Tenant, TenantView
from faena.values.ids import IdempotencyKey, WebhookKey
from faena.worker.worker import Worker, WorkerOptions

__all__ = [
    "Backpressure",
    "DeadGroup",
    "DeadLetter",
    "DeadLetters",
    "DeadPage",
    "DeadStats",
    "Death",
    "Discard",
    "Draft",
    "Durability",
    "Event",
    "Faena",
    "FaenaError",
    "Failure",
    "Flow",
    "FlowView",
    "Group",
    "GroupView",
    "Handle",
    "IdempotencyKey",
    "Job",
    "JobView",
    "Limit",
    "Middleware",
    "NodeView",
    "Order",
    "Plan",
    "Pool",
    "Priority",
    "Queue",
    "RateLimited",
    "Receipt",
    "RedriveView",
    "RemoteQueue",
    "Retain",
    "Retry",
    "ScheduleView",
    "Settings",
    "Shares",
    "Snooze",
    "State",
    "Stub",
    "Task",
    "Tenant",
    "TenantView",
    "Unique",
    "Waits",
    "WebhookKey",
    "Worker",
    "WorkerOptions",
]
