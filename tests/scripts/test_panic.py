"""While an upstream is in panic no call is permitted, whatever its breaker says."""

from __future__ import annotations

import pytest

from faena.engine.calls import upstreams as calls
from faena.engine.calls.resilience import SHARD, Grant, Undeclared
from faena.resilience.breaker import Breaker
from tests._support.eventually import eventually
from tests._support.rig import SECOND
from tests._support.upstream_rig import UpstreamRig

REFUSED = Grant(0, is_probe=False, upstream="afip", reason="panic", wait_us=0)


async def panic(rig: UpstreamRig, reason: str = "expired", **more: int | None) -> bool:
    return await calls.panic(rig.engine, "afip", reason, "ana", more.get("us"))


async def test_nothing_is_permitted_until_it_is_ended(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    assert await panic(upstreams)
    assert await upstreams.ask(5) == REFUSED
    upstreams.clock.go(86_400)
    assert await upstreams.ask(5) == REFUSED
    assert await calls.end_panic(upstreams.engine, "afip", "leo")
    assert (await upstreams.ask(5)).number == 5
    assert [row[1:] for row in await upstreams.told()] == [
        ["ana", "upstream_panic", "afip\nexpired"],
        ["leo", "upstream_panic_ended", "afip\nexpired"],
    ]


async def test_other_upstreams_go_on(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.declare("mp")
    await panic(upstreams)
    assert (await upstreams.ask(name="mp")).number == 1


async def test_it_ends_by_itself(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await panic(upstreams, us=30 * SECOND)
    assert await upstreams.ask() == REFUSED._replace(wait_us=30 * SECOND)
    upstreams.clock.go(30)
    assert (await upstreams.ask()).number == 1
    assert (await upstreams.ask()).number == 1
    assert [row[1:] for row in await upstreams.told()][1:] == [
        ["faena", "upstream_panic_ended", "afip\nexpired"]
    ], "told once"
    assert not await calls.end_panic(upstreams.engine, "afip", "ana")


async def test_a_second_one_gives_it_another_reason_and_end(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    assert await panic(upstreams)
    upstreams.clock.go(1)
    assert not await panic(upstreams, "again", us=5 * SECOND)
    assert not await panic(upstreams, "again", us=5 * SECOND), "and the same again changes nothing"
    (view,) = await calls.views(upstreams.engine, ["afip"])
    assert view.panic is not None
    assert (view.panic.reason, view.panic.since) == ("again", upstreams.clock() - SECOND)
    assert view.panic.until == upstreams.clock() + 5 * SECOND
    assert await upstreams.events() == ["upstream_panic afip"] * 2


async def test_a_call_that_is_sent_again_decides_once(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    named = {"caller": "c", "id_of_call": "panic", "upstream": "afip", "by": "ana"}
    for _ in range(2):
        begun = await upstreams.engine.ask("panic", SHARD, verb="begin", reason="r", **named)
        assert begun == [0]
    assert await calls.end_panic(upstreams.engine, "afip", "ana")
    late = await upstreams.engine.ask("panic", SHARD, verb="begin", reason="r", **named)
    assert late == [0]
    assert (await upstreams.ask()).number == 1, "the late copy began nothing"


async def test_to_end_none_is_no_event(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    assert not await calls.end_panic(upstreams.engine, "afip", "ana")
    assert await upstreams.events() == []


async def test_an_unknown_upstream_is_named(upstreams: UpstreamRig) -> None:
    with pytest.raises(Undeclared, match="afip"):
        await panic(upstreams)


# -- after repeated opening ------------------------------------------------------------------------

OPENS = Breaker(volume=4, open="5s", longest="5s", window="10s")


async def fail_a_probe(rig: UpstreamRig) -> None:
    rig.clock.go(5)
    assert await rig.report(probes=[await rig.probe(), 0]) == ["open"]


async def test_a_breaker_that_opens_again_and_again_calls_one(upstreams: UpstreamRig) -> None:
    await upstreams.declare(breaker=OPENS, panic_after=3)
    await upstreams.trip()
    await fail_a_probe(upstreams)
    assert (await calls.views(upstreams.engine))[0].panic is None
    await fail_a_probe(upstreams)
    (view,) = await calls.views(upstreams.engine)
    assert view.panic is not None
    assert (view.panic.by, view.panic.until) == ("faena", None)
    assert view.panic.reason == "the breaker has opened 3 times in a row"
    upstreams.clock.go(3600)
    assert (await upstreams.ask()).reason == "panic"
    last = (await upstreams.told())[-1]
    reason = view.panic.reason
    assert last[1:] == ["faena", "upstream_open", "afip\na probe failed", "upstream_panic",
                        f"afip\n{reason}"]  # fmt: skip


async def test_after_its_end_it_takes_as_many_openings_again(upstreams: UpstreamRig) -> None:
    await upstreams.declare(breaker=OPENS, panic_after=2)
    await upstreams.trip()
    await fail_a_probe(upstreams)
    await calls.end_panic(upstreams.engine, "afip", "ana")
    await fail_a_probe(upstreams)
    assert (await calls.views(upstreams.engine))[0].panic is None
    await fail_a_probe(upstreams)
    assert (await calls.views(upstreams.engine))[0].panic is not None


async def test_it_leaves_the_panic_of_an_operator_alone(upstreams: UpstreamRig) -> None:
    await upstreams.declare(breaker=OPENS, panic_after=1)
    await panic(upstreams)
    await upstreams.trip()
    (view,) = await calls.views(upstreams.engine)
    assert view.panic is not None
    assert view.panic.by == "ana"


async def test_every_change_is_published_to_all(upstreams: UpstreamRig) -> None:
    heard: list[str] = []
    hears = await upstreams.engine.listen(upstreams=lambda _, message: heard.append(message))
    try:
        await upstreams.declare(breaker=OPENS, panic_after=1)
        await upstreams.declare("mp")
        await upstreams.report(good=1, name="mp", wait_us=7)
        await upstreams.report(good=1, name="mp", wait_us=5)
        await upstreams.trip()
        await eventually(lambda: len(heard) == 3)
    finally:
        await hears.close()
    assert heard == [
        "upstream_rate_limited 7 mp",
        "upstream_open 5000000 afip",
        "upstream_panic 0 afip",
    ]
