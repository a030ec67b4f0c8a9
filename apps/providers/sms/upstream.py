"""Twilio as an upstream: what messages cost, and how much may be spent on them."""

from __future__ import annotations

from typing import Any, Final

from apps.providers.outcome import SORTING
from faena import Breaker, Budget, Faena, Price, Upstream

LIMITS: Final = ("100/min",)
"""A long number may send about one segment in a second, and queues."""


def sms_upstream(app: Faena, **overrides: Any) -> Upstream:
    """Declare it; `overrides` are options of `app.upstream`.

    The estimate is a long text in GSM's alphabet. For one that needs more, say so with the call:
    `twilio.call(estimate={"segment": segments(text)})`.
    """
    options: dict[str, Any] = {
        "limits": LIMITS,
        "timeout": "15s",
        "breaker": Breaker(open="30s"),
        "prices": [Price("segment", "0.0079 USD")],
        "estimate": {"segment": 10},
        "budgets": [
            Budget("20 USD", per="day", thresholds=[80, 100]),
            Budget("200 USD", per="month", thresholds=[80, 100]),
        ],
        "sorting": SORTING,
    }
    return app.upstream("twilio", **{**options, **overrides})
