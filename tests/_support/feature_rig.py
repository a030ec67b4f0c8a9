"""Features and levels on a real server with a clock that only tests move."""

from __future__ import annotations

from typing import Any

from faena.engine.calls.features import FeatureCalls, FeatureRow, LevelRow, Seen
from faena.engine.calls.resilience import SHARD
from faena.engine.scripts import texts
from tests._support.upstream_rig import UpstreamRig

INVOICING = {
    "critical": True,
    "fallback": "queue",
    "message": "invoices are queued",
    "upstreams": ["afip"],
    "when_open": "offline",
    "check": "",
}


class FeatureRig:
    """Declares, sets and looks in the shortest words that a test needs."""

    def __init__(self, upstreams: UpstreamRig) -> None:
        self.upstreams, self.clock, self.engine = upstreams, upstreams.clock, upstreams.engine
        self.calls = FeatureCalls(self.engine)

    async def declare(self, name: str = "invoicing.afip", **options: Any) -> None:
        await self.calls.declare({name: {**INVOICING, **options}}, {})

    async def look(self) -> Seen:
        return await self.calls.look()

    async def feature(self, name: str = "invoicing.afip") -> FeatureRow:
        (found,) = [one for one in (await self.look()).features if one.name == name]
        return found

    async def level(self, name: str) -> LevelRow:
        (found,) = [one for one in (await self.look()).levels if one.name == name]
        return found

    async def told(self, name: str = "invoicing.afip") -> str:
        """The state that was written, without anybody looking."""
        rows = [row for row in await self.events() if row[0] in _STATES and row[1] == name]
        return rows[-1][0].removeprefix("feature_") if rows else "healthy"

    async def events(self) -> list[tuple[str, str, str, str]]:
        """What was told of features and levels, in order: event, name, why, by."""
        found: list[tuple[str, str, str, str]] = []
        for _, flat in await self.engine.command("XRANGE", SHARD, "events", "-", "+"):
            _, _, _, by, *told = texts(flat)
            for event, about in zip(told[::2], told[1::2], strict=True):
                if event.startswith(("feature", "level")):
                    name, _, why = about.partition("\n")
                    found.append((event, name, why, by))
        return found

    async def clear(self) -> None:
        await self.engine.command("DEL", SHARD, "features")


_STATES = {"feature_healthy", "feature_degraded", "feature_offline"}
