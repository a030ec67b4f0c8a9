"""The table of transitions: complete, sound, and the same as the page that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from faena.states import FINISHED, LIVE, TRANSITIONS, State, diagram, sources, table

PAGE = Path(__file__).parents[2] / "docs" / "design" / "states.md"

NAMES = (
    "enqueue claim renew complete retry snooze bury cancel expire promote rescue prune redrive "
    "remove"
)


def test_the_table_uses_exactly_the_words_of_the_engine() -> None:
    assert {one.name for one in TRANSITIONS} == set(NAMES.split())


def test_no_arrow_is_listed_twice() -> None:
    arrows = [(one.name, one.source, one.target) for one in TRANSITIONS]
    assert len(arrows) == len(set(arrows))


def test_a_state_is_live_or_finished() -> None:
    assert set(State) == LIVE | FINISHED
    assert not LIVE & FINISHED


@pytest.mark.parametrize("state", State)
def test_every_state_can_be_reached_and_left_until_the_job_is_gone(state: State) -> None:
    after: set[State | None] = {None}
    for _ in State:
        after |= {one.target for one in TRANSITIONS if one.source in after}
    assert state in after
    ends: set[State | None] = {state}
    for _ in State:
        ends |= {one.target for one in TRANSITIONS if one.source in ends}
    assert None in ends


def test_only_enqueue_makes_a_job_and_only_prune_and_remove_end_one() -> None:
    assert {one.name for one in TRANSITIONS if one.source is None} == {"enqueue"}
    assert {one.name for one in TRANSITIONS if one.target is None} == {"prune", "remove"}


def test_a_finished_job_comes_back_only_by_redrive() -> None:
    revived = {one.name for one in TRANSITIONS if one.source in FINISHED and one.target in LIVE}
    assert revived == {"redrive"}


def test_a_job_becomes_running_only_by_a_claim() -> None:
    entering = [one for one in TRANSITIONS if one.target is State.RUNNING]
    assert {one.name for one in entering} == {"claim", "renew"}
    assert sources("claim") == {State.READY}


def test_every_live_job_can_be_cancelled_and_every_finished_one_pruned() -> None:
    assert sources("cancel") == LIVE
    assert sources("prune") == FINISHED


def test_every_job_that_does_not_run_can_be_removed() -> None:
    assert sources("remove") == set(State) - {State.RUNNING}


def test_the_page_shows_the_table_as_it_is() -> None:
    page = PAGE.read_text()
    assert f"```mermaid\n{diagram()}\n```" in page
    assert table() in page
