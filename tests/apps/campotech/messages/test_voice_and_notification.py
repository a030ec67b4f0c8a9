"""Voice notes, and what customers are told about a visit."""

from __future__ import annotations

from typing import Any

import pytest

from apps.campotech.messages import JobNotification, VoiceTranscription
from tests.apps.campotech.messages.judge import OK, judged
from tests.apps.campotech.messages.samples import sample

A_UUID = "must be a UUID, such as 0f8fad5b-d9cb-469f-a165-70867728950e"
AN_INSTANT = "must be an instant with its offset, such as 2025-12-01T10:00:00Z"
TYPES = ("scheduled", "reminder_24h", "reminder_1h", "en_camino", "completed", "cancelled")
ONE_OF_SIX = (
    "input should be 'scheduled', 'reminder_24h', 'reminder_1h', 'en_camino', 'completed' or "
    "'cancelled'"
)

TRANSCRIPTION: list[tuple[dict[str, Any], str]] = [
    *(({name: "x"}, f"{name} {A_UUID}") for name in ("messageId", "customerId")),
    ({"audioUrl": "http://127.0.0.1:8080/a"}, OK),
    *(({"audioUrl": bad}, "audioUrl must be an http or https URL")
      for bad in ("", "a.ogg", "ftp://a.example/a.ogg", "https://")),
    ({"audioUrl": None}, "audioUrl input should be a valid string"),
    ({"audioDuration": 1}, OK),
    ({"audioDuration": 0}, "audioDuration input should be greater than 0"),
    ({"audioDuration": -1}, "audioDuration input should be greater than 0"),
    *(({"audioDuration": bad}, "audioDuration input should be a valid integer")
      for bad in (1.5, "42", True, None)),
    *(({name: ""}, f"{name} string should have at least 1 character")
      for name in ("audioMimeType", "language")),
    *(({name: 5}, f"{name} input should be a valid string")
      for name in ("audioMimeType", "language")),
    ({"language": "en"}, OK),
]  # fmt: skip

EXTRACTION: list[tuple[dict[str, Any], str]] = [
    *(({name: "x"}, f"{name} {A_UUID}") for name in ("transcriptId", "messageId", "customerId")),
    ({"transcription": ""}, OK),
    ({"transcription": None}, "transcription input should be a valid string"),
    *(({"confidence": good}, OK) for good in (0, 0.0, 1e-9, 0.5, 1, 1.0)),
    ({"confidence": -0.001}, "confidence input should be greater than or equal to 0"),
    ({"confidence": 1.001}, "confidence input should be less than or equal to 1"),
    ({"confidence": 93}, "confidence input should be less than or equal to 1"),
    *(({"confidence": bad}, "confidence input should be a valid number")
      for bad in ("0.5", True, None)),
    *(({"confidence": bad}, "confidence input should be a finite number")
      for bad in (float("nan"), float("inf"))),
]  # fmt: skip

NOTIFICATION: list[tuple[dict[str, Any], str]] = [
    *(({name: "x"}, f"{name} {A_UUID}") for name in ("jobId", "customerId", "technicianId")),
    ({"technicianId": ...}, OK),
    *(({"notificationType": kind}, OK) for kind in TYPES),
    *(({"notificationType": bad}, f"notificationType {ONE_OF_SIX}")
      for bad in ("reminder", "", None)),
    *(({"notificationType": kind, "scheduledTime": ...}, OK)
      for kind in TYPES if not kind.startswith("reminder")),
    *(({"notificationType": kind, "scheduledTime": ...},
       "scheduled_time is required in a reminder") for kind in ("reminder_24h", "reminder_1h")),
    ({"scheduledTime": None}, "scheduledTime is required in a reminder"),
    ({"scheduledTime": "mañana"}, f"scheduledTime {AN_INSTANT}"),
    ({"notificationType": "?", "scheduledTime": ...}, f"notificationType {ONE_OF_SIX}"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "says"), TRANSCRIPTION)
async def test_a_voice_note_is_judged_as_the_specification_says(
    changes: dict[str, Any], says: str
) -> None:
    assert await judged("voice.transcription", sample("voice.transcription", **changes)) == says


@pytest.mark.parametrize(("changes", "says"), EXTRACTION)
async def test_a_transcript_is_judged_as_the_specification_says(
    changes: dict[str, Any], says: str
) -> None:
    assert await judged("voice.extraction", sample("voice.extraction", **changes)) == says


@pytest.mark.parametrize(("changes", "says"), NOTIFICATION)
async def test_a_notification_is_judged_as_the_specification_says(
    changes: dict[str, Any], says: str
) -> None:
    assert await judged("job.notification", sample("job.notification", **changes)) == says


def test_a_voice_note_is_spanish_unless_it_says_otherwise() -> None:
    bare = VoiceTranscription.model_validate(sample("voice.transcription", language=...))
    assert bare.language == "es"


def test_a_visit_may_have_no_technician_yet() -> None:
    bare = JobNotification.model_validate(sample("job.notification", technicianId=...))
    assert bare.technician_id is None
