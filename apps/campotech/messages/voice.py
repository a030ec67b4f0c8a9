"""Voice notes: first they are written down, then it is found out what they ask for."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictFloat, StrictInt

from apps.campotech.messages.base import Message
from apps.campotech.messages.fields import Id, Name, Url, Words


class VoiceTranscription(Message):
    """A voice note that is not written down yet."""

    message_id: Id
    audio_url: Annotated[Url, Field(repr=False)]
    audio_duration: Annotated[StrictInt, Field(gt=0)]
    """In seconds."""
    audio_mime_type: Name
    language: Name = "es"
    customer_id: Id | None = None


class VoiceExtraction(Message):
    """What was said in a voice note; nothing, if it was silent."""

    transcript_id: Id
    transcription: Annotated[Words, Field(repr=False)]
    confidence: Annotated[StrictFloat, Field(ge=0, le=1, allow_inf_nan=False)]
    message_id: Id
    customer_id: Id | None = None
