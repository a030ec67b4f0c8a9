"""Google's maps as an upstream: what questions cost, and how much may be spent on them."""

from __future__ import annotations

from typing import Any

from apps.providers.outcome import SORTING
from faena import Breaker, Budget, Faena, Price, Upstream


def maps_upstream(app: Faena, **overrides: Any) -> Upstream:
    """Declare it; `overrides` are options of `app.upstream`.

    A call is one route, or one pair of a matrix: Google counts both so. Say how many a matrix has
    with `maps.call(estimate=matrix_items(origins, destinations))`.
    """
    options: dict[str, Any] = {
        "limits": ["50/s"],  # the usual 3000 requests in a minute, spread
        "timeout": "10s",
        "breaker": Breaker(open="30s"),
        "prices": [Price("call", "0.005 USD")],
        "budgets": [
            Budget("30 USD", per="day", thresholds=[80, 100]),
            Budget("300 USD", per="month", thresholds=[80, 100]),
        ],
        "sorting": SORTING,
    }
    return app.upstream("maps", **{**options, **overrides})
