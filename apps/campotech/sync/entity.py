"""What devices may write: the fields of each kind of record, and how they are checked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from apps.campotech.messages.fields import Instant, Text

_MOST_CENTS: Final = 10**15 - 1
"""As the tax office has amounts: thirteen digits and two."""
Status = Literal[
    "draft", "pending", "scheduled", "en_camino", "in_progress", "completed", "cancelled"
]


class _Fields(BaseModel):
    """Every field may be missing: a change names those that it changes. What the table cannot hold
    is refused here: one change that fails would hold up all others of its record."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class JobFields(_Fields):
    """Of a job."""

    customer_id: UUID | None = None
    assigned_to: UUID | None = None
    status: Status = "pending"
    description: Text = Field("", max_length=10_000)
    address: Text | None = Field(None, max_length=500)
    scheduled_date: Instant | None = None
    total_cents: int | None = Field(None, ge=0, le=_MOST_CENTS)


class CustomerFields(_Fields):
    """Of a customer."""

    name: Text = Field("", min_length=1, max_length=200)
    phone: Text | None = Field(None, max_length=30)
    email: Text | None = Field(None, max_length=200)
    address: Text | None = Field(None, max_length=500)
    tax_id: str | None = Field(None, pattern=r"^[0-9]{7,11}$")


class PhotoFields(_Fields):
    """Of a photo: where the device has stored it, and which job it shows."""

    job_id: UUID
    file_key: str = Field(min_length=1, max_length=500, pattern=r"^[\w./-]+$")


class Kind(NamedTuple):
    """A kind of record that devices change."""

    table: str
    fields: type[_Fields]


JOB: Final = Kind("campotech.jobs", JobFields)
CUSTOMER: Final = Kind("campotech.customers", CustomerFields)
KINDS: Final[Mapping[str, Kind]] = {"job": JOB, "customer": CUSTOMER}
PHOTO: Final = Kind("campotech.photos", PhotoFields)


class Refused(ValueError):
    """An operation that makes no sense; the others of its message are applied."""


def read_fields(kind: Kind, data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a change names, as values of their columns."""
    try:
        found = kind.fields.model_validate(dict(data))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        raise Refused(f"{path}: {first['msg'].lower()}") from None
    return {name: getattr(found, name) for name in found.model_fields_set}


def plain(value: Any) -> Any:
    """A value as JSON has it, so that it can be compared with what is stored."""
    if isinstance(value, UUID):
        return str(value)
    return value.isoformat() if isinstance(value, datetime) else value
