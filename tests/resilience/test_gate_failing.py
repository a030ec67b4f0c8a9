"""Reports that the broker does not take: sent again where that may help, otherwise dropped."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from faena import Breaker, Faena, Price
from faena.engine.calls import resilience
from faena.engine.calls.resilience import Settled
from faena.errors import ScriptError, StoreRejected, StoreUnavailable
from faena.resilience.gate import _AT_ONCE, Gate
from faena.states import State
from tests._support.eventually import eventually
from tests._support.working import Working


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


async def test_no_handler_begins_while_nobody_can_be_asked(
    shop: Faena, working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    sms, ran = shop.upstream("sms"), list[int]()

    @shop.queue("texts").task(upstreams=[sms])
    async def send(number: int) -> None:
        ran.append(number)

    handle = (await send.enqueue(1)).handle
    asked = Refusing(monkeypatch, 10**9, StoreUnavailable("away"))
    decided: list[tuple[State, int]] = []

    async def is_decided() -> bool:
        view = await handle.view()
        assert view is not None
        if view.state not in {State.READY, State.RUNNING}:
            decided.append((view.state, view.attempts_made))
        return bool(decided)

    async with working(shop):
        await eventually(is_decided)
    assert asked.calls
    assert (ran, decided) == ([], [(State.DELAYED, 0)])


async def test_reports_of_more_breakers_than_one_call_takes_all_arrive(
    shop: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    sms = shop.upstream("sms", breaker=Breaker(per="tenant"))
    gate, admit, told = (await shop.runtime()).gate, resilience.admit, list[tuple[str, int]]()

    async def watched(engine: Any, caller: Any, turn: Any, reports: Any, *rest: Any) -> Any:
        told.extend((one.tenant, one.calls) for one in reports)
        return await admit(engine, caller, turn, reports, *rest)

    monkeypatch.setattr(resilience, "admit", watched)
    tenants = [f"t{number}" for number in range(_AT_ONCE + 1)]
    for calls in (1, 2):  # one that was left behind would never report again
        for tenant in tenants:
            gate.group([sms], tenant).counters[0].add_good(calls)
        await gate.flush()
        assert told == [(tenant, calls) for tenant in tenants]
        told.clear()
