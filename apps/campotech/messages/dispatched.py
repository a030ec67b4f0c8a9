"""What the web application hands over by a name such as `voice:transcribe`.

It knows only ids, and those as texts; the rest is in the database. Push, SMS and mail have the same
data: one handler delivers all three.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt

from apps.campotech.messages.base import Schema
from apps.campotech.messages.fields import Data, Name, Url, Words


class Dispatched(Schema):
    """The data of one kind of work."""


class OfOrganization(Dispatched):
    """Work for one organisation: a report, its figures."""

    organization_id: Name


class WhatsAppRespond(OfOrganization):
    """A message that a customer waits for an answer to."""

    conversation_id: Name
    message_id: Name


class VoiceTranscribe(OfOrganization):
    """A recording that belongs to a job."""

    audio_url: Annotated[Url, Field(repr=False)]
    job_id: Name


class InvoiceGenerate(OfOrganization):
    """A job that is done and becomes an invoice."""

    job_id: Name


class InvoiceAfipSubmit(OfOrganization):
    """An invoice that needs a CAE."""

    invoice_id: Name


class RatingRequest(OfOrganization):
    """A job whose customer is asked how it was."""

    job_id: Name


class UserNotification(Dispatched):
    """News for a user of the application."""

    user_id: Name
    title: Annotated[Name, Field(repr=False)]
    body: Annotated[Words, Field(repr=False)]
    data: Annotated[Data, Field(repr=False)] = Field(default_factory=dict)
    organization_id: Name | None = None


class ArchiveProcess(Dispatched):
    """A table whose old rows go to the archive. Invoices are kept for ten years, by law."""

    table: Literal["technician_locations", "notification_logs", "jobs"]
    retention_days: Annotated[StrictInt, Field(ge=1)]
    archive_format: Literal["json", "parquet"] = "json"
    delete_after_archive: StrictBool = True
