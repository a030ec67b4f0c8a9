"""The headers of the scripts tell every way of a job from state to state, and no other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from faena.engine.calls.scheduling import Change
from faena.engine.settings import declaration
from faena.options import QueueOptions, Retain
from faena.outcomes import Buried, Cancelled, Completed, Outcome, Retried, Snoozed
from faena.states import FINISHED, LIVE, State
from tests._support import transitions
from tests._support.desk_rig import DeskRig, new_redrive
from tests._support.rig import BOOM, SECOND, T0, Rig
from tests._support.schedules import NEW, OLD, firing, plant, shoot
from tests._support.transfer import Transfer
from tests._support.transitions import NONE, StateWatch, every_transition, transitions_in

CHAIN: dict[str, Any] = {"lane": "@a", "chain": "t/a"}
Story = Callable[[Rig], Awaitable[Any]]


async def everywhere(rig: Rig, **facts: Any) -> None:
    """A job in every state that an operator may find it in."""
    await rig.declare()
    for job, outcome in (("done", Completed()), ("dead", Buried(BOOM)), ("off", Cancelled(BOOM))):
        await rig.run(job, outcome, **facts)
    await rig.add("later", delay=SECOND, **facts)
    await rig.add("first", "second", "third", **CHAIN)
    await rig.add("soon", **facts)


async def end(rig: Rig, outcome: Outcome, **facts: Any) -> None:
    await rig.declare()
    await rig.add("job", "next", **facts)
    lease = await rig.claim()
    await rig.turn(0, ("job", lease, outcome))


async def lose(rig: Rig, times: int) -> None:
    await rig.declare(max_deliveries=2)
    await rig.add("job")
    for _ in range(times):
        await rig.turn(1)
        rig.clock.go(31)
    await rig.turn(0)


async def enqueue(rig: Rig) -> None:
    await rig.declare()
    await rig.add("later", delay=SECOND)
    await rig.add("first", "second", **CHAIN)


async def replace(rig: Rig) -> None:
    """A job that waits for its instant, one whose turn has come, and one whose turn has not."""
    await rig.declare()
    debounced: dict[str, Any] = {"mode": "debounce", "ttl": 60 * SECOND, "delay": 9 * SECOND}
    await rig.add("late", unique="u", **debounced)
    await rig.add("late2", unique="u", **debounced)
    for job in ("head", "tail"):
        await rig.add(job, unique=job, **debounced, **CHAIN)
        await rig.engine.promote("q", [job])
    await rig.add("last", **CHAIN)
    for job in ("tail", "head"):
        await rig.add(f"{job}2", unique=job, **debounced, **CHAIN)


async def arrive(rig: Rig) -> None:
    await rig.declare()
    for number, line in enumerate(["010", "010 lane=@a chain=t/a", "010 lane=@a chain=t/a"]):
        fields = f"j{number}", f"{line}\n{{}}", "0123456789ab0", f"0123456789ab{number + 1}"
        await rig.engine.command("XADD", "q", "arrivals", "*", *fields)
    await rig.engine.take_in("q")


async def fire(rig: Rig) -> None:
    await rig.declare()
    await plant(rig)
    await rig.add("first", **CHAIN)
    version = OLD
    queued = {"unique": "u", "mode": "last"}
    facts: list[dict[str, Any]] = [{}, {"delay": SECOND}, CHAIN, queued, queued, queued]
    for number, fact in enumerate(facts):
        if number == 4:
            await rig.turn(50)
        new = f"{int(NEW) + number:016d}"
        change = Change(version, new, b"[]", T0 + SECOND)
        await shoot(rig, firing(job=f"s@{number}", **fact), change)
        version = new


async def exchange(rig: Rig) -> None:
    declared = declaration(QueueOptions()) | {"hook_dead:send": "send.dead"}
    rig.engine.know(rig.queue, declared)
    await rig.add("job", body=b'{"task":"send","payload":1}')
    lease = await rig.claim()
    await rig.turn(0, ("job", lease, Buried(BOOM)))


async def let_wait(rig: Rig) -> None:
    """What may come after a delay or a turn."""
    await rig.declare()
    await rig.add("later", delay=SECOND)
    await rig.add("after", delay=SECOND, **CHAIN)
    await rig.add("first", "second", **CHAIN)
    await rig.turn(0)
    rig.clock.go(2)
    await rig.turn(0)
    lease = await rig.claim(2)
    await rig.turn(0, ("first", lease, Completed()))


async def let_follow(rig: Rig) -> None:
    await rig.declare()
    await rig.add("job", unique="u", mode="last")
    lease = await rig.claim()
    await rig.add("next", unique="u", mode="last", delay=90 * SECOND)
    await rig.turn(0, ("job", lease, Completed()))


async def let_expire(rig: Rig) -> None:
    await rig.declare()
    await rig.add("first", **CHAIN, lasts=SECOND)
    await rig.add("second", **CHAIN, lasts=SECOND)
    await rig.add("third", **CHAIN)
    rig.clock.go(2)
    await rig.turn(5)


async def let_prune(rig: Rig) -> None:
    await everywhere(rig)
    rig.clock.go(90 * 24 * 3600)
    await rig.turn(0, is_sweep=True)


async def cancel(rig: Rig) -> None:
    await everywhere(rig)
    await rig.engine.cancel("q", ["soon", "later", "second", "first"])
    await rig.declare(retain=Retain(cancelled_count=0))
    await rig.add("none")
    await rig.engine.cancel("q", ["none"])


async def change(rig: Rig) -> None:
    await everywhere(rig)
    await rig.engine.change("q", "later", delay_us=0)
    await rig.engine.change("q", "first", delay_us=SECOND)
    await rig.engine.change("q", "first", delay_us=0)
    await rig.add("behind", delay=SECOND, **CHAIN)
    await rig.engine.change("q", "behind", delay_us=0)


async def clean(rig: Rig) -> None:
    await everywhere(rig)
    rig.clock.go(0.5)
    for state in ("ready", "delayed", "blocked", "completed", "dead", "cancelled"):
        await rig.engine.clean("q", state, 0, 1 if state == "ready" else 100)
    await rig.add("first", "second", **CHAIN)
    await rig.engine.clean("q", "ready", 0, 100)


async def remove(rig: Rig) -> None:
    await everywhere(rig)
    for job in ("second", "first", "soon", "later", "done", "dead", "off"):
        await rig.engine.remove("q", [job])


async def obliterate(rig: Rig) -> None:
    await everywhere(rig)
    await rig.turn(1)
    while await rig.engine.obliterate("q", 1, force=True) != "DONE":
        pass


async def promote(rig: Rig) -> None:
    await everywhere(rig)
    await rig.add("behind", delay=SECOND, **CHAIN)
    await rig.engine.promote("q", ["later", "behind"])


async def rerun(rig: Rig) -> None:
    for number, facts in enumerate(({}, CHAIN)):
        for name, outcome in (("ok", Completed()), ("no", Buried(BOOM)), ("off", Cancelled(BOOM))):
            await rig.run(f"{name}{number}", outcome, **facts)
    await rig.add("first", **CHAIN)
    await rig.engine.rerun("q", [f"{name}{n}" for n in (0, 1) for name in ("ok", "no", "off")])


async def retry_as_new(rig: Rig) -> None:
    desk_rig = DeskRig(rig)
    await desk_rig.bury("a")
    await desk_rig.bury("b", facts=CHAIN)
    await rig.add("first", **CHAIN)
    await desk_rig.retry_as_new("a", "b")


async def redrive(rig: Rig) -> None:
    desk_rig = DeskRig(rig)
    await desk_rig.bury("a")
    await desk_rig.bury("b", facts=CHAIN)
    await rig.add("first", **CHAIN)
    await desk_rig.calls.redrives("q", "begin", "r", new_redrive())
    await desk_rig.step("r")


async def move(rig: Rig) -> None:
    transfer = Transfer(rig)
    try:
        await everywhere(rig, lane="@a")
        await transfer.hand_over("@a")
        await transfer.carry("done", "dead", "off", "later", "soon")
        await transfer.carry("third")
        await transfer.carry("first")
        await transfer.carry("second")
    finally:
        await transfer.target.obliterate()


STORIES: dict[str, Story] = {
    "enqueue": enqueue,
    "replace": replace,
    "arrive": arrive,
    "fire": fire,
    "complete": lambda rig: end(rig, Completed()),
    "retry": lambda rig: end(rig, Retried(SECOND, BOOM)),
    "retry at once": lambda rig: end(rig, Retried(0, BOOM)),
    "snooze": lambda rig: end(rig, Snoozed(SECOND)),
    "cancel running": lambda rig: end(rig, Cancelled(BOOM)),
    "rescue": lambda rig: lose(rig, 1),
    "lose too often": lambda rig: lose(rig, 2),
    "hook": exchange,
    "let wait": let_wait,
    "let follow": let_follow,
    "let expire": let_expire,
    "prune": let_prune,
    "cancel": cancel,
    "change": change,
    "clean": clean,
    "remove": remove,
    "obliterate": obliterate,
    "promote": promote,
    "rerun": rerun,
    "retry as new": retry_as_new,
    "redrive": redrive,
    "move": move,
}


async def test_scripts_take_jobs_by_every_way_of_their_headers_and_by_no_other(rig: Rig) -> None:
    watch = StateWatch(rig.engine.wire)
    declared = {(one.script, one.source, one.target) for one in every_transition()}
    for story in STORIES.values():
        await rig.declare()
        await story(rig)
        await rig.obliterate()
    assert sorted(declared - watch.seen) == []


def test_a_state_is_live_or_finished_and_can_be_reached_and_left() -> None:
    assert set(State) == LIVE | FINISHED
    assert not LIVE & FINISHED
    arrows_there = {(one.source, one.target) for one in every_transition()}
    assert {target for _, target in arrows_there} >= set(State)
    assert {source for source, _ in arrows_there} >= set(State)


def test_a_job_is_running_only_by_a_claim() -> None:
    entering = {one.verb for one in every_transition() if one.target == State.RUNNING}
    assert entering == {"claim"}
    assert {one.source for one in every_transition() if one.verb == "claim"} == {State.READY}


def test_a_finished_job_comes_back_only_when_it_is_run_again() -> None:
    back = {one.verb for one in every_transition() if one.source in FINISHED and one.target in LIVE}
    assert back == {"rerun"}


def test_the_page_shows_what_the_headers_say() -> None:
    assert transitions.PAGE.read_text() == transitions.page(), "run ./dev reference"
    assert NONE not in {state.value for state in State}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("-- keys     ready\n", "x.lua: its header has no line `-- states`"),
        ("-- states   ready -> gone\n", "x.lua: `ready -> gone` must be `verb  from -> to : when`"),
        ("-- states   go  ready -> away : so\n", "x.lua: 'away' is no state of a job"),
    ],
)
def test_a_header_that_cannot_be_read_is_named(header: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"x\.lua") as caught:
        list(transitions_in("x", header))
    assert str(caught.value) == message
