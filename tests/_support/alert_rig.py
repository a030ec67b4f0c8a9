"""Alerts on a real server with a clock that only tests move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from faena.engine.calls.alerts import AlertCalls, Notice, Reading, Turn
from faena.engine.calls.resilience import SHARD
from faena.engine.scripts import texts
from faena.telemetry.alerts.view import AlertsView, alerts_view
from tests._support.rig import SECOND, Rig

INTERVAL_S: Final = 10
KEYS: Final = ("alerts", "alert_notices", "alert_silences", "alert_history", "events")


def reading(value: float = 0, **more: Any) -> Reading:
    """A depth of `mail`: a warning from 50, critical from 100; it eases below 40 and 80."""
    usual = {"rule": "depth", "subject": "mail", "text": f"{value:g} jobs"}
    bounds = {"warning": 50, "critical": 100, "ease_warning": 40, "ease_critical": 80}
    told = {"channels": ["ops"], "critical_channels": ["ops", "pager"]}
    return Reading(value=value, **{**usual, **bounds, **told, **more})


class AlertRig:
    """Judges in the shortest words that a test needs."""

    def __init__(self, rig: Rig) -> None:
        self.clock, self.engine = rig.clock, rig.engine
        self.calls = self.of("rules")
        self._turns = 0

    def of(self, rule_set: str) -> AlertCalls:
        return AlertCalls(self.engine, rule_set, interval_us=INTERVAL_S * SECOND)

    async def begin(self, *queues: str, calls: AlertCalls | None = None) -> Turn:
        """A turn; an interval is over."""
        self.clock.go(INTERVAL_S)
        self._turns += 1
        turn = await (calls or self.calls).begin(f"turn{self._turns}", queues)
        assert isinstance(turn, Turn)
        return turn

    async def judge(
        self, *readings: Reading | float, totals: Mapping[str, Mapping[str, int]] | None = None
    ) -> dict[str, Notice]:
        """One evaluation; its notices, which become jobs at once."""
        turn = await self.begin(*(totals or ()))
        told = [one if isinstance(one, Reading) else reading(one) for one in readings]
        notices = await self.calls.evaluate(turn, told, totals or {})
        assert notices is not None
        if notices:
            await self.calls.sent(list(notices))
        return notices

    async def told(self, *readings: Reading | float) -> list[str]:
        """Which channel is told what by one evaluation."""
        notices = (await self.judge(*readings)).values()
        return sorted(
            f"{one.channel} {one.severity}: {' '.join(change.kind for change in one.changes)}"
            for one in notices
        )

    async def look(self) -> AlertsView:
        return alerts_view(await self.calls.look(100))

    async def level(self) -> str:
        """The severity of the only alert; empty if none fires."""
        return next((one.severity for one in (await self.look()).firing), "")

    async def events(self) -> list[str]:
        rows = await self.engine.command("XRANGE", SHARD, "events", "-", "+")
        told = [texts(flat)[4:] for _, flat in rows]
        return [" ".join(words).replace("\n", " | ") for words in told]

    async def clear(self) -> None:
        for name in KEYS:
            await self.engine.command("DEL", SHARD, name)
