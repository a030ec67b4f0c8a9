"""Features and levels as readers see them, at one instant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from faena.engine.calls.features import FeatureRow, LevelRow, Seen, Source
from faena.values.view import View

State = Literal["healthy", "degraded", "offline"]

STATES: Final = ("healthy", "degraded", "offline")
"""From best to worst."""


class FeatureSource(View, frozen=True, kw_only=True):
    """One thing that says a feature is not healthy; instants are the server's microseconds."""

    source: str
    """`operator`, `check`, or what it is and which one: `breaker:afip`, `level:black-friday`."""
    state: str
    message: str | None
    """What to tell users, if the operator who set it said so."""
    since: int
    until: int | None
    """When it ends by itself; None: it does not."""
    by: str | None
    """The operator who set it, if one did."""
    reason: str | None
    """Why, for operators: the reason of a panic, the error of a health check."""


class FeatureView(View, frozen=True, kw_only=True):
    """One feature."""

    also = ("is_healthy", "uses_fallback")

    name: str
    state: str
    """healthy, degraded or offline: the worst of its sources."""
    is_critical: bool
    fallback: str
    message: str | None
    """What to tell users: the words of the operator who set the state, else those of the feature;
    None if neither says any, and while it is healthy."""
    since: int | None
    """When the state began; None if it has always been so."""
    source: str | None
    """What makes it so; None while it is healthy."""
    reason: str | None
    """Why, for operators, if the source says so: the reason of a panic, the error of a check."""
    sources: tuple[FeatureSource, ...]
    """Everything that says it is not healthy."""

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.state == "healthy"

    @property
    def uses_fallback(self) -> bool:
        """Whether its fallback is to be used, if it has one."""
        return not self.is_healthy and self.fallback != "none"


class LevelView(View, frozen=True, kw_only=True):
    """One level."""

    name: str
    states: dict[str, str]
    """What it says of features while it is on."""
    is_on: bool
    message: str | None
    since: int | None
    until: int | None
    by: str | None


class FeaturesView(View, frozen=True, kw_only=True):
    """All features and levels, also those of other programs."""

    overall: str
    """The worst state of the critical features."""
    at: int
    features: dict[str, FeatureView]
    levels: dict[str, LevelView]


def worst(states: Iterable[str]) -> str:
    """The worst of some states; healthy without any."""
    return max(states, key=STATES.index, default="healthy")


def view_at(seen: Seen, now: int) -> FeaturesView:
    """What was seen, as it is at an instant: what has ended since counts no more."""
    features = {one.name: feature_at(one, now) for one in sorted(seen.features, key=_name)}
    return FeaturesView(
        overall=worst(one.state for one in features.values() if one.is_critical),
        at=now,
        features=features,
        levels={one.name: _level(one, now) for one in sorted(seen.levels, key=_name)},
    )


def feature_at(row: FeatureRow, now: int) -> FeatureView:
    """One feature at an instant."""
    sources = [one for one in row.sources if not one.until or one.until > now]
    state = worst(one.state for one in sources)
    cause = next((one for one in sources if one.state == state), None)
    ended = [one.until for one in row.sources if one not in sources]
    return FeatureView(
        name=row.name,
        state=state,
        is_critical=row.is_critical,
        fallback=row.fallback,
        message=(cause and (cause.message or row.message)) or None,
        since=(row.since if state == row.state else max(ended, default=now)) or None,
        source=None if cause is None else cause.source,
        reason=(cause and cause.reason) or None,
        sources=tuple(_source(one) for one in sources),
    )


def _source(one: Source) -> FeatureSource:
    return FeatureSource(
        source=one.source,
        state=one.state,
        message=one.message or None,
        since=one.since,
        until=one.until or None,
        by=one.by or None,
        reason=one.reason or None,
    )


def _level(row: LevelRow, now: int) -> LevelView:
    is_on = row.is_on and (not row.until or row.until > now)
    return LevelView(
        name=row.name,
        states=dict(sorted(row.rules)),
        is_on=is_on,
        message=(is_on and row.message) or None,
        since=(is_on and row.since) or None,
        until=(is_on and row.until) or None,
        by=(is_on and row.by) or None,
    )


def _name(row: FeatureRow | LevelRow) -> str:
    return row.name
