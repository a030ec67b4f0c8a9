"""What all messages have in common: who it is for, which request it is, and when it was made."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictInt
from pydantic.alias_generators import to_camel

from apps.campotech.messages.fields import Id, IdempotencyText, Instant, Words


class Schema(BaseModel):
    """Frozen; refuses fields that it does not know.

    A field may be spelt as the web application does (`orgId`) or as Python does (`org_id`), not
    both at once. It is sent as `orgId`. Errors do not repeat what was given.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        hide_input_in_errors=True,
    )


class Message(Schema):
    """The payload of a job of one of the thirteen queues."""

    org_id: Id
    idempotency_key: IdempotencyText
    """The caller's own: the same for the same request, however often it is sent."""
    correlation_id: Id | None = None
    created_at: Instant
    priority: Annotated[StrictInt, Field(ge=1, le=100)] | None = None
    """1 is the most urgent; None: the queue's."""
    metadata: dict[str, Words] = Field(default_factory=dict[str, str])
