"""A job that is a probe runs, though its process still takes the upstream for closed."""

from __future__ import annotations

from typing import Any

import pytest

from faena import Breaker, Faena
from faena.resilience.upstream import Upstream
from faena.worker.execute.admission import Admission, Asking
from tests._support.eventually import eventually
from tests._support.working import Working


async def test_a_probe_goes_though_the_process_thinks_it_is_open(
    shop: Faena, working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaker = Breaker(volume=4, open="100ms", longest="100ms", ramp="10m")
    afip, ask, probes = shop.upstream("afip", breaker=breaker), Admission.ask, list[str]()
    gate = (await shop.runtime()).gate
    gate.group([afip], "").counters[0].add_bad(4)
    await gate.flush()
    await eventually(lambda: _may_probe(afip))
    gate.forget()
    called: list[int] = []

    @shop.queue("invoices").task(upstreams=[afip])
    async def request() -> None:
        called.append(1)

    async def late(admission: Admission, asking: Asking) -> Any:
        granted, refused = await ask(admission, asking)
        for one in [one for one in granted if one.probe and one.permits and not probes]:
            assert one.permits
            probes.append(one.probe)
            one.permits.group.reporter.close("afip", "", 600_000_000, "open")
        return granted, refused

    monkeypatch.setattr(Admission, "ask", late)
    await request.enqueue()
    async with working(shop):
        await eventually(lambda: called == [1])
    assert probes


async def _may_probe(upstream: Upstream) -> bool:
    return (await upstream.view()).is_probe_due
