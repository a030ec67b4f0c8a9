"""Alerts rise, last, fall, and are told once."""

from __future__ import annotations

from faena.engine.calls.alerts import AlertCalls, Reading
from faena.engine.calls.resilience import SHARD
from tests._support.alert_rig import INTERVAL_S, AlertRig, reading
from tests._support.rig import SECOND


async def test_an_alert_fires_escalates_eases_and_is_resolved(alerts: AlertRig) -> None:
    assert await alerts.told(49) == []
    assert await alerts.told(50) == ["ops warning: firing"]
    assert await alerts.told(99) == []
    assert await alerts.told(100) == ["ops critical: escalated", "pager critical: escalated"]
    assert await alerts.told(79) == ["ops critical: eased", "pager critical: eased"]
    assert await alerts.told(39) == ["ops warning: resolved", "pager warning: resolved"]
    assert await alerts.told(0) == []
    assert await alerts.events() == [
        "alert_firing depth mail | warning: 50 jobs",
        "alert_escalated depth mail | critical: 100 jobs",
        "alert_eased depth mail | critical: 79 jobs",
        "alert_resolved depth mail | warning: 39 jobs",
    ]
    view = await alerts.look()
    assert [one.change for one in view.history] == ["resolved", "eased", "escalated", "firing"]
    assert await alerts.engine.command("HLEN", SHARD, "alerts") == 0


async def test_between_the_bounds_it_stays_for_a_time(alerts: AlertRig) -> None:
    def at(value: float) -> Reading:
        return reading(value, clear_after_us=2 * INTERVAL_S * SECOND)

    assert await alerts.told(at(60)) == ["ops warning: firing"]
    assert await alerts.told(at(45)) == []
    assert await alerts.told(at(55)) == []
    assert await alerts.told(at(45)) == []
    assert await alerts.told(at(45)) == []
    assert await alerts.told(at(45)) == ["ops warning: resolved"]


async def test_it_fires_only_if_it_goes_on(alerts: AlertRig) -> None:
    def at(value: float) -> Reading:
        return reading(value, sustained_us=2 * INTERVAL_S * SECOND)

    assert await alerts.told(at(60)) == []
    (pending,) = (await alerts.look()).pending
    assert (pending.severity, pending.since) == ("warning", alerts.clock.now)
    assert await alerts.told(at(10)) == []
    assert (await alerts.look()).pending == ()
    assert await alerts.told(at(60)) == []
    assert await alerts.told(at(120)) == []
    assert await alerts.told(at(120)) == ["ops warning: firing"]
    assert await alerts.told(at(120)) == ["ops critical: escalated", "pager critical: escalated"]


async def test_what_changes_together_is_one_notice_for_a_channel_and_severity(
    alerts: AlertRig,
) -> None:
    told = await alerts.told(reading(60), reading(70, rule="wait"), reading(200, subject="print"))
    assert told == [
        "ops critical: firing",
        "ops warning: firing firing",
        "pager critical: firing",
    ]


async def test_a_call_that_is_sent_again_changes_nothing(alerts: AlertRig) -> None:
    turn = await alerts.begin()
    first = await alerts.calls.evaluate(turn, [reading(60)], {})
    alerts.clock.go(1)
    assert await alerts.calls.evaluate(turn, [reading(200)], {}) == first
    assert await alerts.level() == "warning"


async def test_an_evaluator_whose_turn_is_over_changes_nothing(alerts: AlertRig) -> None:
    late = await alerts.begin()
    alerts.clock.go(2 * INTERVAL_S)
    await alerts.judge(0)
    assert await alerts.calls.evaluate(late, [reading(200)], {}) is None
    assert await alerts.level() == ""


async def test_a_notice_stays_until_it_is_a_job(alerts: AlertRig) -> None:
    turn = await alerts.begin()
    notices = await alerts.calls.evaluate(turn, [reading(60)], {})
    assert notices
    assert (await alerts.look()).undelivered == 1
    turn = await alerts.begin()
    assert await alerts.calls.evaluate(turn, [reading(60)], {}) == notices
    await alerts.calls.sent(list(notices))
    assert await alerts.judge(60) == {}


async def test_a_notice_is_repeated_while_it_lasts(alerts: AlertRig) -> None:
    def at(value: float) -> Reading:
        return reading(value, repeat_us=2 * INTERVAL_S * SECOND)

    assert await alerts.told(at(60)) == ["ops warning: firing"]
    assert await alerts.told(at(60)) == []
    assert await alerts.told(at(60)) == ["ops warning: repeated"]
    assert await alerts.told(at(0)) == ["ops warning: resolved"]


async def test_what_its_own_program_no_longer_watches_is_resolved(alerts: AlertRig) -> None:
    await alerts.told(60)
    assert await alerts.told() == ["ops warning: resolved"]


async def test_what_others_watch_stays_until_they_are_gone_for_ten_minutes(
    alerts: AlertRig,
) -> None:
    other = alerts.of("others")
    turn = await alerts.begin(calls=other)
    await other.sent(list(await other.evaluate(turn, [reading(60)], {}) or ()))
    assert await alerts.told() == []
    assert await alerts.level() == "warning"
    alerts.clock.go(600)
    assert await alerts.told() == ["ops warning: resolved"]


async def test_repeats_go_on_after_the_clock_was_put_back(alerts: AlertRig) -> None:
    repeated = reading(60, repeat_us=60 * SECOND)
    assert await alerts.told(repeated) == ["ops warning: firing"]
    alerts.clock.go(-3_600)
    assert await alerts.told(repeated) == []
    alerts.clock.go(60)
    assert await alerts.told(repeated) == ["ops warning: repeated"]


async def test_who_was_told_that_it_is_critical_is_told_that_it_is_over(alerts: AlertRig) -> None:
    """Also if it has eased since, and a warning was repeated to others."""
    assert await alerts.told(100) == ["ops critical: firing", "pager critical: firing"]
    assert await alerts.told(79) == ["ops critical: eased", "pager critical: eased"]
    alerts.clock.go(60)
    assert await alerts.told(reading(79, repeat_us=60 * SECOND)) == ["ops warning: repeated"]
    assert await alerts.told(0) == ["ops warning: resolved", "pager warning: resolved"]


async def test_an_alert_lasts_since_it_fired_also_when_it_escalates(alerts: AlertRig) -> None:
    await alerts.judge(60)
    began = alerts.clock.now
    (notice, _) = (await alerts.judge(100)).values()
    assert [change.since for change in notice.changes] == [began]
    assert [one.since for one in (await alerts.look()).firing] == [began]
    assert {one.since for one in (await alerts.look()).history} == {began}


async def judge_by(alerts: AlertRig, others: AlertCalls, *values: float) -> list[str]:
    """What programs with other rules tell of such values."""
    turn = await alerts.begin(calls=others)
    told = await others.evaluate(turn, [reading(value) for value in values], {}) or {}
    if told:
        await others.sent(list(told))
    return [change.kind for notice in told.values() for change in notice.changes]


async def test_two_programs_that_see_other_values_do_not_tell_each_others_alerts_in_turn(
    alerts: AlertRig,
) -> None:
    """As two modules of an app with other queues, or a deployment that changes a bound."""
    others = alerts.of("others")
    assert await alerts.told(60) == ["ops warning: firing"]
    for _ in range(3):
        assert await judge_by(alerts, others, 0) == []
        assert await alerts.told(60) == []
    assert await judge_by(alerts, others, 120) == ["escalated", "escalated"]
    assert await alerts.told(0) == []
    assert await judge_by(alerts, others, 0) == ["resolved", "resolved"]
    assert await alerts.level() == ""


async def test_what_programs_that_are_gone_have_raised_others_lower(alerts: AlertRig) -> None:
    """As after a deployment with other rules."""
    others = alerts.of("others")
    assert await judge_by(alerts, others, 60) == ["firing"]
    alerts.clock.go(30)
    assert await alerts.told(0) == []
    alerts.clock.go(90)
    assert await alerts.told(0) == ["ops warning: resolved"]


async def test_of_each_minute_the_first_totals_are_kept(alerts: AlertRig) -> None:
    alerts.clock.go(60 - alerts.clock.now // SECOND % 60 - INTERVAL_S)
    await alerts.judge(totals={"mail": {"dead": 1}})
    await alerts.judge(totals={"mail": {"dead": 5}})
    alerts.clock.go(4 * 60 + 50)
    turn = await alerts.begin("mail")
    assert turn.lately == {"mail": {"dead": 1}}


async def test_without_room_for_notices_it_is_told_later(alerts: AlertRig) -> None:
    flat = [word for number in range(1000) for word in (f"old{number}", b"\x94\xa0\xa0\x00\x90")]
    await alerts.engine.command("HSET", SHARD, "alert_notices", *flat)
    turn = await alerts.begin()
    assert len(await alerts.calls.evaluate(turn, [reading(60)], {}) or ()) == 1000
    assert await alerts.level() == "warning"
    await alerts.engine.command("DEL", SHARD, "alert_notices")
    assert await alerts.told(60) == ["ops warning: firing"]


async def test_a_state_that_cannot_be_read_begins_anew(alerts: AlertRig) -> None:
    await alerts.engine.command("HSET", SHARD, "alerts", "depth mail", b"\xc1broken")
    assert await alerts.told(60) == ["ops warning: firing"]
