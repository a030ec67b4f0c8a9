"""search.lua"""

from __future__ import annotations

import pytest

from faena.engine.calls import search as calls
from faena.engine.calls.search import Sieve, Spot
from faena.outcomes import Buried, Completed, ErrorRecord
from tests._support.rig import SECOND, T0, Rig

LIVE = ("running", "ready", "blocked", "delayed")
ALL = Sieve()


async def look(
    rig: Rig, states: tuple[str, ...], sieve: Sieve = ALL, wanted: int = 50
) -> list[str]:
    """The ids of all jobs that may fit, over as many calls as that takes."""
    found: list[str] = []
    spot: Spot | None = Spot()
    while spot is not None:
        looked = await calls.search(rig.engine, rig.queue, states, sieve, spot, wanted)
        assert len(looked.met) <= wanted
        found += [one.id for one in looked.met]
        spot = looked.spot
    return found


@pytest.mark.parametrize("wanted", [1, 2, 50])
async def test_states_are_gone_through_in_their_order_the_newest_first(
    rig: Rig, wanted: int
) -> None:
    await rig.add("a", "b")
    await rig.claim(2)
    await rig.add("c", "d", "e")
    await rig.add("f", delay=5 * SECOND)
    assert await look(rig, LIVE, wanted=wanted) == ["a", "b", "e", "d", "c", "f"]


async def test_jobs_are_sieved_by_what_their_spec_and_last_error_say(rig: Rig) -> None:
    await rig.declare()
    await rig.add("x1", "x2", "y1", body=b'{"task":"noop"}')
    lease = await rig.claim(3)
    ends = [
        ("x1", Buried(error=ErrorRecord(name="Boom", message="The PRINTER is on fire"))),
        ("x2", Buried(error=ErrorRecord(name="Boom", message="no paper"))),
        ("y1", Completed()),
    ]
    await rig.turn(0, *((job, lease, end) for job, end in ends))
    ended = ("dead", "completed")
    assert await look(rig, ended, Sieve(prefix="x")) == ["x2", "x1"]
    assert await look(rig, ended, Sieve(error="printer")) == ["x1"]
    assert await look(rig, ended, Sieve(word="paper")) == ["x2"]
    assert await look(rig, ended, Sieve(word="y1")) == ["y1"]
    assert await look(rig, ended, Sieve(needles=("noop",))) == ["x2", "x1", "y1"]
    assert await look(rig, ended, Sieve(needles=("noop", "nothing"))) == []


async def test_jobs_that_ended_are_found_by_when(rig: Rig) -> None:
    await rig.declare()
    for job in "abcd":
        await rig.add(job)
        lease = await rig.claim(1)
        await rig.turn(0, (job, lease, Completed()))
        rig.clock.go(10)
    at = [T0 + number * 10 * SECOND for number in range(4)]
    assert await look(rig, ("completed",), Sieve(since=at[1])) == ["d", "c", "b"]
    assert await look(rig, ("completed",), Sieve(until=at[2])) in (["c", "b", "a"], ["b", "a"])
    assert await look(rig, ("completed",), Sieve(since=at[1], until=at[1] + 1)) == ["b"]


async def test_a_call_looks_at_so_many_jobs_and_says_where_it_has_come_to(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "LOOKED", 3)
    await rig.add(*"abcde")
    none = Sieve(prefix="z")
    first = await calls.search(rig.engine, "q", LIVE, none, Spot(), 5)
    assert (first.number, first.met) == (3, [])
    assert first.spot is not None
    assert first.spot.id == "c"
    second = await calls.search(rig.engine, "q", LIVE, none, first.spot, 5)
    assert (second.number, second.spot) == (2, None)


async def test_a_call_reads_no_more_bytes_than_a_few_payloads_have(rig: Rig) -> None:
    await rig.declare()
    await rig.add(*"abcd", payload="x" * 200_000)
    found = await calls.search(rig.engine, "q", LIVE, Sieve(needles=("none",)), Spot(), 5)
    assert found.number == 2
    assert await look(rig, LIVE, Sieve(needles=("xxx",))) == ["d", "c", "b", "a"]


async def test_it_changes_nothing_and_goes_on_behind_what_is_gone(rig: Rig) -> None:
    await rig.add("a", "b", "c")
    await rig.remember()
    first = await calls.search(rig.engine, "q", LIVE, Sieve(), Spot(), 1)
    assert await rig.is_untouched()
    await rig.engine.cancel("q", ["c"])
    assert first.spot is not None
    second = await calls.search(rig.engine, "q", LIVE, Sieve(), first.spot, 9)
    assert [one.id for one in second.met] == ["b", "a"]
