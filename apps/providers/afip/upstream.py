"""AFIP as an upstream of Faena: how often it may be called, and when to leave it alone."""

from __future__ import annotations

from typing import Any, Final

from apps.providers.outcome import SORTING
from faena import Breaker, Faena, Upstream

LIMITS: Final = ("60/min", "1000/h", "10000/day")
"""AFIP publishes none; these are careful estimates."""


def afip_upstream(app: Faena, **overrides: Any) -> Upstream:
    """Declare AFIP, with other options where `overrides` has them.

    `TicketHeld` is about one certificate only. It counts as a failure of AFIP's here; a handler
    does better to turn it into a `Snooze` inside of its call, for as long as `retry_after` says.
    """
    options: dict[str, Any] = {
        "limits": LIMITS,
        "timeout": "30s",
        "breaker": Breaker(errors=0.5, open="60s"),
        "panic_after": 5,
        "sorting": SORTING,
        **overrides,
    }
    return app.upstream("afip", **options)
