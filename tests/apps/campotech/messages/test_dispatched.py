"""What the web application hands over by name."""

from __future__ import annotations

from typing import Any

import pytest
from apps.campotech.tiers import DISPATCH

from apps.campotech.messages import DISPATCHED
from tests.apps.campotech.messages.judge import OK, judged

AT_LEAST_1 = "string should have at least 1 character"
NO_STRING = "input should be a valid string"
NO_URL = "audioUrl must be an http or https URL"
NEWS = {"userId": "user-1", "title": "AFIP", "body": "La factura 9 no pudo procesarse"}
ARCHIVE = {"table": "jobs", "retentionDays": 730}
TABLES = "table input should be 'technician_locations', 'notification_logs' or 'jobs'"
ORG = {"organizationId": "org-1"}

SAMPLES: dict[str, dict[str, Any]] = {
    "whatsapp:respond": {"conversationId": "c-1", "messageId": "m-1", **ORG},
    "notification:push": NEWS,
    "voice:transcribe": {"audioUrl": "https://a.example/b.ogg", "jobId": "job-1", **ORG},
    "notification:sms": NEWS,
    "notification:email": NEWS,
    "rating:request": {"jobId": "job-1", **ORG},
    "invoice:generate": {"jobId": "job-1", **ORG},
    "invoice:afip-submit": {"invoiceId": "inv-1", **ORG},
    "report:generate": ORG,
    "analytics:calculate": ORG,
    "archive:process": ARCHIVE,
}

TABLE: list[tuple[str, dict[str, Any], str]] = [
    ("voice:transcribe", {"audioUrl": "a.ogg"}, NO_URL),
    ("notification:push", {"data": {"conversationId": "c-1"}, **ORG}, OK),
    ("notification:push", {"data": []}, "data input should be a valid dictionary"),
    ("notification:push", {"body": ""}, OK),
    ("notification:push", {"body": None}, f"body {NO_STRING}"),
    ("notification:push", {"organizationId": ""}, f"organizationId {AT_LEAST_1}"),
    ("archive:process", {"table": "notification_logs", "archiveFormat": "parquet"}, OK),
    ("archive:process", {"table": "invoices"}, TABLES),
    ("archive:process", {"table": "jobs; DROP TABLE jobs"}, TABLES),
    ("archive:process", {"retentionDays": 1}, OK),
    ("archive:process", {"retentionDays": 0},
     "retentionDays input should be greater than or equal to 1"),
    ("archive:process", {"retentionDays": "9"}, "retentionDays input should be a valid integer"),
    ("archive:process", {"archiveFormat": "csv"},
     "archiveFormat input should be 'json' or 'parquet'"),
    ("archive:process", {"deleteAfterArchive": "no"},
     "deleteAfterArchive input should be a valid boolean"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "says"), TABLE)
async def test_the_data_of_a_name_is_judged(name: str, changes: dict[str, Any], says: str) -> None:
    assert await judged(name, SAMPLES[name] | changes) == says


@pytest.mark.parametrize("name", SAMPLES)
async def test_all_that_a_name_needs_must_be_there_and_nothing_else(name: str) -> None:
    assert await judged(name, SAMPLES[name]) == OK
    assert await judged(name, SAMPLES[name] | {"x": 1}) == "x extra inputs are not permitted"
    for field, value in SAMPLES[name].items():
        rest = {key: value for key, value in SAMPLES[name].items() if key != field}
        assert await judged(name, rest) == f"{field} field required"
        if field.endswith("Id") and isinstance(value, str):
            assert await judged(name, rest | {field: ""}) == f"{field} {AT_LEAST_1}"
            assert await judged(name, rest | {field: 5}) == f"{field} {NO_STRING}"


def test_every_name_of_the_web_application_has_data() -> None:
    assert DISPATCHED.keys() == DISPATCH.keys() == SAMPLES.keys()
