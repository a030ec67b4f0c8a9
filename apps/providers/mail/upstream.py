"""The mail server as an upstream. Mails cost nothing."""

from __future__ import annotations

from typing import Any

from apps.providers.outcome import SORTING
from faena import Breaker, Faena, Upstream


def mail_upstream(app: Faena, **overrides: Any) -> Upstream:
    """Declare it; `overrides` are options of `app.upstream`."""
    options: dict[str, Any] = {
        "limits": ["600/min"],  # most relays take ten in a second
        "timeout": "35s",  # a little more than the client's own
        "breaker": Breaker(open="60s"),
        "sorting": SORTING,
    }
    return app.upstream("mail", **{**options, **overrides})
