"""What programs say of upstreams is kept for every process."""

from __future__ import annotations

from faena.engine.calls.resilience import SHARD
from faena.resilience.breaker import Breaker
from tests._support.upstream_rig import UpstreamRig


async def test_the_latest_declaration_counts(upstreams: UpstreamRig) -> None:
    await upstreams.declare(breaker=Breaker(volume=3))
    await upstreams.declare(breaker=Breaker(volume=2))
    assert await upstreams.report(bad=1) == []
    assert await upstreams.report(bad=1) == ["open"]


async def test_a_declaration_that_says_nothing_new_writes_nothing(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    ask = upstreams.engine.ask
    packed = await upstreams.engine.command("HGET", SHARD, "upstreams", "afip")
    assert await ask("declare_upstreams", SHARD, "afip", packed) == 0
    assert await ask("declare_upstreams", SHARD, "afip", packed, "mp", packed) == 1


async def test_other_upstreams_stay(upstreams: UpstreamRig) -> None:
    await upstreams.declare("afip")
    await upstreams.declare("whatsapp")
    assert (await upstreams.ask(name="afip")).number == 1
    assert (await upstreams.ask(name="whatsapp")).number == 1
