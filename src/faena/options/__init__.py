"""The options of queues, tasks and enqueue calls, checked on construction.

One frozen dataclass per concern. A field keeps what the program wrote; where the engine needs
another form, a second field has it (`lease`, `lease_us`). Nothing here applies an option.
"""

from faena.options.alerts import Alerts, Rule
from faena.options.backpressure import Backpressure
from faena.options.batch import BatchOptions
from faena.options.channels import Channel, Chat, Log, Mail, Webhook
from faena.options.dead_letters import DeadLetters
from faena.options.durability import Durability, DurabilityLevel
from faena.options.enqueue import (
    EnqueueOptions,
    OnConflict,
    check_conflict,
    check_tells,
    merged,
    of_many,
    of_one,
    telling,
)
from faena.options.fields import build
from faena.options.metrics import Metrics
from faena.options.order import Order
from faena.options.priority import PRIORITY_TIMEOUT_US, Priority, default_timeout_us, priority_of
from faena.options.queue import QueueOptions
from faena.options.retain import Retain
from faena.options.settings import SettingFields, Settings
from faena.options.task import Run, TaskOptions
from faena.options.thresholds import Thresholds
from faena.options.unique import Unique, UniqueMode

__all__ = [
    "PRIORITY_TIMEOUT_US",
    "Alerts",
    "Backpressure",
    "BatchOptions",
    "Channel",
    "Chat",
    "DeadLetters",
    "Durability",
    "DurabilityLevel",
    "EnqueueOptions",
    "Log",
    "Mail",
    "Metrics",
    "OnConflict",
    "Order",
    "Priority",
    "QueueOptions",
    "Retain",
    "Rule",
    "Run",
    "SettingFields",
    "Settings",
    "TaskOptions",
    "Thresholds",
    "Unique",
    "UniqueMode",
    "Webhook",
    "build",
    "check_conflict",
    "check_tells",
    "default_timeout_us",
    "merged",
    "of_many",
    "of_one",
    "priority_of",
    "telling",
]
