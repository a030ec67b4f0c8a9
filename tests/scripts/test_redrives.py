"""redrives.lua"""

from __future__ import annotations

import pytest

from tests._support.desk_rig import DeskRig, new_redrive
from tests._support.rig import T0, Rig


@pytest.fixture
async def desk_rig(rig: Rig) -> DeskRig:
    await rig.declare()
    return DeskRig(rig)


async def test_a_redrive_begins_once(rig: Rig, desk_rig: DeskRig) -> None:
    begun = await desk_rig.calls.redrives("q", "begin", "r", new_redrive(canary=3))
    assert begun["r"].state == "canary"
    assert (begun["r"].at, begun["r"].until_at, begun["r"].moved) == (T0, T0, 0)
    await rig.remember()
    rig.clock.go(1)
    again = await desk_rig.calls.redrives("q", "begin", "r", new_redrive(canary=9))
    assert again == begun
    assert await rig.is_untouched()
    assert await desk_rig.calls.redrives("q", "list") == begun
    assert await desk_rig.calls.redrives("q", "look", "other") == {}


async def test_what_is_under_way_can_be_stopped_and_goes_on_when_told(desk_rig: DeskRig) -> None:
    ask = desk_rig.calls.redrives
    await ask("q", "begin", "r", new_redrive(canary=1))
    assert (await ask("q", "resume", "r"))["r"].state == "canary"
    assert (await ask("q", "go", "r"))["r"].state == "running"
    stopped = (await ask("q", "stop", "r"))["r"]
    assert (stopped.state, stopped.ended_at) == ("stopped", T0)
    assert (await ask("q", "fail", "r"))["r"].state == "stopped"
    assert (await ask("q", "go", "r"))["r"].state == "stopped"
    assert (await ask("q", "resume", "r"))["r"].state == "running"
    assert (await ask("q", "fail", "r"))["r"].state == "failed"


async def test_a_redrive_that_ended_before_its_canaries_were_well_needs_others(
    rig: Rig, desk_rig: DeskRig
) -> None:
    await desk_rig.bury("a", "b", "c", "d")
    ask = desk_rig.calls.redrives
    await ask("q", "begin", "r", new_redrive(canary=2))
    await desk_rig.step(most=2)
    await desk_rig.end("new0")
    resumed = (await ask("q", "resume", "r"))["r"]
    assert (resumed.state, resumed.first, resumed.died) == ("canary", [], 0)
    assert (await desk_rig.step(most=1)).record.first == ["new2"]
    await ask("q", "stop", "r")
    resumed = (await ask("q", "resume", "r"))["r"]
    assert (resumed.state, resumed.first) == ("canary", [])
    await ask("q", "go", "r")
    await ask("q", "fail", "r")
    assert (await ask("q", "resume", "r"))["r"].state == "running"


async def test_one_without_canaries_goes_on(desk_rig: DeskRig) -> None:
    ask = desk_rig.calls.redrives
    await ask("q", "begin", "r", new_redrive())
    await ask("q", "stop", "r")
    assert (await ask("q", "resume", "r"))["r"].state == "running"


async def test_the_oldest_that_ended_are_forgotten(rig: Rig, desk_rig: DeskRig) -> None:
    ask = desk_rig.calls.redrives
    for number in range(102):
        rig.clock.go(1)
        await ask("q", "begin", f"r{number}", new_redrive())
        if number % 50:
            await ask("q", "stop", f"r{number}")
    kept = set(await ask("q", "list"))
    assert {f"r{number}" for number in range(102)} - kept == {"r1", "r2"}
