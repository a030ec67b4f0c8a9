"""The features, levels and health checks of an app: `app.features`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from faena.engine import Engine
from faena.engine.calls.features import Unknown
from faena.errors import ConfigError, nearest, shown, unknown_name
from faena.options.fields import build, check_choice
from faena.resilience.feature import (
    TROUBLES,
    Feature,
    FeatureControl,
    FeatureFields,
    FeatureOptions,
    FollowingApp,
    Level,
    LevelControl,
    Trouble,
)
from faena.resilience.feature_copy import DeclaredFeatures, FeatureFollower
from faena.resilience.feature_views import FeaturesView, view_at
from faena.resilience.health_check import HealthCheck, HealthChecker, HealthCheckOptions, R
from faena.resilience.upstream import Upstream, refuse_foreign
from faena.values.names import check_label, check_name


class Features:
    """What an app declares of features; `await app.features()` reads all of them."""

    def __init__(
        self, upstreams: Mapping[str, Upstream], declared: DeclaredFeatures, app: FollowingApp
    ) -> None:
        """`upstreams` are the app's; more may be declared later."""
        self._upstreams, self._declared, self._app = upstreams, declared, app
        self._features: dict[str, Feature] = {}
        self.levels: dict[str, Level] = {}
        self.checks: dict[str, HealthCheck] = {}

    async def __call__(self) -> FeaturesView:
        """All features and levels as the server knows them, also those of other programs."""
        seen = await (await self._app.feature_follower()).look()
        return view_at(seen, seen.now)

    async def follow(self) -> None:
        """Keep `feature.state` current in this process, until the app is closed.

        The server tells of changes on a channel. Workers follow by themselves.
        """
        await (await self._app.feature_follower()).follow()

    def __getitem__(self, name: str) -> Feature:
        if name not in self._features:
            raise unknown_name("feature", name, self._features, field="feature", value=name)
        return self._features[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._features)

    def __len__(self) -> int:
        return len(self._features)

    def level(self, name: str) -> Level:
        """A level by its name."""
        if name not in self.levels:
            raise unknown_name("level", name, self.levels, field="level", value=name)
        return self.levels[name]

    # -- what any program declares --------------------------------------------------------------

    def control(self, name: str) -> FeatureControl:
        """A feature by its name, also one that another program declares."""
        return self._features.get(name) or FeatureControl(check_name("feature", name), self._app)

    def level_control(self, name: str) -> LevelControl:
        """A level by its name, also one that another program declares."""
        return self.levels.get(name) or LevelControl(check_name("level", name), self._app)

    # -- forgetting -----------------------------------------------------------------------------

    async def forget(self, name: str, *, by: str = "operator") -> None:
        """Remove a feature that this program does not declare, with its state.

        A running program that still declares it does so again when it reads features next.
        """
        await self._forget("feature", name, self._features, by)

    async def forget_level(self, name: str, *, by: str = "operator") -> None:
        """The same for a level; what it says of features ends."""
        await self._forget("level", name, self.levels, by)

    async def _forget(self, kind: str, name: str, own: Mapping[str, object], by: str) -> None:
        if check_name(kind, name) in own:
            raise ConfigError(
                f"{kind} must be one that this program does not declare, got {shown(name)}: remove "
                f"app.{kind}({shown(name)}, …) from the code first",
                field=kind,
                value=name,
            )
        who = check_label("by", by)
        follower = await self._app.feature_follower()
        try:
            await follower.calls.forget(kind, name, by=who)
        except Unknown:
            view = await self()
            known = view.features if kind == "feature" else view.levels
            raise unknown_name(kind, name, known, field=kind, value=name) from None

    # -- declaring ------------------------------------------------------------------------------

    def add(self, name: str, options: FeatureFields) -> Feature:
        """Declare a feature."""
        _refuse_second("feature", check_name("feature", name), self._features)
        built = build(FeatureOptions, "feature", options)
        self._check_upstreams(name, built.upstreams)
        self._declared.features[name] = built.settings()
        self._declared.version += 1
        self._features[name] = Feature(name, built, self._app)
        return self._features[name]

    def _check_upstreams(self, feature: str, given: Any) -> None:
        known = nearest("", self._upstreams)
        if not isinstance(given, list | tuple):
            raise ConfigError(
                f"upstreams must be a list of upstreams of the app, got {shown(given)}; {known}",
                field="upstreams",
                value=given,
            )
        refuse_foreign(f"upstreams of feature {feature}", given, self._app.name, self._upstreams)
        if len({one.name for one in given if isinstance(one, Upstream)}) < len(given):
            raise ConfigError(
                f"upstreams must be different upstreams of the app, got {shown(given)}; {known}",
                field="upstreams",
                value=given,
            )

    def add_level(self, name: str, states: Mapping[str, Trouble]) -> Level:
        """Declare a level."""
        _refuse_second("level", check_name("level", name), self.levels)
        if not isinstance(states, Mapping) or not states:  # pyright: ignore[reportUnnecessaryIsInstance] - users' input
            raise ConfigError(
                f"states of level {name} must be a mapping such as {{'ai.voice': 'offline'}}, "
                f"got {shown(states)}",
                field="states",
                value=states,
            )
        for feature, state in states.items():
            if feature not in self._features:
                raise unknown_name(
                    f"feature of level {name}",
                    feature,
                    self._features,
                    field="states",
                    value=feature,
                )
            check_choice(f"state of {feature}", state, TROUBLES)
        self._declared.levels[name] = dict(states)
        self._declared.version += 1
        self.levels[name] = Level(name, dict(states), self._app)
        return self.levels[name]

    def add_check(self, name: str, options: Mapping[str, Any]) -> Callable[[R], R]:
        """Declare the health check of a feature."""
        self[name]
        _refuse_second("health check of", name, self.checks)
        built = build(HealthCheckOptions, "health check", options)

        def decorate(run: R) -> R:
            if not inspect.iscoroutinefunction(run) or _needs_arguments(run):
                raise ConfigError(
                    "health check must be a coroutine function (async def) that takes no "
                    f"argument, got {shown(run)}",
                    field="health_check",
                    value=run,
                )
            self.checks[name] = HealthCheck(name, run, built)
            settings = self._declared.features[name]
            self._declared.features[name] = {**settings, "check": built.when_failing}
            self._declared.version += 1
            return run

        return decorate

    # -- workers --------------------------------------------------------------------------------

    def keeper(self, engine: Engine) -> FeatureKeeper:
        """What a worker does for features."""
        follower = FeatureFollower(engine, self._declared, self._app.feature_copy())
        return FeatureKeeper(follower, self)


class FeatureKeeper:
    """Keeps the copy of a worker process current, ends what is over, and runs health checks."""

    def __init__(self, follower: FeatureFollower, features: Features) -> None:
        self._follower, self._features = follower, features
        self.notify = follower.notify

    async def begin(self) -> None:
        """Read them before the first job runs."""
        if self._features:
            await self._follower.begin()

    async def run(self) -> None:
        """Serve until cancelled."""
        if not self._features:
            await asyncio.Event().wait()
        checker = HealthChecker(self._follower.calls, list(self._features.checks.values()))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follower.run())
                group.create_task(checker.run())
        finally:
            await self._follower.close()


def _needs_arguments(function: Callable[..., object]) -> bool:
    try:
        inspect.signature(function).bind()
    except TypeError:
        return True
    return False


def _refuse_second(what: str, name: str, known: Mapping[str, object]) -> None:
    if name in known:
        raise ConfigError(
            f"{what} {name} must be declared once, got it again",
            field=what.partition(" of")[0].replace(" ", "_"),
            value=name,
        )
