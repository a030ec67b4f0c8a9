"""How the whole stands, as each page shows it beside its own content: features that are not
healthy, alerts that fire, upstreams in trouble. Read once in two seconds, however many pages ask.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from faena.engine.calls.upstreams import UpstreamView
from faena.resilience.feature_views import STATES, FeatureView
from faena.telemetry.alerts.view import AlertView
from faena.web.figure import Figures
from faena.web.words import Speaker

if TYPE_CHECKING:
    from faena.app import Faena

_FRESH_S: Final = 2.0
_DAY_US: Final = 86_400_000_000


class Standing(NamedTuple):
    """It, at one instant."""

    at: int
    overall: str
    limited: Sequence[FeatureView]
    """Features that are not healthy, worst first, critical ones before others."""
    firing: Sequence[AlertView]
    """Alerts that fire and are not silenced."""
    troubled: Sequence[UpstreamView]
    """Upstreams that take no calls, or fewer."""


class Standings:
    """Reads it for all pages of a process."""

    def __init__(self, app: Faena) -> None:
        self._app = app
        self._lock = asyncio.Lock()
        self._last: tuple[float, Standing] | None = None

    async def now(self) -> Standing:
        """It, at most two seconds old."""
        async with self._lock:
            if self._last is None or time.monotonic() - self._last[0] > _FRESH_S:
                self._last = (time.monotonic(), await self._read())
            return self._last[1]

    def forget(self) -> None:
        """Something was changed: the next page reads anew."""
        self._last = None

    async def _read(self) -> Standing:
        features, alerts, upstreams = await asyncio.gather(
            self._app.features(), self._app.alerts(history=0), self._app.upstream_views()
        )
        limited = [one for one in features.features.values() if not one.is_healthy]
        limited.sort(key=lambda one: (-STATES.index(one.state), not one.is_critical, one.name))
        return Standing(
            at=features.at,
            overall=features.overall,
            limited=limited,
            firing=[one for one in alerts.firing if not one.is_silenced],
            troubled=[one for one in upstreams if is_troubled(one)],
        )


def is_troubled(view: UpstreamView) -> bool:
    """Whether it takes no calls, or fewer than usual, from everybody or from some tenants."""
    is_off = view.panic is not None or view.no_calls_until is not None
    return is_off or view.state != "closed" or view.troubled > 0 or bool(view.full_budgets)


def figures(standing: Standing, say: Speaker) -> Mapping[str, str]:
    """The banner and the badges as texts; an empty one is not shown."""
    return {
        **banner(standing, say),
        "nav.alert": _number(standing.firing),
        "nav.upstream": _number(standing.troubled),
    }


def banner(standing: Standing, say: Speaker) -> Mapping[str, str]:
    """What users of the program miss now."""
    limited = standing.limited
    if not limited:
        return {"banner.head": "", "banner.words": "", "banner.link": ""}
    first, rest = limited[0], limited[1:]
    since = _since(first.since, standing.at, Figures(say))
    words = [first.message] if first.message else []
    if rest:
        words.append(say("Also limited: {names}.", names=", ".join(one.name for one in rest)))
    return {
        "banner.head": say(
            f"{{feature}} has been {first.state} since {{time}}."
            if since
            else f"{{feature}} is {first.state}.",
            feature=first.name,
            time=since,
        ),
        "banner.words": " ".join(words),
        "banner.link": say("{n} {n|feature|features}", n=len(limited)),
    }


def _since(since: int | None, now: int, write: Figures) -> str:
    if since is None:
        return ""
    is_long = now - since > _DAY_US
    return write.instant(since) if is_long else f"{write.clock(since)} UTC"


def _number(items: Sequence[object]) -> str:
    return str(len(items)) if items else ""
