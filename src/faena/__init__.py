"""Background jobs for multi-tenant services: durable, fair, fast.

Names are imported on first use, so that `faena --help` and `import faena.errors` are fast.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faena.app import Faena
    from faena.deadletter.redrive_view import RedriveView
    from faena.deadletter.views import DeadGroup, DeadLetter, DeadPage, DeadStats
    from faena.declaring.hooks import Death, Failure
    from faena.engine.calls.budget_view import BudgetView
    from faena.engine.calls.upstreams import UpstreamView
    from faena.errors import FaenaError
    from faena.flows import Flow, FlowView, Group, GroupView, NodeView, Plan
    from faena.job import Job, JobView
    from faena.limits import Limit
    from faena.middleware import Middleware
    from faena.options import (
        Alerts,
        Backpressure,
        Chat,
        DeadLetters,
        Durability,
        Log,
        Mail,
        Metrics,
        Order,
        Priority,
        Retain,
        Rule,
        Settings,
        Thresholds,
        Unique,
        Webhook,
    )
    from faena.outcomes import Discard, RateLimited, Snooze, UpstreamUnavailable
    from faena.pool import Pool
    from faena.producing.handle import Handle
    from faena.producing.receipt import Receipt
    from faena.queue import Queue
    from faena.remote import RemoteQueue, Stub
    from faena.resilience.breaker import Breaker
    from faena.resilience.cached_read import CachedValue
    from faena.resilience.costs import CostReport
    from faena.resilience.escalation import Escalate, Escalation
    from faena.resilience.fallback import Fallback, Manual
    from faena.resilience.feature import Feature, Level
    from faena.resilience.feature_views import FeaturesView, FeatureView, LevelView
    from faena.resilience.money import Budget, Price
    from faena.resilience.upstream import Upstream
    from faena.resilience.write_behind import Queued, Written, write_behind
    from faena.retry import Retry
    from faena.scheduling.view import ScheduleView
    from faena.states import State
    from faena.task import Draft, Task
    from faena.telemetry.advice.queue_advice import QueueAdvice, TaskAdvice
    from faena.telemetry.alerts.view import AlertChange, AlertsView, AlertView, SilenceView
    from faena.telemetry.events import Event
    from faena.tenancy.shares import Shares, Waits
    from faena.tenancy.tenants import Tenant, TenantView
    from faena.values.ids import IdempotencyKey, WebhookKey
    from faena.values.money import Money
    from faena.worker.options import WorkerOptions
    from faena.worker.worker import Worker

_NAMES = {
    "faena.app": "Faena",
    "faena.deadletter.redrive_view": "RedriveView",
    "faena.deadletter.views": "DeadGroup DeadLetter DeadPage DeadStats",
    "faena.declaring.hooks": "Death Failure",
    "faena.engine.calls.budget_view": "BudgetView",
    "faena.engine.calls.upstreams": "UpstreamView",
    "faena.errors": "FaenaError",
    "faena.flows": "Flow FlowView Group GroupView NodeView Plan",
    "faena.job": "Job JobView",
    "faena.limits": "Limit",
    "faena.middleware": "Middleware",
    "faena.options": (
        "Alerts Backpressure Chat DeadLetters Durability Log Mail Metrics Order Priority Retain "
        "Rule Settings Thresholds Unique Webhook"
    ),
    "faena.outcomes": "Discard RateLimited Snooze UpstreamUnavailable",
    "faena.pool": "Pool",
    "faena.producing.handle": "Handle",
    "faena.producing.receipt": "Receipt",
    "faena.queue": "Queue",
    "faena.remote": "RemoteQueue Stub",
    "faena.resilience.breaker": "Breaker",
    "faena.resilience.cached_read": "CachedValue",
    "faena.resilience.costs": "CostReport",
    "faena.resilience.escalation": "Escalate Escalation",
    "faena.resilience.fallback": "Fallback Manual",
    "faena.resilience.feature": "Feature Level",
    "faena.resilience.feature_views": "FeatureView FeaturesView LevelView",
    "faena.resilience.money": "Budget Price",
    "faena.resilience.upstream": "Upstream",
    "faena.resilience.write_behind": "Queued Written write_behind",
    "faena.retry": "Retry",
    "faena.scheduling.view": "ScheduleView",
    "faena.states": "State",
    "faena.task": "Draft Task",
    "faena.telemetry.advice.queue_advice": "QueueAdvice TaskAdvice",
    "faena.telemetry.alerts.view": "AlertChange AlertsView AlertView SilenceView",
    "faena.telemetry.events": "Event",
    "faena.tenancy.shares": "Shares Waits",
    "faena.tenancy.tenants": "Tenant TenantView",
    "faena.values.ids": "IdempotencyKey WebhookKey",
    "faena.values.money": "Money",
    "faena.worker.options": "WorkerOptions",
    "faena.worker.worker": "Worker",
}
"""The same imports at run time: module to the names it defines."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = getattr(import_module(_MODULES[name]), name)
    elif not name.startswith("_") and find_spec(f"faena.{name}"):
        value = import_module(f"faena.{name}")
    else:
        raise AttributeError(f"module 'faena' has no attribute {name!r}", name=name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "AlertChange",
    "AlertView",
    "Alerts",
    "AlertsView",
    "Backpressure",
    "Breaker",
    "Budget",
    "BudgetView",
    "CachedValue",
    "Chat",
    "CostReport",
    "DeadGroup",
    "DeadLetter",
    "DeadLetters",
    "DeadPage",
    "DeadStats",
    "Death",
    "Discard",
    "Draft",
    "Durability",
    "Escalate",
    "Escalation",
    "Event",
    "Faena",
    "FaenaError",
    "Failure",
    "Fallback",
    "Feature",
    "FeatureView",
    "FeaturesView",
    "Flow",
    "FlowView",
    "Group",
    "GroupView",
    "Handle",
    "IdempotencyKey",
    "Job",
    "JobView",
    "Level",
    "LevelView",
    "Limit",
    "Log",
    "Mail",
    "Manual",
    "Metrics",
    "Middleware",
    "Money",
    "NodeView",
    "Order",
    "Plan",
    "Pool",
    "Price",
    "Priority",
    "Queue",
    "QueueAdvice",
    "Queued",
    "RateLimited",
    "Receipt",
    "RedriveView",
    "RemoteQueue",
    "Retain",
    "Retry",
    "Rule",
    "ScheduleView",
    "Settings",
    "Shares",
    "SilenceView",
    "Snooze",
    "State",
    "Stub",
    "Task",
    "TaskAdvice",
    "Tenant",
    "TenantView",
    "Thresholds",
    "Unique",
    "Upstream",
    "UpstreamUnavailable",
    "UpstreamView",
    "Waits",
    "Webhook",
    "WebhookKey",
    "Worker",
    "WorkerOptions",
    "Written",
    "write_behind",
]
