"""A worker judges alerts and sends notices beside its jobs, and is quiet while nothing happens."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any

import pytest

from faena import Alerts, Faena, Thresholds, Webhook
from faena.engine.calls.resilience import SHARD
from faena.errors import ConfigError
from faena.testing import harness
from tests._support.alert_watch import SECRET, watching
from tests._support.eventually import eventually
from tests._support.notice_receiver import NoticeReceiver
from tests._support.valkey import Server
from tests._support.working import running, serving
from tests.faults.test_faults_idle import EACH, ONCE, SHARDS

QUIET_S = 240
OFF = (None, None)


def declare(app: Faena, *names: str) -> Any:
    for name in names or ("mail",):
        queue = app.queue(name, alerts=Thresholds(depth=(2, None), wait=OFF, silent=OFF))

        @queue.task(name=f"{name}.work")
        async def work() -> None: ...

    return app.queues[(names or ("mail",))[0]].tasks[f"{(names or ('mail',))[0]}.work"]


async def test_a_worker_tells_what_fires_and_what_is_resolved(server: Server) -> None:
    async with NoticeReceiver() as hook:
        channel = Webhook(name="ops", url=hook.url, secret=SECRET, allow_private=True)
        app = Faena("shop", server.url, alerts=Alerts(channels=[channel], interval="1s"))
        work = declare(app)
        async with app:
            await app.queues["mail"].pause()
            await work.enqueue()
            await work.enqueue()
            async with running(app):
                await eventually(lambda: hook.told() == ["depth mail warning firing"])
                assert "alert_firing" in await events(app)
                await app.queues["mail"].resume()
                await eventually(lambda: hook.told()[1:] == ["depth mail warning resolved"])
    assert len({one.headers["Faena-Notice"] for one in hook.requests}) == 2


async def events(app: Faena) -> list[str]:
    async for event in app.events(since="start", kinds=["alert_firing"]):
        assert event.value == "depth mail"
        assert event.queue == ""
        return [event.name]
    return []


async def test_notices_that_a_killed_worker_has_left_are_sent(server: Server) -> None:
    """It has judged and died before its job was served: another worker sees it waits."""
    async with NoticeReceiver() as hook:
        channel = Webhook(name="ops", url=hook.url, secret=SECRET, allow_private=True)
        app = Faena("shop", server.url, alerts=Alerts(channels=[channel], interval="1s"))
        work = declare(app)
        async with app:
            await app.queues["mail"].pause()
            await work.enqueue()
            await work.enqueue()
            await (await app.evaluator()).run_once()
            assert (await app.queues["alerts"].counts())["ready"] == 1
            assert (await app.alerts()).undelivered == 0
            async with running(app):
                await eventually(lambda: hook.told() == ["depth mail warning firing"])


async def test_a_worker_that_cannot_send_stops_as_any_other(server: Server) -> None:
    async with NoticeReceiver(status=503) as hook:
        channel = Webhook(name="ops", url=hook.url, secret=SECRET, allow_private=True)
        app = Faena("shop", server.url, alerts=Alerts(channels=[channel], interval="1s"))
        work = declare(app)
        async with app:
            await app.queues["mail"].pause()
            await work.enqueue()
            await work.enqueue()
            async with serving(app):
                await eventually(lambda: hook.requests)
            hook.status, before = 200, len(hook.requests)
            async with serving(app):
                await eventually(lambda: len(hook.requests) > before)
            assert (await app.queues["alerts"].counts())["dead"] == 0


async def test_while_nothing_happens_it_is_judged_less_often(valkey: Server) -> None:
    async with watching(valkey.url, declare) as watch:
        evaluator = await watch.app.evaluator()
        assert await evaluator.run_once() == 30
        watch.clock.advance("30s")
        while await evaluator.run_once() != QUIET_S:
            watch.clock.advance("30s")
        watch.clock.advance("2m")
        assert await evaluator.run_once() == QUIET_S - 120
        watch.clock.advance("2m")
        await watch.app.queues["mail"].tasks["mail.work"].enqueue()
        assert await evaluator.run_once() == 30


async def test_an_idle_worker_with_alerts_sends_no_more_than_two_commands_a_second(
    valkey: Server,
) -> None:
    """Its timers are those of any worker; beside them, an evaluation of three queues."""
    app = Faena("shop", valkey.url, alerts=Alerts())
    declare(app, "mail", "print", "sms")
    async with harness(app, url=valkey.url) as tested:
        evaluator = await app.evaluator()
        while (wait_s := await evaluator.run_once()) != QUIET_S:
            assert wait_s == 30
            tested.clock.advance("30s")
        tested.clock.advance("4m")
        seen = await commands(valkey, evaluator.run_once())
        tested.clock.advance("1s")
        assert await evaluator.run_once() == QUIET_S - 1
    paces = sum(1 / pace for kind, pace in ONCE.items() if kind != "overview")
    assert paces + sum(SHARDS / pace for pace in EACH.values()) + seen / QUIET_S <= 2


async def commands(server: Server, doing: Any) -> int:
    """How many commands clients send meanwhile, without what scripts call."""
    seen: list[str] = []
    is_watching = threading.Event()

    def watch() -> None:
        with server.client() as client, client.monitor() as monitor:
            is_watching.set()
            for told in monitor.listen():
                if told["command"] == "ECHO over":
                    return
                if told["client_type"] != "lua":
                    seen.append(told["command"])

    task = asyncio.create_task(asyncio.to_thread(watch))
    await asyncio.to_thread(is_watching.wait)
    await doing
    with server.client() as client:
        client.echo("over")
    await task
    return len([one for one in seen if not one.startswith(("CLIENT SETINFO", "HELLO", "ECHO"))])


async def test_a_silence_that_is_over_before_it_is_told_was_one(
    valkey: Server, namespace: str
) -> None:
    """As with a broker that answers slowly."""
    instants = itertools.count(1_700_000_000_000_000, 2_000_000)
    app = Faena("shop", valkey.url, namespace=namespace, clock=lambda: next(instants))
    async with app:
        view = await app.silence("depth", lasting="1s", reason="import", by="ana")
        assert (view.rule, view.subject, view.reason, view.by) == ("depth", None, "import", "ana")
        assert view.until - view.since == 1_000_000
        await (await app.runtime()).engine.command("DEL", SHARD, "alert_silences")
        await (await app.runtime()).engine.command("DEL", SHARD, "events")


async def test_without_alerts_nothing_is_watched_and_a_channel_cannot_be_tried(
    app: Faena,
) -> None:
    declare(app)
    with pytest.raises(ConfigError, match=r"must have alerts=Alerts"):
        await app.test_channel("log")
    with pytest.raises(ConfigError, match=r"must have alerts=Alerts"):
        await app.evaluator()
    view = await app.alerts()
    assert (view.firing, view.history) == ((), ())
    assert view.to_dict()["silenced"] == []
