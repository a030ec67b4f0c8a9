"""WhatsApp: messages to customers, and theirs to us."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, StrictBool, StringConstraints, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from apps.campotech.messages.base import Message
from apps.campotech.messages.fields import Id, Instant, Name, Phone, Url, Words

_NEEDED: Final = {"text": "text", "template_name": "template", "media_url": "media"}
"""The field without which a message of a kind says nothing."""

_KIND_OF: Final = _NEEDED | {"template_params": "template", "media_caption": "media"}


class WhatsAppOutbound(Message):
    """A text, a template or a medium for one customer.

    What belongs to another kind of message is refused: whoever wrote it expects it to be sent.
    """

    message_type: Literal["text", "template", "media"]
    recipient_phone: Annotated[Phone, Field(repr=False)]
    customer_id: Id | None = None

    text: Annotated[Words, StringConstraints(max_length=4096)] | None = Field(
        default=None, validate_default=True, repr=False
    )
    template_name: Annotated[Words, StringConstraints(pattern="^[a-z0-9_]{1,512}$")] | None = Field(
        default=None, validate_default=True
    )
    """As WhatsApp allows them."""
    template_params: list[Words] = Field(default_factory=list[str], repr=False)
    media_url: Url | None = Field(default=None, validate_default=True, repr=False)
    media_caption: Annotated[Words, StringConstraints(max_length=1024)] | None = Field(
        default=None, repr=False
    )

    job_id: Id | None = None
    invoice_id: Id | None = None

    @field_validator("text", "template_name", "template_params", "media_url", "media_caption")
    @classmethod
    def _fits_its_kind(cls, value: Any, info: ValidationInfo) -> Any:
        field, kind = info.field_name or "", info.data.get("message_type")
        own = _KIND_OF[field]
        if kind == own and value is None and field in _NEEDED:
            raise PydanticCustomError("needed", "is required in a {kind} message", {"kind": kind})
        if field == "text" and isinstance(value, str) and not value.strip():
            raise PydanticCustomError("blank", "must not be blank")
        if kind not in (own, None) and value not in (None, []):
            raise PydanticCustomError("foreign", "is only for a {kind} message", {"kind": own})
        return value


class WhatsAppInbound(Message):
    """A message of a customer, as it came in."""

    wa_message_id: Name
    wa_timestamp: Instant
    sender_phone: Annotated[Name, Field(repr=False)]
    """As WhatsApp writes it: digits, without a plus."""
    message_type: Literal["text", "voice", "image", "document", "interactive"]
    content: Words | None = Field(default=None, repr=False)
    media_id: Name | None = None
    media_mime_type: Name | None = None
    is_business_initiated: StrictBool
