"""The attributes of spans: of OpenTelemetry's conventions for messaging, and Faena's own.

No attribute has a payload, a key, a result or the message of an error: those may be secret.
"""

from __future__ import annotations

from typing import Final

from faena.job import Job
from faena.outcomes import Buried, Outcome, Retried

Attributes = dict[str, str | int]

SYSTEM: Final = "messaging.system"
OPERATION: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
DESTINATION: Final = "messaging.destination.name"
MESSAGE: Final = "messaging.message.id"
MESSAGES: Final = "messaging.batch.message_count"
CLIENT: Final = "messaging.client.id"
ERROR: Final = "error.type"

TASK: Final = "faena.task"
TENANT: Final = "faena.tenant"
ATTEMPT: Final = "faena.attempt"
MAX_ATTEMPTS: Final = "faena.max_attempts"
LOSSES: Final = "faena.losses"
ORIGIN: Final = "faena.origin"
OUTCOME: Final = "faena.outcome"
ERROR_CODE: Final = "faena.error_code"
FAILED: Final = "faena.batch.failed"
SCHEDULE: Final = "faena.schedule"
UPSTREAM: Final = "faena.upstream"


def sent_to(queue: str, operation: str, task: str, tenant: str | None) -> Attributes:
    """Of a span in which jobs are enqueued."""
    found: Attributes = {
        SYSTEM: "faena",
        OPERATION: operation,
        OPERATION_TYPE: "send",
        DESTINATION: queue,
        TASK: task,
    }
    return {**found, TENANT: tenant} if tenant else found


def run_by(operation: str, job: Job) -> Attributes:
    """Of a span in which jobs of a task are run."""
    return {
        SYSTEM: "faena",
        OPERATION: operation,
        OPERATION_TYPE: "process",
        DESTINATION: job.queue,
        CLIENT: job.worker,
        TASK: job.task,
    }


def of_attempt(operation: str, job: Job) -> Attributes:
    """Of a span in which one job is run."""
    found = run_by(operation, job)
    found[MESSAGE] = job.id
    found[ATTEMPT], found[MAX_ATTEMPTS] = job.attempt, job.max_attempts
    if job.tenant:
        found[TENANT] = job.tenant
    if job.losses:
        found[LOSSES] = job.losses
    if job.origin != job.id:
        found[ORIGIN] = job.origin
    return found


def of_outcome(outcome: Outcome) -> Attributes:
    """How an attempt has ended."""
    found: Attributes = {OUTCOME: outcome.kind}
    if isinstance(outcome, Retried | Buried):
        found[ERROR] = outcome.error.name
        if outcome.error.code:
            found[ERROR_CODE] = outcome.error.code
    return found
