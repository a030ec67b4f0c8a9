"""Features: what they depend on, what operators say of them, and that every process knows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from faena import Faena, Feature
from faena.errors import ArgumentError, ConfigError
from faena.resilience.breaker import Breaker
from tests._support.eventually import eventually
from tests._support.rig import SECOND, T0, Clock
from tests._support.working import Working

MINUTE = 60 * SECOND


@pytest.fixture
async def other(app: Faena) -> AsyncIterator[Faena]:
    """Another process, as far as the server can tell."""
    connection = app._links.connection
    other = Faena("other", connection.url, namespace=connection.namespace)
    yield other
    await other.close()


def declare(app: Faena, **options: Any) -> Feature:
    afip = app.upstream("afip", breaker=Breaker(volume=4, open="10m"))
    return app.feature(
        "invoicing.afip", critical=True, fallback="queue", upstreams=[afip], **options
    )


async def trip(app: Faena) -> None:
    for _ in range(4):
        with pytest.raises(ConnectionRefusedError):
            async with app.upstreams["afip"].call():
                raise ConnectionRefusedError("down")
    await (await app.runtime()).gate.flush()


async def test_what_users_are_told_is_not_why_an_upstream_is_out(shop: Faena) -> None:
    feature = declare(shop, message="invoices are queued")
    bare = shop.feature("ai.voice", upstreams=[shop.upstreams["afip"]])
    await shop.upstreams["afip"].panic(reason="certificate expired", by="ana")
    view = await feature.view()
    assert (view.source, view.message) == ("panic:afip", "invoices are queued")
    (source,) = view.sources
    assert (view.reason, source.reason) == ("certificate expired", "certificate expired")
    assert (source.message, source.by) == (None, "ana")
    bare_view = await bare.view()
    assert (bare_view.message, bare_view.reason) == (None, "certificate expired")
    await feature.set("offline", message="back at noon", by="eva")
    view = await feature.view()
    assert (view.source, view.message, view.reason) == ("operator", "back at noon", None)
    assert [one.source for one in view.sources] == ["operator", "panic:afip"]


async def test_those_of_another_program_are_set_by_name(shop: Faena, other: Faena) -> None:
    shop.feature("ai.voice")
    shop.level("night", {"ai.voice": "degraded"})
    await shop.features()
    voice, night = other.features.control("ai.voice"), other.features.level_control("night")
    await voice.set("offline", by="ana")
    assert (await voice.view()).state == "offline"
    assert await voice.clear(by="ana")
    await night.on(by="ana")
    assert (await voice.view()).source == "level:night"
    assert await night.off(by="ana")
    words = "feature must be a known name, got 'ai.vice'; did you mean 'ai.voice'"
    for call in (
        lambda: other.features.control("ai.vice").clear(),
        other.features.control("ai.vice").view,
    ):
        with pytest.raises(ConfigError, match=words):
            await call()
    with pytest.raises(ConfigError, match="level must be a known name, got 'day'; valid: night"):
        await other.features.level_control("day").off()


async def test_the_worst_of_the_critical_ones_counts(shop: Faena) -> None:
    declare(shop)
    shop.feature("ai.voice", fallback="manual")
    shop.feature("tracking", critical=True)
    await shop.features["ai.voice"].set("offline")
    assert (await shop.features()).overall == "healthy"
    await shop.features["tracking"].set("degraded", message="slow")
    view = await shop.features()
    assert view.overall == "degraded"
    assert {one.name: one.state for one in view.features.values()} == {
        "ai.voice": "offline",
        "invoicing.afip": "healthy",
        "tracking": "degraded",
    }
    await shop.features["invoicing.afip"].set("offline")
    assert (await shop.features()).overall == "offline"


async def test_an_open_breaker_reaches_every_process(shop: Faena, other: Faena) -> None:
    here, there = declare(shop, message="invoices are queued"), declare(other)
    await other.features.follow()
    await there.set("degraded")
    assert there.state == "degraded", "whoever sets it knows at once"
    assert await there.clear()
    assert there.is_healthy
    assert not there.uses_fallback
    await trip(shop)
    await eventually(lambda: there.state == "offline")
    assert there.uses_fallback
    view = await here.view()
    assert (view.source, view.state) == ("breaker:afip", "offline")
    assert there.now.since == view.since
    assert (await other.features()).overall == (await shop.features()).overall == "offline"


async def test_a_state_that_was_set_ends_in_the_copy_by_itself(shop: Faena, other: Faena) -> None:
    clock = Clock(T0)
    with shop.override(clock=clock):
        feature = declare(shop)
        await feature.set("degraded", message="they move", by="ana", lasting="1m")
        await shop.features.follow()
        now = feature.now
        assert (now.state, now.message, now.since) == ("degraded", "they move", T0)
        (source,) = now.sources
        assert (source.source, source.by, source.until) == ("operator", "ana", T0 + MINUTE)
        clock.go(60)
        assert (feature.state, feature.now.since) == ("healthy", T0 + MINUTE)
        view = await shop.features()
        assert (view.overall, view.at) == ("healthy", T0 + MINUTE)
        await shop.close()
    assert other


async def test_a_level_is_switched_on_for_a_time(shop: Faena, other: Faena) -> None:
    for app in (shop, other):
        app.feature("ai.voice", fallback="manual")
        app.feature("tracking", fallback="polling")
        app.level("black-friday", {"ai.voice": "offline", "tracking": "degraded"})
    await other.features.follow()
    await shop.features.levels["black-friday"].on(by="ana", lasting="1h", message="busy")
    voice = other.features["ai.voice"]
    await eventually(lambda: voice.state == "offline")
    assert (voice.now.source, voice.now.message) == ("level:black-friday", "busy")
    level = (await other.features()).levels["black-friday"]
    assert (level.is_on, level.by, level.message) == (True, "ana", "busy")
    assert level.until is not None
    assert level.since is not None
    assert level.until - level.since == 3600 * SECOND
    assert await other.features.levels["black-friday"].off()
    assert not await shop.features.levels["black-friday"].off()
    await eventually(lambda: voice.is_healthy)


async def test_clear_ends_only_what_was_set_by_hand(shop: Faena) -> None:
    feature = declare(shop, when_open="degraded")
    await trip(shop)
    await feature.set("offline", by="ana")
    assert (await feature.view()).source == "operator"
    assert await feature.clear(by="ana")
    assert not await feature.clear(by="ana")
    view = await feature.view()
    assert (view.state, view.source) == ("degraded", "breaker:afip")


async def test_workers_follow_by_themselves(shop: Faena, working: Working) -> None:
    feature, queue = declare(shop), shop.queue("invoices")

    @queue.task
    async def how() -> str:
        return feature.state

    async with working(shop):
        receipt = await how.enqueue()
        assert await receipt.handle.result(timeout="60s") == "healthy"
        await feature.set("degraded")
        await eventually(lambda: feature.state == "degraded")
        receipt = await how.enqueue()
        assert await receipt.handle.result(timeout="60s") == "degraded"
    with pytest.raises(ConfigError, match="features must be followed"):
        _ = feature.state


async def test_a_fork_does_not_trust_the_copy_of_its_parent(shop: Faena) -> None:
    feature = shop.feature("ai.voice")
    await asyncio.gather(shop.features.follow(), shop.features.follow())
    assert feature.is_healthy
    child = os.fork()
    if not child:
        try:
            _ = feature.state
        except ConfigError:
            os._exit(7)
        os._exit(0)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    assert os.waitstatus_to_exitcode(status) == 7


async def test_a_server_that_has_lost_all_is_told_again(shop: Faena) -> None:
    feature = declare(shop)
    assert (await feature.view()).is_healthy
    engine = (await shop.runtime()).engine
    await engine.command("DEL", "@resilience", "features")
    await feature.set("degraded")
    await engine.command("DEL", "@resilience", "features")
    assert (await feature.view()).is_healthy


async def test_a_lost_connection_is_made_up_for(shop: Faena, other: Faena) -> None:
    feature = declare(other)
    declare(shop)
    await other.features.follow()
    subscription = (await other.runtime()).features._subscription
    assert subscription is not None
    subscription.reset()
    await shop.features["invoicing.afip"].set("offline")
    await eventually(lambda: feature.state == "offline")


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words", "field"),
    [
        ({"fallback": "fax"}, "fallback must be 'manual' or 'queue' or 'polling'", "fallback"),
        ({"critical": "yes"}, "critical must be a bool", "critical"),
        ({"when_open": "healthy"}, "when_open must be 'degraded' or 'offline'", "when_open"),
        (
            {"upstreams": ["afip"]},
            "must be different upstreams of the app.*valid: afip",
            "upstreams",
        ),
        ({"upstreams": "afip"}, "upstreams must be a list of upstreams", "upstreams"),
        ({"message": ""}, "message must be 1 to 200 printable characters", "message"),
        ({"critcal": True}, "did you mean 'critical'", "critcal"),
    ],
)
def test_a_feature_that_makes_no_sense_is_refused(
    app: Faena, options: dict[str, Any], words: str, field: str
) -> None:
    app.upstream("afip")
    with pytest.raises(ConfigError, match=words) as caught:
        app.feature("invoicing", **options)
    assert caught.value.field == field


def test_names_are_declared_once_and_must_be_known(app: Faena) -> None:
    app.feature("ai.voice")
    for declare_it in (
        lambda: app.feature("ai.voice"),
        lambda: [app.level("busy", {"ai.voice": "offline"}) for _ in range(2)],
    ):
        with pytest.raises(ConfigError, match="must be declared once"):
            declare_it()
    for look in (lambda: app.features["ai.vice"], lambda: app.health_check("ai.vice")):
        with pytest.raises(ConfigError, match=r"feature must be a known name.*'ai\.voice'"):
            look()
    with pytest.raises(ConfigError, match=r"level must be a known name.*'busy'"):
        app.features.level("bussy")


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ({"ai.vice": "offline"}, r"feature of level busy must be a known name.*'ai\.voice'"),
        ({"ai.voice": "gone"}, r"state of ai\.voice must be 'degraded' or 'offline', got 'gone'"),
        ({"ai.voice": "healthy"}, "must be 'degraded' or 'offline'"),
        ({}, "must be a mapping such as"),
        (["ai.voice"], "must be a mapping such as"),
    ],
)
def test_a_level_that_makes_no_sense_is_refused(app: Faena, states: Any, words: str) -> None:
    app.feature("ai.voice")
    with pytest.raises(ConfigError, match=words):
        app.level("busy", states)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"every": "10ms"}, "every must be a duration from 1s"),
        ({"timeout": "0s"}, "timeout must be a duration from 1ms"),
        ({"failures": 0}, "failures must be a whole number from 1"),
        ({"when_failing": "healthy"}, "when_failing must be 'degraded' or 'offline'"),
        ({"evry": "1s"}, "did you mean 'every'"),
    ],
)
def test_a_check_that_makes_no_sense_is_refused(
    app: Faena, options: dict[str, Any], words: str
) -> None:
    app.feature("ai.voice")
    with pytest.raises(ConfigError, match=words):
        app.health_check("ai.voice", **options)


def test_a_check_is_a_coroutine_function(app: Faena) -> None:
    app.feature("ai.voice")
    with pytest.raises(ConfigError, match="health check must be a coroutine function"):
        app.health_check("ai.voice")(lambda: None)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("state", "named", "words"),
    [
        ("gone", {}, "state must be 'degraded' or 'offline', got 'gone'"),
        ("healthy", {}, "`clear` ends a state that was set by hand"),
        ("offline", {"lasting": timedelta(seconds=-1)}, "lasting must be a duration from 1us"),
        ("offline", {"lasting": "0s"}, "lasting must be a duration from 1us"),
        ("offline", {"lasting": 5}, "lasting must be"),
        ("offline", {"message": "a\nb"}, "message must be 1 to 200"),
    ],
)
async def test_what_an_operator_says_is_checked(
    shop: Faena, state: Any, named: dict[str, Any], words: str
) -> None:
    feature = shop.feature("ai.voice")
    with pytest.raises(ConfigError, match=words):
        await feature.set(state, **named)
    with pytest.raises(ArgumentError, match="by must be"):
        await feature.set("offline", by="")


def test_a_state_is_not_guessed(app: Faena) -> None:
    with pytest.raises(ConfigError, match=r"await app.features.follow\(\)"):
        _ = app.feature("ai.voice").state


# -- events ----------------------------------------------------------------------------------------


async def test_transitions_are_events(shop: Faena) -> None:
    shop.queue("any")
    feature = shop.feature("ai.voice")
    shop.level("busy", {"ai.voice": "offline"})
    await feature.set("degraded", message="slow", by="ana")
    await shop.features.levels["busy"].on(by="luis")
    await shop.features.levels["busy"].off(by="luis")
    await feature.clear(by="ana")
    seen: list[tuple[str, str | None, str | None, str | None]] = []
    async for event in shop.events(since="start"):
        seen.append((event.name, event.value, event.reason, event.by))
        if event.name == "feature_healthy":
            break
    assert seen == [
        ("feature_set", "ai.voice", "to=degraded message=slow", "ana"),
        ("feature_degraded", "ai.voice", "from=healthy to=degraded source=operator", "ana"),
        ("level_on", "busy", None, "luis"),
        ("feature_offline", "ai.voice", "from=degraded to=offline source=level:busy", "luis"),
        ("level_off", "busy", None, "luis"),
        ("feature_degraded", "ai.voice", "from=offline to=degraded source=operator", "luis"),
        ("feature_cleared", "ai.voice", None, "ana"),
        ("feature_healthy", "ai.voice", "from=degraded to=healthy", "ana"),
    ]


async def test_whoever_follows_tells_what_time_has_ended(shop: Faena) -> None:
    """Nobody asks for the feature, and no other process follows it."""
    clock = Clock(T0)
    with shop.override(clock=clock):
        shop.queue("any")
        feature = shop.feature("ai.voice")
        await feature.set("degraded", lasting="20s")
        follower = (await shop.runtime()).features
        assert await follower.run_once() == 20
        clock.go(20)
        assert await follower.run_once() == 30, "nothing is left to end"
        async with asyncio.timeout(60):
            async for event in shop.events(since="start", kinds="feature_healthy"):
                assert (event.value, event.reason) == ("ai.voice", "from=degraded to=healthy")
                break
        await shop.close()
