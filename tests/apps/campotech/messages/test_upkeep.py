"""Reconciliation, cleaning up, analytics and the work of schedules."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from apps.campotech.messages import MESSAGES
from tests.apps.campotech.messages.judge import OK, judged
from tests.apps.campotech.messages.samples import sample

A_UUID = "must be a UUID, such as 0f8fad5b-d9cb-469f-a165-70867728950e"
AN_INSTANT = "must be an instant with its offset, such as 2025-12-01T10:00:00Z"
A_DAY = "must be a day, such as 2025-12-01"
NO_SUCH_DAY = "input should be a valid date or datetime, day value is outside expected range"
NAIVE = "input should have timezone info"
CLEANUPS = (
    "expired_otps", "old_audit_logs", "orphaned_files", "expired_idempotency", "completed_jobs",
)  # fmt: skip
SCHEDULED = (
    "job_reminder", "invoice_overdue_check", "daily_reconciliation", "weekly_report",
    "cert_expiry_check",
)  # fmt: skip


def one_of(*values: str) -> str:
    """As pydantic lists them."""
    quoted = [f"'{value}'" for value in values]
    return f"input should be {', '.join(quoted[:-1])} or {quoted[-1]}"


RECONCILIATION: list[tuple[dict[str, Any], str]] = [
    *(({"reconciliationType": kind}, OK) for kind in ("payments", "invoices", "messages")),
    *(({"reconciliationType": bad},
       f"reconciliationType {one_of('payments', 'invoices', 'messages')}")
      for bad in ("leads", "", None)),
    ({"dateFrom": "2025-11-30", "dateTo": "2025-11-30"}, OK),
    ({"dateFrom": date(2025, 11, 1), "dateTo": date(2025, 11, 2)}, OK),
    ({"dateFrom": "2024-02-29"}, OK),
    ({"dateFrom": "2025-12-01", "dateTo": "2025-11-30"}, "dateTo must not be before dateFrom"),
    *(({name: bad}, f"{name} {A_DAY}")
      for name in ("dateFrom", "dateTo")
      for bad in ("", "1.11.2025", "2025-1-1", "2025-11-01T00:00:00Z", "20251101", 20251101, None,
                  1700000000, "2025-11-01\n", datetime(2025, 11, 1))),  # noqa: DTZ001 - no day
    ({"dateFrom": "2025-02-29"}, f"dateFrom {NO_SUCH_DAY}"),
    *(({"fullReconciliation": good}, OK) for good in (True, False)),
    *(({"fullReconciliation": bad}, "fullReconciliation input should be a valid boolean")
      for bad in (1, "no", None)),
]  # fmt: skip

CLEANUP: list[tuple[dict[str, Any], str]] = [
    *(({"cleanupType": kind}, OK) for kind in CLEANUPS),
    *(({"cleanupType": bad}, f"cleanupType {one_of(*CLEANUPS)}") for bad in ("all", "", None)),
    ({"olderThan": ...}, OK),
    ({"olderThan": 86_400}, f"olderThan {AN_INSTANT}"),
    ({"olderThan": "2025-12-01T10:00:00"}, f"olderThan {NAIVE}"),
    *(({"dryRun": good}, OK) for good in (True, False)),
    *(({"dryRun": bad}, "dryRun input should be a valid boolean") for bad in (0, "false", None)),
]  # fmt: skip

ANALYTICS: list[tuple[dict[str, Any], str]] = [
    ({"eventType": "x" * 256}, OK),
    ({"eventType": ""}, "eventType string should have at least 1 character"),
    ({"eventType": "x" * 257}, "eventType string should have at most 256 characters"),
    ({"eventType": None}, "eventType input should be a valid string"),
    ({"eventData": {}}, OK),
    ({"eventData": []}, "eventData input should be a valid dictionary"),
    ({"userId": ...}, OK),
    ({"userId": "x"}, f"userId {A_UUID}"),
    ({"sessionId": ...}, OK),
    ({"sessionId": ""}, "sessionId string should have at least 1 character"),
    ({"sessionId": 5}, "sessionId input should be a valid string"),
    ({"timestamp": 1701234567}, f"timestamp {AN_INSTANT}"),
    ({"timestamp": "2025-12-01T10:00:00"}, f"timestamp {NAIVE}"),
]  # fmt: skip

SCHEDULER: list[tuple[dict[str, Any], str]] = [
    *(({"scheduledJobType": kind}, OK) for kind in SCHEDULED),
    *(({"scheduledJobType": bad}, f"scheduledJobType {one_of(*SCHEDULED)}")
      for bad in ("monthly_report", "", None)),
    ({"targetId": ...}, OK),
    ({"targetId": "x"}, f"targetId {A_UUID}"),
    ({"scheduledFor": "soon"}, f"scheduledFor {AN_INSTANT}"),
    ({"scheduledFor": "2025-12-01T10:00:00"}, f"scheduledFor {NAIVE}"),
]  # fmt: skip

TABLES = {
    "reconciliation": RECONCILIATION,
    "cleanup": CLEANUP,
    "analytics": ANALYTICS,
    "scheduler": SCHEDULER,
}


@pytest.mark.parametrize(
    ("queue", "changes", "says"),
    [(queue, *row) for queue, table in TABLES.items() for row in table],
)
async def test_work_behind_the_scenes_is_judged_as_the_specification_says(
    queue: str, changes: dict[str, Any], says: str
) -> None:
    assert await judged(queue, sample(queue, **changes)) == says


@pytest.mark.parametrize(
    ("queue", "name", "field"),
    [("reconciliation", "fullReconciliation", "full_reconciliation"),
     ("cleanup", "dryRun", "dry_run")],
)  # fmt: skip
def test_what_is_thorough_or_harmless_is_so_only_on_request(
    queue: str, name: str, field: str
) -> None:
    message = MESSAGES[queue].model_validate(sample(queue, **{name: ...}))
    assert getattr(message, field) is False
