"""Work behind the scenes: reconciliation, cleaning up, analytics, and work at fixed times."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import Field, StrictBool, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from apps.campotech.messages.base import Message
from apps.campotech.messages.fields import Data, Day, Id, Instant, Name


class Reconciliation(Message):
    """A period in which our records are compared with those of a provider."""

    reconciliation_type: Literal["payments", "invoices", "messages"]
    date_from: Day
    date_to: Day
    """The last day, included."""
    full_reconciliation: StrictBool = False

    @field_validator("date_to")
    @classmethod
    def _does_not_end_before_it_begins(cls, value: date, info: ValidationInfo) -> date:
        begins = info.data.get("date_from")
        if begins is not None and value < begins:
            raise PydanticCustomError("period", "must not be before dateFrom")
        return value


class Cleanup(Message):
    """Something old that nobody needs."""

    cleanup_type: Literal[
        "expired_otps",
        "old_audit_logs",
        "orphaned_files",
        "expired_idempotency",
        "completed_jobs",
    ]
    older_than: Instant | None = None
    """None: as old as the kind says."""
    dry_run: StrictBool = False


class Analytics(Message):
    """An event that is counted."""

    event_type: Name
    event_data: Annotated[Data, Field(repr=False)]
    user_id: Id | None = None
    session_id: Name | None = None
    timestamp: Instant


class SchedulerMessage(Message):
    """Work that was due at a fixed time."""

    scheduled_job_type: Literal[
        "job_reminder",
        "invoice_overdue_check",
        "daily_reconciliation",
        "weekly_report",
        "cert_expiry_check",
    ]
    target_id: Id | None = None
    """None: all that there are."""
    scheduled_for: Instant
