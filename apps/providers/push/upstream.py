"""Firebase as an upstream. Messages cost nothing."""

from __future__ import annotations

from typing import Any, Final

from apps.providers.outcome import SORTING
from faena import Breaker, Faena, Upstream

LIMITS: Final = ("10000/min",)
"""Firebase takes 600,000 of a project; a burst need not use them."""


def push_upstream(app: Faena, **overrides: Any) -> Upstream:
    """Declare it; `overrides` are options of `app.upstream`."""
    options: dict[str, Any] = {
        "limits": LIMITS,
        "timeout": "15s",
        "breaker": Breaker(open="30s"),
        "sorting": SORTING,
    }
    return app.upstream("push", **{**options, **overrides})
