"""A start that is no estimate comes true, in queues that a dice has used."""

from __future__ import annotations

import random

import pytest

from faena.inspection.explanation import Explanation
from faena.inspection.start import ExpectedStart
from faena.outcomes import Completed
from tests._support.explained import explain
from tests._support.rig import SECOND, Rig
from tests._support.search import IS_FULL, SEED
from tests.inspection.test_explained_search import Game

_GAMES = 300 if IS_FULL else 15
_STEPS = 14
_ROUNDS = 400
_EXACT = ("next", "clock", "limits")
_SLACK_US = 2_000
"""The worker of the game looks at whole instants."""


async def explained(rig: Rig, game: Game) -> list[tuple[Explanation, ExpectedStart]]:
    told = [await explain(rig, f"job{number}") for number in range(1, game.number + 1)]
    return [(one, one.expected_start) for one in told if one.expected_start is not None]


async def started(rig: Rig) -> dict[str, int]:
    """When each job starts while a worker claims all it can, at the first instant it can be."""
    found: dict[str, int] = {}
    for _ in range(_ROUNDS):
        exchanged = await rig.turn(100)
        now = rig.clock.now
        for one in exchanged.claimed:
            found.setdefault(one.id, now)
        ends = ((one.id, one.lease, Completed()) for one in exchanged.claimed)
        exchanged = await rig.turn(0, *ends) if exchanged.claimed else exchanged
        if not exchanged.next_at and not exchanged.more:
            return found
        rig.clock.now = max(now + (0 if exchanged.more else 1), exchanged.next_at)
    raise AssertionError("a queue must come to rest")


def is_true(told: Explanation, start: ExpectedStart, at: int | None) -> bool:
    if start.basis == "never":
        return at is None
    if start.basis not in _EXACT or start.is_estimate:
        return True
    if at is None:
        return told.expires_at is not None
    return abs(at - (start.at or 0)) <= _SLACK_US


@pytest.mark.parametrize("number", range(_GAMES))
async def test_a_start_that_is_no_estimate_comes_true(rig: Rig, number: int) -> None:
    game = Game(rig, random.Random(f"{SEED} start {number}"))
    await game.begin()
    for _ in range(_STEPS):
        await game.step()
    told = await explained(rig, game)
    real = await started(rig)
    wrong = [
        (str(one), start, real.get(one.id))
        for one, start in told
        if not is_true(one, start, real.get(one.id))
    ]
    assert not wrong


async def test_a_delayed_job_says_who_may_come_first_when_it_is_due(rig: Rig) -> None:
    """Those that are ready now, if they still are, and those that are due before."""
    await rig.turn(is_sweep=True)
    await rig.add("late", delay=9 * SECOND)
    start = (await explain(rig, "late")).expected_start
    assert start is not None
    assert (start.basis, start.is_estimate) == ("clock", False)
    await rig.add("a", "b")
    await rig.add("sooner", delay=SECOND)
    start = (await explain(rig, "late")).expected_start
    assert start is not None
    assert (start.basis, start.is_estimate) == ("clock", True)
    assert start.words.endswith("or later: 3 other jobs may come first")
