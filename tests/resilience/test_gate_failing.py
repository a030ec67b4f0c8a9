"""Reports that the broker does not take: sent again where that may help, otherwise dropped."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from faena import Faena, Price
from faena.engine.calls import resilience
from faena.engine.calls.resilience import Settled
from faena.errors import ScriptError, StoreRejected, StoreUnavailable
from faena.resilience.gate import Gate


class Refusing:
    """`admit` that fails some times before it works."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int, error: Exception) -> None:
        self.calls, self._times, self._error = 0, times, error
        self._admit = resilience.admit
        monkeypatch.setattr(resilience, "admit", self.admit)

    async def admit(self, *args: Any) -> Any:
        self.calls += 1
        if self.calls <= self._times:
            raise self._error
        return await self._admit(*args)


async def _gate(shop: Faena) -> Gate:
    shop.upstream("sms", prices=[Price("call", "1 USD")])
    return (await shop.runtime()).gate


def _spent(views: Any) -> list[str]:
    return [str(one.spent) for one in views.services]


@pytest.mark.parametrize(
    "error", [StoreUnavailable("away"), StoreRejected("NOPERM")], ids=["away", "refused"]
)
async def test_reports_are_sent_again_once_the_broker_takes_them(
    shop: Faena,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    gate = await _gate(shop)
    refusing = Refusing(monkeypatch, 5, error)
    with caplog.at_level(logging.WARNING, "faena.resilience"):
        await gate.settle(Settled("", 0, "", "", ["sms", 1_000_000]))
    assert refusing.calls == 6
    assert len(caplog.messages) == 3  # the first, the second, the fourth
    assert _spent(await shop.cost_report()) == ["1.00 USD"]


async def test_reports_that_no_script_takes_keep_no_later_ones_back(
    shop: Faena, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gate = await _gate(shop)
    Refusing(monkeypatch, 1, ScriptError("a fault of ours"))
    await gate.settle(Settled("", 0, "", "", ["sms", 1_000_000]))
    assert "reports of calls to upstreams are dropped: a fault of ours" in caplog.text
    await gate.settle(Settled("", 0, "", "", ["sms", 2_000_000]))
    assert _spent(await shop.cost_report()) == ["2.00 USD"]


async def test_reports_of_an_upstream_that_the_program_does_not_declare_are_dropped(
    shop: Faena, caplog: pytest.LogCaptureFixture
) -> None:
    gate = await _gate(shop)
    await gate.settle(Settled("", 0, "", "", ["other", 1_000_000]))
    assert "reports of calls to upstreams are dropped" in caplog.text


async def test_tries_become_rarer_while_the_broker_refuses(shop: Faena) -> None:
    gate = await _gate(shop)
    pauses: list[float] = []
    for failures in range(12):
        gate._failures = failures
        pauses.append(gate._pause_s())
    gate._failures = 0
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.02, 5.0)
