"""Upstreams on a real server with a clock that only tests move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faena.engine import Engine
from faena.engine.calls import resilience
from faena.engine.calls.resilience import SHARD, Admitted, Ask, Grant, Report, Settled
from faena.engine.scripts import texts
from faena.resilience.breaker import Breaker
from faena.resilience.upstream_options import UpstreamOptions
from tests._support.rig import Rig

BREAKER = Breaker(volume=4, window="10s", open="5s", longest="20s", probes=1, ramp="10s")

MONEY_T0 = 1_794_830_400_000_000
"""Noon of 2026-11-16, where tests of budgets begin."""


class UpstreamRig:
    """Asks and reports in the shortest words that a test needs."""

    def __init__(self, rig: Rig) -> None:
        self.clock = rig.clock
        self.engine: Engine = rig.engine
        self._turns = 0

    async def declare(self, name: str = "afip", **options: Any) -> None:
        built = UpstreamOptions(**{"breaker": BREAKER, **options})
        await resilience.declare(self.engine, {name: built.settings()})

    async def admit(
        self,
        asks: Sequence[Ask] = (),
        reports: Sequence[Report] = (),
        *,
        settled: Sequence[Settled] = (),
        caller: str = "worker",
        turn: int | None = None,
    ) -> Admitted:
        if turn is None:
            turn = self._turns = self._turns + 1
        call = self.engine, caller, f"{turn:016x}"
        return await resilience.admit(*call, reports, asks, settled)

    async def ask(self, number: int = 1, name: str = "afip", tenant: str = "") -> Grant:
        """The grant for so many calls; their permits begin with `p` and the number of the turn."""
        admitted = await self.admit([Ask([name], tenant, number, f"p{self._turns + 1}")])
        return admitted.grants[0]

    async def report(
        self, good: int = 0, bad: int = 0, name: str = "afip", tenant: str = "", **more: Any
    ) -> list[str]:
        """Tell of calls that have ended; the states that breakers have come to."""
        report = Report(name, tenant, good + bad, bad, **more)
        return [one.state for one in (await self.admit((), [report])).turned]

    async def trip(self, name: str = "afip", tenant: str = "") -> None:
        """Have the breaker open."""
        assert await self.report(bad=BREAKER.volume, name=name, tenant=tenant) == ["open"]

    async def probe(self) -> str:
        """The permit of the one probe that is let through."""
        grant = await self.ask(5)
        assert (grant.number, grant.is_probe, grant.reason) == (1, True, "probing")
        return f"p{self._turns}:1"

    async def events(self) -> list[str]:
        """What was told, in order, without the reasons."""
        told = [words for _, _, *words in await self.told()]
        return [" ".join(each.partition("\n")[0] for each in words) for words in told]

    async def told(self) -> list[list[str]]:
        """Of each event the instant, who did it, and what was told."""
        rows = await self.engine.command("XRANGE", SHARD, "events", "-", "+")
        return [[words[1], words[3], *words[4:]] for words in (texts(each) for _, each in rows)]

    async def clear(self) -> None:
        names = ("upstreams", "troubled", "events", "reserved", "lots", "lot_ends", "features")
        for name in (*names, "forgotten"):
            await self.engine.command("DEL", SHARD, name)
