"""One turn to judge in an interval, however many ask."""

from __future__ import annotations

import asyncio

from faena.engine.calls.alerts import Turn
from tests._support.alert_rig import INTERVAL_S, AlertRig, reading
from tests._support.rig import SECOND

MINUTE_S = 60


async def test_one_of_many_gets_the_turn_and_the_others_learn_how_long_to_wait(
    alerts: AlertRig,
) -> None:
    asked = [alerts.calls.begin(f"t{number}", ["mail"]) for number in range(5)]
    answers = await asyncio.gather(*asked)
    assert sum(isinstance(one, Turn) for one in answers) == 1
    assert {one for one in answers if isinstance(one, int)} == {2 * INTERVAL_S * SECOND}


async def test_a_turn_that_is_asked_for_again_is_the_same(alerts: AlertRig) -> None:
    first = await alerts.calls.begin("mine", [])
    assert await alerts.calls.begin("mine", []) == first


async def test_a_turn_whose_holder_died_is_over_after_two_intervals(alerts: AlertRig) -> None:
    assert isinstance(await alerts.calls.begin("dead", []), Turn)
    alerts.clock.go(2 * INTERVAL_S - 1)
    assert await alerts.calls.begin("next", []) == SECOND
    alerts.clock.go(1)
    assert isinstance(await alerts.calls.begin("next", []), Turn)


async def test_after_an_evaluation_the_next_turn_is_an_interval_later(alerts: AlertRig) -> None:
    await alerts.judge(0)
    assert await alerts.calls.begin("next", []) == INTERVAL_S * SECOND
    alerts.clock.go(INTERVAL_S)
    assert isinstance(await alerts.calls.begin("next", []), Turn)


async def test_a_clock_that_was_put_back_does_not_stop_turns(alerts: AlertRig) -> None:
    await alerts.judge(0)
    alerts.clock.go(-3600)
    assert isinstance(await alerts.calls.begin("next", []), Turn)


async def test_programs_with_other_rules_have_turns_of_their_own(alerts: AlertRig) -> None:
    assert isinstance(await alerts.calls.begin("a", []), Turn)
    assert isinstance(await alerts.of("others").begin("b", []), Turn)


async def test_it_tells_the_totals_of_before_and_what_is_under_way(alerts: AlertRig) -> None:
    await alerts.judge(60, totals={"mail": {"dead": 1}})
    alerts.clock.go(3 * MINUTE_S)
    await alerts.judge(60, totals={"mail": {"dead": 4}, "print": {"dead": 7}})
    alerts.clock.go(3 * MINUTE_S)
    turn = await alerts.begin("mail", "print", "new")
    assert turn.under_way == {reading().about}
    assert turn.lately == {"mail": {"dead": 4}, "print": {"dead": 7}}
    assert turn.hour_ago == {"mail": {"dead": 1}, "print": {"dead": 7}}


async def test_the_totals_of_this_minute_are_none_of_before(alerts: AlertRig) -> None:
    await alerts.judge(totals={"mail": {"dead": 1}})
    turn = await alerts.of("others").begin("b", ["mail"])
    assert isinstance(turn, Turn)
    assert turn.lately == {}
