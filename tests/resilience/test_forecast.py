"""A month that is over has no forecast, from its last instant on."""

from __future__ import annotations

from faena.engine.calls.budget_view import span
from faena.resilience.costs import _forecast


def test_a_month_that_is_over_has_no_forecast() -> None:
    _, end = span("202610")
    assert _forecast(end - 1, "202610") is not None
    assert _forecast(end, "202610") is None
