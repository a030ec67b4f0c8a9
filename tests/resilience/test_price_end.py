"""The day that `until` names has no price any more, and the log says so."""

from __future__ import annotations

from datetime import date

import pytest

from faena import Price
from faena.resilience.money import PriceList


def test_on_the_day_a_price_ends_the_log_is_told(caplog: pytest.LogCaptureFixture) -> None:
    prices = PriceList([Price("call", "1 USD", until="2026-11-16")])
    prices.cost({"call": 1}, date(2026, 11, 15), upstream="ai")
    assert not caplog.records
    prices.cost({"call": 1}, date(2026, 11, 16), upstream="ai")
    assert "has no price on 2026-11-16" in caplog.text
