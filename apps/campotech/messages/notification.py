"""Notifications: what customers are told about the technician's visit."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from apps.campotech.messages.base import Message
from apps.campotech.messages.fields import Id, Instant

NotificationType = Literal[
    "scheduled", "reminder_24h", "reminder_1h", "en_camino", "completed", "cancelled"
]
_REMINDERS: Final = ("reminder_24h", "reminder_1h")


class JobNotification(Message):
    """News of a visit."""

    job_id: Id
    notification_type: NotificationType
    customer_id: Id
    technician_id: Id | None = None
    scheduled_time: Instant | None = Field(default=None, validate_default=True)
    """When the technician comes."""

    @field_validator("scheduled_time")
    @classmethod
    def _reminds_of_something(cls, value: datetime | None, info: ValidationInfo) -> datetime | None:
        if value is None and info.data.get("notification_type") in _REMINDERS:
            raise PydanticCustomError("needed", "is required in a reminder")
        return value
