"""What a program does for its users, and whether it can do so now.

    invoicing = app.feature("invoicing.afip", critical=True, fallback="queue", upstreams=[afip])
    if invoicing.uses_fallback: ...

Its state is the worst of what its upstreams, its health check, levels and operators say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypedDict

from faena.errors import ConfigError, shown, unknown_name
from faena.options.fields import check_choice, check_is
from faena.resilience.feature_copy import FeatureCopy, FeatureFollower
from faena.resilience.feature_views import FeatureView, view_at
from faena.resilience.upstream import Upstream
from faena.values.duration import Duration, to_us
from faena.values.names import REASON_MAX, check_label

FallbackKind = Literal["manual", "queue", "polling", "email", "none"]
Trouble = Literal["degraded", "offline"]

FALLBACKS: Final = ("manual", "queue", "polling", "email", "none")
TROUBLES: Final = ("degraded", "offline")


class FollowingApp(Protocol):
    """An app, as far as its features need it."""

    name: str

    async def feature_follower(self) -> FeatureFollower:
        """What reads features on the running event loop."""
        ...

    def feature_copy(self) -> FeatureCopy:
        """What this process knows of features."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureOptions:
    """What a program says of a feature."""

    critical: bool = False
    """Whether the whole is not better than this feature: `overall` is the worst of these."""

    fallback: FallbackKind = "none"
    """What the program does instead while it is not healthy; the program itself does it."""

    upstreams: Sequence[Upstream] = ()
    """The outside services it depends on: their breakers, panics and hard budgets count."""

    when_open: Trouble = "offline"
    """What it is while one of them takes no calls; while one recovers, it is degraded."""

    message: str | None = None
    """What to tell users while it is not healthy."""

    def __post_init__(self) -> None:
        check_is("critical", self.critical, bool)
        check_choice("fallback", self.fallback, FALLBACKS)
        check_choice("when_open", self.when_open, TROUBLES)
        if self.message is not None:
            check_message(self.message)

    def settings(self) -> dict[str, Any]:
        """What the server keeps of it."""
        return {
            "critical": self.critical,
            "fallback": self.fallback,
            "upstreams": [one.name for one in self.upstreams],
            "when_open": self.when_open,
            "message": self.message or "",
            "check": "",
        }


class FeatureFields(TypedDict, total=False):
    """The options of a feature; see `FeatureOptions`."""

    critical: bool
    fallback: FallbackKind
    upstreams: Sequence[Upstream]
    when_open: Trouble
    message: str | None


class FeatureControl:
    """A feature by its name, which any program may declare: its state, and what operators say."""

    def __init__(self, name: str, app: FollowingApp) -> None:
        self.name = name
        self._app = app

    async def view(self) -> FeatureView:
        """The feature as the server knows it."""
        seen = await (await self._app.feature_follower()).look()
        features = view_at(seen, seen.now).features
        if self.name not in features:
            raise unknown_name("feature", self.name, features, field="feature", value=self.name)
        return features[self.name]

    async def set(
        self,
        state: Trouble,
        *,
        message: str | None = None,
        by: str = "operator",
        lasting: Duration | None = None,
    ) -> None:
        """Say that it is not healthy, until `clear` or for a time.

        A feature can be worse than that, never better: to end what was set, `clear` it.
        """
        if state not in TROUBLES:
            raise ConfigError(
                f"state must be 'degraded' or 'offline', got {shown(state)}; `clear` ends a state "
                "that was set by hand",
                field="state",
                value=state,
            )
        named = decision(message, by, lasting)
        follower = await self._app.feature_follower()
        await follower.apply(
            "feature", self.name, lambda: follower.calls.set(self.name, state, **named)
        )

    async def clear(self, *, by: str = "operator") -> bool:
        """End what was set by hand; False if nothing was. Other sources stay."""
        by = check_label("by", by)
        follower = await self._app.feature_follower()
        return await follower.apply(
            "feature", self.name, lambda: follower.calls.set(self.name, "", by=by)
        )


class Feature(FeatureControl):
    """One feature of an app."""

    def __init__(self, name: str, options: FeatureOptions, app: FollowingApp) -> None:
        super().__init__(name, app)
        self.options = options

    def __repr__(self) -> str:
        return f"<Feature {self.name}>"

    @property
    def fallback(self) -> str:
        """What the program does instead while it is not healthy."""
        return self.options.fallback

    # -- now, as this process knows it ----------------------------------------------------------

    @property
    def now(self) -> FeatureView:
        """The feature as it is now; needs `app.features.follow()`, which workers do themselves."""
        return self._app.feature_copy().view(self.name)

    @property
    def state(self) -> str:
        """healthy, degraded or offline."""
        return self.now.state

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.now.is_healthy

    @property
    def uses_fallback(self) -> bool:
        """Whether its fallback is to be used, if it has one."""
        return self.now.uses_fallback


class LevelControl:
    """A level by its name, which any program may declare."""

    def __init__(self, name: str, app: FollowingApp) -> None:
        self.name = name
        self._app = app

    async def on(
        self,
        *,
        message: str | None = None,
        by: str = "operator",
        lasting: Duration | None = None,
    ) -> None:
        """Switch it on, until `off` or for a time."""
        named = decision(message, by, lasting)
        follower = await self._app.feature_follower()
        await follower.apply(
            "level", self.name, lambda: follower.calls.switch(self.name, "on", **named)
        )

    async def off(self, *, by: str = "operator") -> bool:
        """Switch it off; False if it was off."""
        by = check_label("by", by)
        follower = await self._app.feature_follower()
        return await follower.apply(
            "level", self.name, lambda: follower.calls.switch(self.name, "off", by=by)
        )


class Level(LevelControl):
    """A saved set of states of features, for days on which less must do."""

    def __init__(self, name: str, states: Mapping[str, str], app: FollowingApp) -> None:
        super().__init__(name, app)
        self.states = states

    def __repr__(self) -> str:
        return f"<Level {self.name}>"


def decision(message: str | None, by: str, lasting: Duration | None) -> dict[str, Any]:
    """What an operator says with a change, checked."""
    return {
        "message": "" if message is None else check_message(message),
        "by": check_label("by", by),
        "duration_us": None if lasting is None else to_us("lasting", lasting, least_us=1),
    }


def check_message(value: Any) -> str:
    """Return `value` if it is one line of text."""
    text = str.__str__(value) if isinstance(value, str) else ""
    if text.isprintable() and text.strip() and len(text) <= REASON_MAX:
        return text
    raise ConfigError(
        f"message must be 1 to {REASON_MAX} printable characters, got {shown(value)}",
        field="message",
        value=value,
    )
