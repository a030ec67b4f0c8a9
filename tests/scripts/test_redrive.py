"""redrive.lua"""

from __future__ import annotations

from typing import Any

import pytest

from faena.engine.calls.deadletter import RedriveFilter
from faena.errors import InternalError
from faena.options import Backpressure
from faena.outcomes import Completed
from tests._support.desk_rig import DeskRig, new_redrive
from tests._support.rig import SECOND, T0, Rig


async def begin(desk_rig: DeskRig, **facts: Any) -> None:
    await desk_rig.calls.redrives("q", "begin", "r", new_redrive(**facts))


async def settle(rig: Rig, number: int) -> None:
    """Complete the jobs that are ready."""
    call = rig.next_call()
    claimed = (await rig.turn(number, call=call)).claimed
    assert len(claimed) == number
    await rig.turn(0, *((one.id, call, Completed()) for one in claimed))


async def test_a_slice_retries_the_oldest_and_notes_how_far_it_is(
    rig: Rig, desk_rig: DeskRig
) -> None:
    await desk_rig.bury("a", "b")
    rig.clock.go(1)
    await desk_rig.bury("c")
    await begin(desk_rig)
    step = await desk_rig.step(most=2)
    assert (step.state, step.moved, step.wait_us, step.is_over) == ("running", 2, 0, False)
    taken = await rig.dump()
    assert taken["desk"]["a"]["to"] == "new0"
    assert taken["desk"]["b"]["r"] == ["redrive", "mended", "ana", T0 + SECOND]
    assert taken["marks"]["new0"] == {"p": 5, "o": "a", "b": "a", "d": "r"}
    assert taken["redrives"]["r"]["moved"] == 2
    step = await desk_rig.step(most=2)
    assert (step.state, step.moved, step.is_over) == ("done", 1, True)
    assert (await desk_rig.step()).moved == 0
    assert set((await rig.states()).values()) == {"dead", "ready"}


async def test_a_call_that_is_sent_again_is_answered_alike(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a", "b")
    await begin(desk_rig)
    first = await desk_rig.step(most=1)
    await rig.remember()
    assert await desk_rig.step(most=1, again=True) == first
    assert await rig.is_untouched()
    await desk_rig.step(most=1)
    with pytest.raises(InternalError):
        await desk_rig.calls.redrive("q", "r", ("driver", "call00000001"), 5, ["x"])


async def test_jobs_that_die_again_are_not_redriven_twice(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a")
    await begin(desk_rig)
    rig.clock.go(1)
    await desk_rig.bury("later")
    await desk_rig.step(most=1)
    await desk_rig.end("new0")
    step = await desk_rig.step()
    assert (step.state, step.moved, step.record.died) == ("done", 0, 1)
    assert await desk_rig.page(status="pending") == ["later", "new0"]


async def test_only_what_the_filter_asks_for_is_redriven(desk_rig: DeskRig) -> None:
    await desk_rig.bury("a", tenant="x")
    await desk_rig.bury("b", tenant="y")
    await begin(desk_rig, filter=RedriveFilter(tenant="y"))
    assert (await desk_rig.step()).moved == 1
    assert await desk_rig.page(status="pending") == ["a"]


async def test_a_rate_grants_a_second_at_most_and_says_how_long_to_wait(
    rig: Rig, desk_rig: DeskRig
) -> None:
    await desk_rig.bury(*(f"j{number:02d}" for number in range(20)))
    await begin(desk_rig, max=4, per_us=SECOND)
    step = await desk_rig.step()
    assert (step.moved, step.wait_us) == (4, SECOND)
    rig.clock.go(0.4)
    step = await desk_rig.step()
    assert (step.moved, step.wait_us) == (0, 600_000)
    rig.clock.go(0.6)
    assert (await desk_rig.step()).moved == 4
    rig.clock.go(10)  # what was not used is not saved up
    assert (await desk_rig.step()).moved == 4


async def test_a_slow_rate_grants_one_at_a_time(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a", "b")
    await begin(desk_rig, max=30, per_us=60 * SECOND)
    step = await desk_rig.step()
    assert (step.moved, step.wait_us) == (1, 2 * SECOND)


async def test_a_full_queue_is_not_filled_further(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a", "b", "c")
    await rig.declare(backpressure=Backpressure(soft=1, hard=2))
    await begin(desk_rig)
    assert (await desk_rig.step()).moved == 2
    step = await desk_rig.step()
    assert (step.state, step.moved, step.wait_us) == ("running", 0, SECOND)
    await settle(rig, 1)
    step = await desk_rig.step()
    assert (step.state, step.moved) == ("done", 1)


async def test_canaries_are_watched_until_all_have_completed(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a", "b", "c")
    await begin(desk_rig, canary=2)
    step = await desk_rig.step(most=2)
    assert (step.state, step.moved, step.record.first) == ("canary", 2, ["new0", "new1"])
    step = await desk_rig.step(most=0)
    assert (step.state, step.waiting, step.wait_us) == ("canary", 2, SECOND)
    await settle(rig, 2)
    assert (await desk_rig.step(most=0)).waiting == 0
    await desk_rig.calls.redrives("q", "go", "r")
    step = await desk_rig.step()
    assert (step.state, step.moved) == ("done", 1)


async def test_a_canary_that_dies_ends_it_at_once(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a", "b", "c")
    await begin(desk_rig, canary=2)
    await desk_rig.step(most=2)
    await desk_rig.end("new0")
    assert (await rig.dump())["redrives"]["r"]["state"] == "failed"
    step = await desk_rig.step()
    assert (step.state, step.moved, step.record.died) == ("failed", 0, 1)
    assert await desk_rig.page(status="pending") == ["c", "new0"]


async def test_a_canary_that_is_cancelled_is_no_good_sign(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a")
    await begin(desk_rig, canary=1)
    await desk_rig.step(most=1)
    await rig.engine.cancel("q", ["new0"])
    assert (await desk_rig.step(most=0)).state == "failed"


async def test_failures_beyond_what_is_borne_end_it(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a", "b", "c", "d")
    await begin(desk_rig, failures=1)
    await desk_rig.step(most=1)
    await desk_rig.end("new0")
    assert (await desk_rig.step(most=1)).state == "running"
    await desk_rig.end("new1")
    step = await desk_rig.step()
    assert (step.state, step.moved, step.record.died) == ("failed", 0, 2)


async def test_a_redrive_that_is_unknown_or_stopped_moves_nothing(
    rig: Rig, desk_rig: DeskRig
) -> None:
    await desk_rig.bury("a")
    assert await desk_rig.calls.redrive("q", "never", ("me", "1"), 5, ["x"]) is None
    await begin(desk_rig)
    await desk_rig.calls.redrives("q", "stop", "r")
    step = await desk_rig.step()
    assert (step.state, step.moved, step.wait_us) == ("stopped", 0, 0)
    await desk_rig.calls.redrives("q", "resume", "r")
    assert (await desk_rig.step()).moved == 1


async def test_a_queue_without_settings_redrives_nothing(rig: Rig) -> None:
    named = {"caller": "me", "id_of_call": "call", "id": "r", "priority": 5}
    assert await rig.engine.ask("redrive", "q", "x", **named) == [b"UNCONFIGURED"]
    assert await rig.dump() == {}
