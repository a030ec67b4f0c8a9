"""Notifications of payments: any JSON that JSON can carry."""

from __future__ import annotations

from typing import Any

import pytest

from apps.campotech.messages import PaymentWebhook
from tests.apps.campotech.messages.judge import OK, judged
from tests.apps.campotech.messages.samples import sample

EVENTS = "input should be 'payment', 'chargeback' or 'refund'"
AN_INSTANT = "must be an instant with its offset, such as 2025-12-01T10:00:00Z"
IS_JSON = "rawPayload must be what JSON carries: texts, finite numbers, at most 64 levels deep"


def nested(levels: int, inside: Any = 1) -> Any:
    """A dict of so many levels, every other one a list."""
    for level in range(levels - 1):
        inside = [inside] if level % 2 else {"a": inside}
    return {"a": inside}


TABLE: list[tuple[dict[str, Any], str]] = [
    *(({"eventType": event}, OK) for event in ("payment", "chargeback", "refund")),
    *(({"eventType": bad}, f"eventType {EVENTS}") for bad in ("payment.created", "", None, 1)),
    *(({name: good}, OK)
      for name in ("webhookId", "mpPaymentId", "signature") for good in ("1", "a b", "ñ" * 256)),
    *(({name: ""}, f"{name} string should have at least 1 character")
      for name in ("webhookId", "mpPaymentId", "signature")),
    *(({name: "x" * 257}, f"{name} string should have at most 256 characters")
      for name in ("webhookId", "mpPaymentId", "signature")),
    *(({name: bad}, f"{name} input should be a valid string")
      for name in ("webhookId", "mpPaymentId", "signature") for bad in (98765, None)),
    *(({"rawPayload": good}, OK)
      for good in ({}, {"a": [1, 2.5, None, True, {"": "ñ\x00"}]}, {"a": 10**30}, nested(64))),
    *(({"rawPayload": bad}, "rawPayload input should be a valid dictionary")
      for bad in ([], "{}", None, 1)),
    *(({"rawPayload": bad}, IS_JSON)
      for bad in (nested(65), nested(5_000), {"a": float("nan")}, {"a": [float("inf")]},
                  {"a": {1, 2}}, {"a": (1, 2)}, {"a": b"x"}, {"a": {1: 2}}, {"a": object()},
                  {"a": "\ud800"}, {"\ud800": 1})),
    ({"receivedAt": 1701234567}, f"receivedAt {AN_INSTANT}"),
    ({"receivedAt": "2025-12-01T10:00:00"}, "receivedAt input should have timezone info"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "says"), TABLE)
async def test_a_notification_is_judged_as_the_specification_says(
    changes: dict[str, Any], says: str
) -> None:
    assert await judged("payment.webhook", sample("payment.webhook", **changes)) == says


async def test_a_payload_that_contains_itself_is_refused() -> None:
    payload: dict[str, Any] = {}
    payload["a"] = payload
    assert await judged("payment.webhook", sample("payment.webhook", rawPayload=payload)) == IS_JSON


def test_what_the_provider_sent_is_kept_as_it_was() -> None:
    sent = {"live_mode": True, "userId": 1, "user_id": 2, "data": {"id": "98765"}}
    message = PaymentWebhook.model_validate(sample("payment.webhook", rawPayload=sent))
    back = PaymentWebhook.model_validate_json(message.model_dump_json(by_alias=True))
    assert back.raw_payload == sent
