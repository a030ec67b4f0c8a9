"""The store as an upstream. What it costs is on a bill of its own, by the month."""

from __future__ import annotations

from typing import Any

from apps.providers.outcome import SORTING
from faena import Breaker, Faena, Upstream


def storage_upstream(app: Faena, **overrides: Any) -> Upstream:
    """Declare it; `overrides` are options of `app.upstream`.

    Services take thousands of calls in a second for each prefix, so there is no limit here.
    """
    options: dict[str, Any] = {
        "timeout": "35s",  # a little more than the client's own
        "breaker": Breaker(open="30s"),
        "sorting": SORTING,
    }
    return app.upstream("storage", **{**options, **overrides})
