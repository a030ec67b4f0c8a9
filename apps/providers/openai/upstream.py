"""OpenAI as an upstream: what it costs, how much may be spent, when it is left alone."""

from __future__ import annotations

from typing import Any, Final

from apps.providers.outcome import SORTING
from faena import Breaker, Budget, Faena, Price, Upstream

PRICES: Final = (
    Price("gpt-4-turbo.input", "0.01 USD", per=1000),
    Price("gpt-4-turbo.output", "0.03 USD", per=1000),
    Price("gpt-4.input", "0.03 USD", per=1000),
    Price("gpt-4.output", "0.06 USD", per=1000),
    Price("gpt-3.5-turbo.input", "0.0005 USD", per=1000),
    Price("gpt-3.5-turbo.output", "0.0015 USD", per=1000),
    Price("whisper-1.minute", "0.006 USD"),
)

BUDGETS: Final = (
    # Two figures were asked for: a thirtieth of the month (16.67 USD) in the usage tracker, and 50
    # USD in the table of budgets. The table holds: it has all services, and the month is a budget
    # of its own, so a busy day may cost more than its share. Alerts are those of the table; from
    # 80 % on, where the tracker raised its alarm, calls should be frugal.
    Budget("50 USD", per="day", soft=0.8, thresholds=[50, 80, 100]),
    Budget("500 USD", per="month", thresholds=[50, 80, 100]),
)

LIMITS: Final = ("500/min",)
"""Requests of the first paid tier; tokens are limited by OpenAI."""


def openai_upstream(app: Faena, **overrides: Any) -> Upstream:
    """Declare it; `overrides` are options of `app.upstream`."""
    options: dict[str, Any] = {
        "limits": LIMITS,
        "timeout": "60s",
        "breaker": Breaker(open="60s"),
        "prices": PRICES,
        "estimate": {"gpt-4-turbo.input": 4000, "gpt-4-turbo.output": 1000},
        "budgets": BUDGETS,
        "sorting": SORTING,
    }
    return app.upstream("openai", **{**options, **overrides})
