"""bulk.lua"""

from __future__ import annotations

from faena.engine.calls.bulk import LEASE_US, SHARD, BulkCalls
from tests._support.rig import SECOND, T0, Rig


async def begin(rig: Rig, ident: str = "b") -> BulkCalls:
    calls = BulkCalls(rig.engine)
    await calls.ask("begin", ident, plan=b"{}", progress=b"0")
    return calls


async def clear(rig: Rig) -> None:
    await rig.engine.command("DEL", SHARD, "bulks")


async def test_one_begins_once_and_is_driven_by_one_at_a_time(rig: Rig) -> None:
    calls = await begin(rig)
    assert await calls.ask("begin", "b", plan=b"other", progress=b"9") == await calls.ask(
        "look", "b"
    )
    taken = await calls.ask("take", "b", owner="ana")
    assert taken is not None
    assert (taken.state, taken.at, taken.owner, taken.plan) == ("running", T0, "ana", "{}")
    assert await calls.ask("take", "b", owner="leo") is None
    assert await calls.ask("save", "b", owner="leo", progress=b"7") is None
    rig.clock.go(LEASE_US / SECOND + 1)
    assert await calls.ask("take", "b", owner="leo") is not None
    assert await calls.ask("save", "b", owner="ana", progress=b"7") is None
    saved = await calls.ask("save", "b", owner="leo", progress=b"1")
    assert saved is not None
    assert saved.progress == "1"
    assert saved.lease_until == rig.clock.now + LEASE_US
    await clear(rig)


async def test_it_is_stopped_resumed_and_ends(rig: Rig) -> None:
    calls = await begin(rig)
    await calls.ask("take", "b", owner="ana")
    stopped = await calls.ask("stop", "b")
    assert stopped is not None
    assert (stopped.state, stopped.ended_at) == ("stopped", T0)
    told = await calls.ask("save", "b", owner="ana", progress=b"1")
    assert told is not None
    assert (told.state, told.lease_until) == ("stopped", 0)
    assert await calls.ask("take", "b", owner="leo") is None
    resumed = await calls.ask("resume", "b")
    assert resumed is not None
    assert (resumed.state, resumed.ended_at) == ("running", None)
    await calls.ask("take", "b", owner="leo")
    ended = await calls.ask("end", "b", owner="leo", progress=b"2")
    assert ended is not None
    assert (ended.state, ended.progress, ended.lease_until) == ("done", "2", 0)
    assert await calls.ask("stop", "b") == ended
    assert await calls.ask("look", "other") is None
    await clear(rig)


async def test_the_oldest_that_ended_are_forgotten(rig: Rig) -> None:
    calls = BulkCalls(rig.engine)
    for number in range(102):
        rig.clock.go(1)
        await begin(rig, f"b{number}")
        if number % 50:
            await calls.ask("stop", f"b{number}")
    kept = set(await calls.all())
    assert {f"b{number}" for number in range(102)} - kept == {"b1", "b2"}
    await clear(rig)
