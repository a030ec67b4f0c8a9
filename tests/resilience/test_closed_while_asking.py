"""A call that was permitted is not made if its upstream was closed meanwhile."""

from __future__ import annotations

import pytest

from faena import Faena, UpstreamUnavailable
from faena.resilience.gate import Gate
from faena.resilience.question import Granted, Wanted


async def test_what_closes_while_a_call_asks_stops_it(
    shop: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    afip, admit = shop.upstream("afip"), Gate.admit

    async def slow_admit(gate: Gate, wanted: list[Wanted]) -> list[Granted]:
        answers = await admit(gate, wanted)
        gate.close("afip", "", 60_000_000, "rate_limited")
        return answers

    monkeypatch.setattr(Gate, "admit", slow_admit)
    with pytest.raises(UpstreamUnavailable, match="rate_limited"):
        async with afip.call():
            raise AssertionError("it was called while it was closed")
