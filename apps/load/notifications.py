"""Notifications and messages at a steady rate, from the request to the stand-in that gets them.

Pushes are handed over by their name, as the web application does; messages go over HTTP; customers
write and are answered. Each begins at its time, whether those before it are over or not. Then the
same beside an organisation that sends hundreds at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from apps.load import arrived, goals
from apps.load.figure import Findings, Line, Panel, at_percent, percentiles
from apps.load.scene import Scene, beside
from apps.load.senders import BURST, Senders, Sent

_MINUTES: Final = 3.0
"""Of both parts together, before they are scaled."""


async def play(scene: Scene) -> Findings:
    """The whole scenario."""
    findings, senders = Findings("notifications"), Senders(scene)
    seconds = scene.sizes.seconds(_MINUTES) / 2
    await senders.register()
    scene.screen.begin("notifications", 2 * seconds)
    async with beside(_show(scene, senders.sent)):
        since = await scene.now()
        await senders.play(seconds)
        alone = len(senders.sent.pushes)
        scene.screen.say(f"one organisation sends {BURST} at once")
        await asyncio.gather(senders.burst(), senders.play(seconds))
        until = await scene.now()
    (await scene.settle()).judge(findings)
    _measure(scene, findings, senders.sent, alone)
    minutes = (until - since).total_seconds() / 60
    ended = await scene.ended(since, until)
    waits = [one.wait_s for one in ended if one.task == "email" and one.wait_s is not None]
    note = f"mails: {percentiles([1000 * one for one in waits])}"
    findings.measure(goals.BACKGROUND_START, at_percent(waits, 95), note)
    findings.facts["jobs"] = f"{len(ended):,} ended, {len(ended) / minutes:,.0f} a minute"
    findings.facts["handed over"] = percentiles(senders.sent.handed_ms)
    findings.facts["turned away"] = f"{senders.sent.turned_away:,} requests were made again"
    return findings


async def _show(scene: Scene, sent: Sent) -> None:
    while True:
        scene.stage.crew.check()
        scene.screen.show(
            {
                "pushes": f"{len(sent.pushes):,}",
                "messages": f"{len(sent.messages):,}",
                "delivered": f"{len(scene.stage.sandbox.push.messages):,}",
            }
        )
        await asyncio.sleep(0.5)


def _measure(scene: Scene, findings: Findings, sent: Sent, alone: int) -> None:
    sandbox = scene.stage.sandbox
    pushed, names = arrived.pushes(sandbox), list(sent.pushes)
    for goal, part in ((goals.PUSH_TIME, names[:alone]), (goals.PUSH_BESIDE, names[alone:])):
        took = arrived.took_ms({name: sent.pushes[name] for name in part}, pushed)
        findings.measure(goal, at_percent(took, 95) / 1000, percentiles(took))
    messages = arrived.messages(sandbox)
    took = arrived.took_ms(sent.messages, messages)
    findings.measure(goals.MESSAGE_TIME, at_percent(took, 95) / 1000, percentiles(took))
    took = arrived.took_ms(sent.inbound, arrived.answers(sandbox))
    note = f"written until answered: {percentiles(took)}"
    findings.measure(goals.INBOUND_TIME, at_percent(took, 95) / 1000, note)
    rate = arrived.per_minute([messages[one] for one in sent.messages if one in messages])
    findings.measure(goals.CAMPAIGN_RATE, rate, "of all organisations; one may send 50 (000 §12)")
    _count(findings, sent, *arrived.counts(sandbox))
    line = Line("push", arrived.curve_ms(sent.pushes, pushed))
    findings.panels.append(Panel("push, request to delivery (ms)", [line]))


def _count(
    findings: Findings,
    sent: Sent,
    pushes: Mapping[str, int],
    messages: Mapping[str, int],
    mails: Mapping[str, int],
) -> None:
    for what, wanted, counts in (
        ("pushes", sent.pushes.keys() | sent.burst, pushes),
        ("messages", sent.messages.keys(), messages),
        ("mails", sent.mails, mails),
    ):
        lost = sum(counts.get(one, 0) == 0 for one in wanted)
        doubled = sum(counts.get(one, 0) > 1 for one in wanted)
        findings.none(f"{what} lost", lost, f"of {len(wanted):,}")
        findings.none(f"{what} doubled", doubled, "at the stand-in")
