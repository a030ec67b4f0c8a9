"""redrive.lua"""

from __future__ import annotations

from typing import Any

import pytest

from faena.errors import InternalError
from faena.options import Backpressure
from faena.outcomes import Completed
from tests._support.morgue import Morgue, new_redrive
from tests._support.rig import SECOND, T0, Rig


@pytest.fixture
def morgue(rig: Rig) -> Morgue:
    return Morgue(rig)


async def begin(morgue: Morgue, **facts: Any) -> None:
    await morgue.calls.redrives("q", "begin", "r", new_redrive(**facts))


async def settle(rig: Rig, number: int) -> None:
    """Complete the jobs that are ready."""
    call = rig.next_call()
    claimed = (await rig.turn(number, call=call)).claimed
    assert len(claimed) == number
    await rig.turn(0, *((one.id, call, Completed()) for one in claimed))


async def test_a_slice_retries_the_oldest_and_notes_how_far_it_is(rig: Rig, morgue: Morgue) -> None:
    await morgue.bury("a", "b")
    rig.clock.go(1)
    await morgue.bury("c")
    await begin(morgue)
    step = await morgue.step(most=2)
    assert (step.state, step.moved, step.wait_us, step.is_over) == ("running", 2, 0, False)
    taken = await rig.dump()
    assert taken["desk"]["a"]["to"] == "new0"
    assert taken["desk"]["b"]["r"] == ["redrive", "mended", "ana", T0 + SECOND]
    assert taken["marks"]["new0"] == {"p": 5, "o": "a", "b": "a", "d": "r"}
    assert taken["redrives"]["r"]["moved"] == 2
    step = await morgue.step(most=2)
    assert (step.state, step.moved, step.is_over) == ("done", 1, True)
    assert (await morgue.step()).moved == 0
    assert set((await rig.states()).values()) == {"dead", "ready"}


async def test_a_call_that_is_sent_again_is_answered_alike(rig: Rig, morgue: Morgue) -> None:
    await morgue.bury("a", "b")
    await begin(morgue)
    first = await morgue.step(most=1)
    await rig.remember()
    assert await morgue.step(most=1, again=True) == first
    assert await rig.is_untouched()
    await morgue.step(most=1)
    with pytest.raises(InternalError):
        await morgue.calls.redrive("q", "r", ("driver", "call00000001"), 5, ["x"])


async def test_jobs_that_die_again_are_not_redriven_twice(rig: Rig, morgue: Morgue) -> None:
    await morgue.bury("a")
    await begin(morgue)
    rig.clock.go(1)
    await morgue.bury("later")
    await morgue.step(most=1)
    await morgue.end("new0")
    step = await morgue.step()
    assert (step.state, step.moved, step.record["died"]) == ("done", 0, 1)
    assert await morgue.page(status="pending") == ["later", "new0"]


async def test_only_what_the_filter_asks_for_is_redriven(morgue: Morgue) -> None:
    await morgue.bury("a", tenant="x")
    await morgue.bury("b", tenant="y")
    await begin(morgue, filter={"tenant": "y"})
    assert (await morgue.step()).moved == 1
    assert await morgue.page(status="pending") == ["a"]


async def test_a_rate_grants_a_second_at_most_and_says_how_long_to_wait(
    rig: Rig, morgue: Morgue
) -> None:
    await morgue.bury(*(f"j{number:02d}" for number in range(20)))
    await begin(morgue, max=4, per_us=SECOND)
    step = await morgue.step()
    assert (step.moved, step.wait_us) == (4, SECOND)
    rig.clock.go(0.4)
    step = await morgue.step()
    assert (step.moved, step.wait_us) == (0, 600_000)
    rig.clock.go(0.6)
    assert (await morgue.step()).moved == 4
    rig.clock.go(10)  # what was not used is not saved up
    assert (await morgue.step()).moved == 4


async def test_a_slow_rate_grants_one_at_a_time(rig: Rig, morgue: Morgue) -> None:
    await morgue.bury("a", "b")
    await begin(morgue, max=30, per_us=60 * SECOND)
    step = await morgue.step()
    assert (step.moved, step.wait_us) == (1, 2 * SECOND)


async def test_a_full_queue_is_not_filled_further(rig: Rig, morgue: Morgue) -> None:
    await morgue.bury("a", "b", "c")
    await rig.declare(backpressure=Backpressure(soft=1, hard=2))
    await begin(morgue)
    assert (await morgue.step()).moved == 2
    step = await morgue.step()
    assert (step.state, step.moved, step.wait_us) == ("running", 0, SECOND)
    await settle(rig, 1)
    step = await morgue.step()
    assert (step.state, step.moved) == ("done", 1)


async def test_canaries_are_watched_until_all_have_completed(rig: Rig, morgue: Morgue) -> None:
    await morgue.bury("a", "b", "c")
    await begin(morgue, canary=2)
    step = await morgue.step(most=2)
    assert (step.state, step.moved, step.record["first"]) == ("canary", 2, ["new0", "new1"])
    step = await morgue.step(most=0)
    assert (step.state, step.waiting, step.wait_us) == ("canary", 2, SECOND)
    await settle(rig, 2)
    assert (await morgue.step(most=0)).waiting == 0
    await morgue.calls.redrives("q", "go", "r")
    step = await morgue.step()
    assert (step.state, step.moved) == ("done", 1)


async def test_a_canary_that_dies_ends_it_at_once(rig: Rig, morgue: Morgue) -> None:
    await morgue.bury("a", "b", "c")
    await begin(morgue, canary=2)
    await morgue.step(most=2)
    await morgue.end("new0")
    assert (await rig.dump())["redrives"]["r"]["state"] == "failed"
    step = await morgue.step()
    assert (step.state, step.moved, step.record["died"]) == ("failed", 0, 1)
    assert await morgue.page(status="pending") == ["c", "new0"]


async def test_a_canary_that_is_cancelled_is_no_good_sign(rig: Rig, morgue: Morgue) -> None:
    await morgue.bury("a")
    await begin(morgue, canary=1)
    await morgue.step(most=1)
    await rig.engine.cancel("q", ["new0"])
    assert (await morgue.step(most=0)).state == "failed"


async def test_failures_beyond_what_is_borne_end_it(rig: Rig, morgue: Morgue) -> None:
    await morgue.bury("a", "b", "c", "d")
    await begin(morgue, failures=1)
    await morgue.step(most=1)
    await morgue.end("new0")
    assert (await morgue.step(most=1)).state == "running"
    await morgue.end("new1")
    step = await morgue.step()
    assert (step.state, step.moved, step.record["died"]) == ("failed", 0, 2)


async def test_a_redrive_that_is_unknown_or_stopped_moves_nothing(rig: Rig, morgue: Morgue) -> None:
    await morgue.bury("a")
    assert await morgue.calls.redrive("q", "never", ("me", "1"), 5, ["x"]) is None
    await begin(morgue)
    await morgue.calls.redrives("q", "stop", "r")
    step = await morgue.step()
    assert (step.state, step.moved, step.wait_us) == ("stopped", 0, 0)
    await morgue.calls.redrives("q", "resume", "r")
    assert (await morgue.step()).moved == 1


async def test_a_queue_without_settings_redrives_nothing(rig: Rig) -> None:
    args = [T0, "me", "call", "", "r", 5, "x"]
    assert await rig.engine._send("redrive", "q", args) == [b"UNCONFIGURED"]
    assert await rig.dump() == {}
