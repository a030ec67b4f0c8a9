"""Silences: states go on, and nobody is told until they are over."""

from __future__ import annotations

import pytest

from faena.engine.calls.resilience import SHARD
from faena.errors import StoreRejected
from tests._support.alert_rig import AlertRig, reading
from tests._support.rig import SECOND

MINUTE = 60 * SECOND


async def silence(alerts: AlertRig, name: str = "s1", us: int = MINUTE, **what: str) -> None:
    said = {"rule": "", "subject": "", "reason": "import", "by": "ana", **what}
    await alerts.calls.silence(name, us, **said)


@pytest.mark.parametrize("what", [{}, {"rule": "depth"}, {"subject": "mail"}])
async def test_what_still_fires_is_told_when_the_silence_is_over(
    alerts: AlertRig, what: dict[str, str]
) -> None:
    await silence(alerts, **what)
    assert await alerts.told(60) == []
    (firing,) = (await alerts.look()).silenced
    assert firing.rule == "depth"
    assert (await alerts.look()).history[0].is_silenced
    alerts.clock.go(60)
    assert await alerts.told(60) == ["ops warning: firing"]
    assert (await alerts.look()).silences == ()
    assert await alerts.engine.command("HLEN", SHARD, "alert_silences") == 0


async def test_what_came_and_went_in_silence_is_never_told(alerts: AlertRig) -> None:
    await silence(alerts)
    assert await alerts.told(60) == []
    assert await alerts.told(0) == []
    alerts.clock.go(60)
    assert await alerts.told(0) == []


async def test_what_was_told_and_is_resolved_in_silence_is_told_afterwards(
    alerts: AlertRig,
) -> None:
    assert await alerts.told(60) == ["ops warning: firing"]
    await silence(alerts)
    assert await alerts.told(0) == []
    alerts.clock.go(60)
    assert await alerts.told(0) == ["ops warning: resolved"]


async def test_other_alerts_are_told(alerts: AlertRig) -> None:
    await silence(alerts, rule="wait")
    await silence(alerts, "s2", rule="depth", subject="print")
    told = await alerts.told(reading(60), reading(60, rule="wait"), reading(60, subject="print"))
    assert told == ["ops warning: firing"]


async def test_it_is_ended_by_hand_once(alerts: AlertRig) -> None:
    await silence(alerts, rule="depth", subject="mail")
    (one,) = (await alerts.look()).silences
    assert (one.id, one.rule, one.subject, one.by, one.reason) == (
        *("s1", "depth", "mail", "ana", "import"),
    )
    assert one.until - one.since == MINUTE
    assert await alerts.calls.unsilence("s1", by="luis")
    assert not await alerts.calls.unsilence("s1", by="luis")
    assert await alerts.told(60) == ["ops warning: firing"]
    assert (await alerts.events())[:2] == [
        "alert_silenced depth mail | import",
        "alert_unsilenced depth mail | import",
    ]


async def test_there_are_at_most_a_thousand(alerts: AlertRig) -> None:
    flat = [word for number in range(1000) for word in (f"x{number}", b"\x80")]
    await alerts.engine.command("HSET", SHARD, "alert_silences", *flat)
    with pytest.raises(StoreRejected, match="at most 1000 silences"):
        await silence(alerts)
