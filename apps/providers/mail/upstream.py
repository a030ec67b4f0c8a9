"""The mail server as an upstream. Mails cost nothing."""

from __future__ import annotations

from typing import Any, Final

from apps.providers.outcome import SORTING
from faena import Breaker, Faena, Upstream

LIMITS: Final = ("600/min",)
"""Most relays take ten in a second."""


def mail_upstream(app: Faena, **overrides: Any) -> Upstream:
    """Declare it; `overrides` are options of `app.upstream`."""
    options: dict[str, Any] = {
        "limits": LIMITS,
        "timeout": "35s",  # a little more than the client's own
        "breaker": Breaker(open="60s"),
        "sorting": SORTING,
    }
    return app.upstream("mail", **{**options, **overrides})
