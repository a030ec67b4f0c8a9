"""Whatever happens in whatever order, a feature is the worst of what still counts."""

from __future__ import annotations

import random

import pytest

from faena.engine.calls.resilience import SHARD
from faena.engine.calls.upstreams import end_panic, panic
from faena.resilience.feature_views import STATES, view_at, worst
from tests._support.feature_rig import FeatureRig
from tests._support.rig import SECOND
from tests._support.search import IS_FULL, SEED

STEPS = 2_000 if IS_FULL else 150
NAMES = ("ai.voice", "invoicing", "tracking")
LEVELS = {
    "busy": {"ai.voice": "offline", "tracking": "degraded"},
    "storm": {"tracking": "offline", "invoicing": "degraded"},
}
WHEN_OPEN = {"ai.voice": "offline", "invoicing": "degraded"}
FOREVER = 1 << 60


class Model:
    """What counts, each until an instant."""

    def __init__(self) -> None:
        self.set: dict[str, tuple[str, int]] = {}
        self.on: dict[str, int] = {}
        self.panic_until = 0
        self.is_open = False
        self.failures = 0

    def state(self, name: str, now: int) -> str:
        states = [self.set[name][0]] if self.set.get(name, ("", 0))[1] > now else []
        states += [LEVELS[one].get(name, "healthy") for one, at in self.on.items() if at > now]
        if (self.is_open or self.panic_until > now) and name in WHEN_OPEN:
            states.append(WHEN_OPEN[name])
        if self.failures >= 2 and name == "tracking":
            states.append("degraded")
        return worst(states)


class Run:
    """Does the same to the server and to the model."""

    def __init__(self, rig: FeatureRig, seed: int) -> None:
        self.rig, self.model, self.dice = rig, Model(), random.Random(seed)
        self.steps = (self.set, self.clear, self.switch_on, self.switch_off, self.wait, self.wait)
        self.steps += (self.panic, self.end_panic, self.trip, self.forget, self.check, self.declare)

    async def begin(self) -> None:
        await self.rig.upstreams.declare()
        await self.declare()

    async def declare(self) -> None:
        for name in NAMES:
            options = {
                "critical": name == "invoicing",
                "upstreams": ["afip"] if name in WHEN_OPEN else [],
                "when_open": WHEN_OPEN.get(name, "offline"),
                "check": "degraded" if name == "tracking" else "",
            }
            await self.rig.declare(name, **options)
        await self.rig.calls.declare({}, LEVELS)

    def lasting(self) -> tuple[int | None, int]:
        us = self.dice.choice([None, SECOND, 7 * SECOND, 60 * SECOND])
        return us, FOREVER if us is None else self.rig.clock.now + us

    async def set(self) -> None:
        name, state = self.dice.choice(NAMES), self.dice.choice(STATES[1:])
        us, until = self.lasting()
        await self.rig.calls.set(name, state, duration_us=us, by="ana")
        self.model.set[name] = state, until

    async def clear(self) -> None:
        name = self.dice.choice(NAMES)
        await self.rig.calls.set(name, "", by="ana")
        self.model.set.pop(name, None)

    async def switch_on(self) -> None:
        name = self.dice.choice([*LEVELS])
        us, until = self.lasting()
        await self.rig.calls.switch(name, "on", duration_us=us, by="ana")
        self.model.on[name] = until

    async def switch_off(self) -> None:
        name = self.dice.choice([*LEVELS])
        await self.rig.calls.switch(name, "off", by="ana")
        self.model.on.pop(name, None)

    async def wait(self) -> None:
        self.rig.clock.go(self.dice.choice([0.5, 1, 3, 20]))

    async def panic(self) -> None:
        us, until = self.lasting()
        await panic(self.rig.engine, "afip", "no", "ana", us)
        self.model.panic_until = until

    async def end_panic(self) -> None:
        await end_panic(self.rig.engine, "afip", "ana")
        self.model.panic_until = 0

    async def trip(self) -> None:
        if not self.model.is_open:
            await self.rig.upstreams.trip()
            self.model.is_open = True

    async def forget(self) -> None:
        """As an hour without a call does."""
        await self.rig.engine.command("DEL", SHARD, "breaker:afip")
        self.model.is_open = False

    async def check(self) -> None:
        self.rig.clock.go(1)
        owner, is_good = str(self.rig.clock.now), self.dice.random() < 0.4
        assert await self.rig.calls.begin_check("tracking", owner, SECOND) == 0
        problem = None if is_good else "no"
        await self.rig.calls.end_check("tracking", owner, problem, every_us=SECOND, failures=2)
        self.model.failures = 0 if is_good else self.model.failures + 1


@pytest.mark.parametrize("seed", range(3))
async def test_the_server_and_the_model_agree(features: FeatureRig, seed: int) -> None:
    run = Run(features, SEED + seed)
    await run.begin()
    seen = await features.look()
    for _ in range(STEPS):
        step = run.dice.choice(run.steps)
        await step()
        now = features.clock.now
        if step == run.wait:  # a copy needs nobody to tell it that time has passed
            states = {name: run.model.state(name, now) for name in NAMES}
            copy = view_at(seen, now)
            assert {name: one.state for name, one in copy.features.items()} == states
        seen = await features.look()
        view = view_at(seen, now)
        states = {name: run.model.state(name, now) for name in NAMES}
        assert {name: one.state for name, one in view.features.items()} == states, step
        assert {one.name: one.state for one in seen.features} == states, step
        assert view.overall == states["invoicing"]
    await check_events(features)


async def check_events(features: FeatureRig) -> None:
    """Each transition begins where the one before it ended."""
    last = dict.fromkeys(NAMES, "healthy")
    for event, name, why, _ in await features.events():
        if why.startswith("from="):
            words = dict(word.split("=", 1) for word in why.split())
            assert words["from"] == last[name] != words["to"]
            assert event == f"feature_{words['to']}"
            last[name] = words["to"]
    assert last == {one.name: one.state for one in (await features.look()).features}
