"""Each class of alerts fires, is told once, is resolved, and reaches a mailbox and a webhook."""

from __future__ import annotations

from typing import Any

import pytest

from faena import (
    Breaker,
    Budget,
    DeadLetters,
    Discard,
    Faena,
    Limit,
    Price,
    Retry,
    Rule,
    Thresholds,
)
from tests._support.alert_watch import Watch, watching
from tests._support.valkey import Server

OFF = (None, None)


def plain(app: Faena, **options: Any) -> Any:
    queue = app.queue("mail", **options)

    @queue.task(name="work")
    async def work(number: int) -> None:
        if number < 0:
            raise ValueError(number)
        if number == 0:
            raise Discard("no")

    return work


async def check_told(watch: Watch, *told: str) -> None:
    """It is told now, and not again."""
    assert await watch.judge() == list(told)
    assert await watch.judge() == []
    assert len(watch.mail.mailbox) == len(watch.hook.requests)
    rule = told[0].partition(" ")[0]
    assert rule in watch.subjects()[-1]


async def test_depth_of_a_queue_with_bounds_of_its_own(valkey: Server) -> None:
    def declare(app: Faena) -> None:
        plain(app, alerts=Thresholds(depth=(5, 10), wait=OFF))

    async with watching(valkey.url, declare) as watch:
        work = watch.app.queues["mail"].tasks["work"]
        await work.enqueue_many([1] * 5)
        await check_told(watch, "depth mail warning firing")
        await work.enqueue_many([1] * 5)
        await check_told(watch, "depth mail critical escalated")
        await watch.tested.drain("mail")
        await check_told(watch, "depth mail critical resolved")


async def test_the_seed_of_zaphub_depth_above_a_thousand_for_five_minutes(valkey: Server) -> None:
    rules = {"depth": None, "wait": None, "silent": None}
    async with watching(valkey.url, plain, options={"rules": rules}) as watch:
        work = watch.app.queues["mail"].tasks["work"]
        await work.enqueue_many([1] * 600)
        await work.enqueue_many([1] * 400, delay="1h")
        assert await watch.judge() == []
        (pending,) = (await watch.app.alerts()).pending
        assert pending.rule == "backlog"
        assert await watch.judge("4m") == []
        assert await watch.judge("1m") == ["backlog mail warning firing"]
        await watch.app.queues["mail"].drain()
        await check_told(watch, "backlog mail warning resolved")


async def test_wait_of_the_first_job_and_silence_of_workers(valkey: Server) -> None:
    async with watching(valkey.url, plain) as watch:
        await watch.app.queues["mail"].tasks["work"].enqueue(1)
        assert await watch.judge("31s") == ["wait mail warning firing"]
        told = await watch.judge("100s")
        assert sorted(told) == ["silent mail warning firing", "wait mail critical escalated"]
        assert await watch.judge("5m") == ["silent mail critical escalated"]
        await watch.tested.drain("mail")
        told = await watch.judge()
        assert sorted(told) == ["silent mail critical resolved", "wait mail critical resolved"]


async def test_a_held_queue_is_not_silent(valkey: Server) -> None:
    def declare(app: Faena) -> None:
        plain(app, alerts=Thresholds(wait=OFF))

    async with watching(valkey.url, declare) as watch:
        await watch.app.queues["mail"].tasks["work"].enqueue(1)
        await watch.app.queues["mail"].pause()
        assert await watch.judge("1h") == []


@pytest.mark.parametrize("why", ["max_running", "tenant_max_running", "tenant_held"])
async def test_a_queue_whose_jobs_must_wait_for_another_is_not_silent(
    valkey: Server, why: str
) -> None:
    """A long job, or a tenant that an operator holds: workers with room rightly claim nothing."""

    def declare(app: Faena) -> None:
        bounds = {why: 1} if why != "tenant_held" else {}
        alerts = Thresholds(wait=OFF, stalled=OFF)
        plain(app, lease="1h", alerts=alerts, **bounds)

    async with watching(valkey.url, declare) as watch:
        mail = watch.app.queues["mail"]
        await mail.tasks["work"].enqueue_many([1] * 2, tenant="acme")
        if why == "tenant_held":
            await mail.tenant("acme").hold(reason="abuse")
        for _ in range(8):
            await sweep(watch, 5)
            assert await watch.judge("1m") == []
        if why == "tenant_held":
            await mail.tenant("acme").release()
            assert await watch.judge("1m") == ["silent mail critical firing"]


async def sweep(watch: Watch, want: int) -> None:
    """A worker with ten slots is there, and takes what it is given."""
    from faena.engine.scripts import Turn

    engine = (await watch.app.runtime()).engine
    about = "1 0.1.0 library slots=10 host"
    lasting = {"is_sweep": True, "next_sweep_us": 600_000_000, "about": about}
    await engine.exchange("mail", "w", "w", Turn(f"call{watch.clock()}", want, **lasting))


async def test_error_rate_of_the_last_five_minutes(valkey: Server) -> None:
    def declare(app: Faena) -> None:
        plain(app, retry=Retry.fixed("1s", attempts=1))

    async with watching(valkey.url, declare, dead_letters=DeadLetters(alert_new=None)) as watch:
        work = watch.app.queues["mail"].tasks["work"]
        assert await watch.judge() == []
        watch.clock.advance("1m")
        await work.enqueue_many([1] * 9 + [-1])
        await watch.tested.drain("mail")
        await check_told(watch, "error_rate mail warning firing")
        await work.enqueue_many([-1] * 4)
        await watch.tested.drain("mail")
        await check_told(watch, "error_rate mail critical escalated")
        assert await watch.judge("6m") == ["error_rate mail critical resolved"]


async def test_few_attempts_say_nothing(valkey: Server) -> None:
    def declare(app: Faena) -> None:
        plain(app, retry=Retry.fixed("1s", attempts=1))

    async with watching(valkey.url, declare) as watch:
        await watch.judge()
        await watch.app.queues["mail"].tasks["work"].enqueue_many([-1] * 9)
        await watch.tested.drain("mail")
        assert await watch.judge("1m") == []


async def test_jobs_that_lost_their_worker_within_an_hour(valkey: Server) -> None:
    def declare(app: Faena) -> None:
        plain(
            app,
            lease="1s",
            max_deliveries=100,
            alerts=Thresholds(stalled=(2, 4), wait=OFF, silent=OFF),
        )

    async with watching(valkey.url, declare) as watch:
        await watch.judge("1m")
        await lose(watch, 2)
        assert await watch.judge("1m") == ["stalled mail warning firing"]
        await lose(watch, 2)
        assert await watch.judge("1m") == ["stalled mail critical escalated"]
        await watch.tested.drain("mail")
        for _ in range(60):
            told = await watch.judge("1m")
            if told:
                break
        assert told[0].startswith("stalled mail")


async def lose(watch: Watch, number: int) -> None:
    """Jobs are claimed by somebody who says nothing more, and rescued."""
    from faena.engine.scripts import Turn

    engine = (await watch.app.runtime()).engine
    await watch.app.queues["mail"].tasks["work"].enqueue_many([1] * number)
    await engine.exchange("mail", "gone", "gone", Turn(f"call{watch.clock()}", 100))
    watch.clock.advance("2s")
    await engine.exchange("mail", "heir", "heir", Turn(f"call{watch.clock()}", 0, is_sweep=True))


async def test_dead_letters_by_the_bounds_of_the_desk(valkey: Server) -> None:
    def declare(app: Faena) -> None:
        plain(app, retry=Retry.fixed("1s", attempts=1), alerts=Thresholds(error_rate=OFF))

    desk = DeadLetters(alert_new=2, alert_waiting=4, alert_age="1d", auto_retry=False)
    async with watching(valkey.url, declare, dead_letters=desk) as watch:
        work = watch.app.queues["mail"].tasks["work"]
        await work.enqueue_many([0] * 3)
        await watch.tested.drain("mail")
        await check_told(watch, "dead_surge shop warning firing")
        await work.enqueue_many([0] * 2)
        await watch.tested.drain("mail")
        await check_told(watch, "dead_many shop warning firing")
        told = await watch.judge("25h")
        assert sorted(told) == ["dead_old shop warning firing", "dead_surge shop warning resolved"]
        await watch.app.queues["mail"].clean("dead", age="0s")
        told = await watch.judge()
        assert sorted(told) == ["dead_many shop warning resolved", "dead_old shop warning resolved"]


async def test_memory_of_the_broker(server: Server) -> None:
    async with watching(server.url, plain) as watch:
        with server.client() as client:
            for number in range(64):  # what else is there changes little
                client.set(f"ballast{number}", b"x" * 2**20)
            used = client.info("memory")["used_memory"]
            client.config_set("maxmemory", int(used / 0.85))
            try:
                (told,) = await watch.judge()
                assert told.startswith("memory ")
                assert told.endswith(" warning firing")
                client.config_set("maxmemory", 10**10)
                (told,) = await watch.judge()
                assert told.endswith(" warning resolved")
            finally:
                client.config_set("maxmemory", 0)


async def test_schedules_that_did_not_fire(valkey: Server) -> None:
    def declare(app: Faena) -> None:
        app.schedule("often", plain(app, alerts=Thresholds(wait=OFF)), 1, every="1h")

    async with watching(valkey.url, declare) as watch:
        await watch.tested.drain("mail")
        await watch.judge()
        watch.clock.advance("3h")
        await watch.judge("1m")
        await watch.tested.drain("mail")
        assert await watch.judge("1m") == ["missed_schedules mail warning firing"]
        assert await watch.judge("2m") == []


async def test_breakers_and_panics(valkey: Server) -> None:
    def declare(app: Faena) -> None:
        plain(app)
        app.upstream("afip", breaker=Breaker(open="10m"))

    async with watching(valkey.url, declare) as watch:
        afip = watch.app.upstreams["afip"]
        await watch.tested.open_breaker(afip)
        await check_told(watch, "breaker afip warning firing")
        await afip.panic(reason="they asked for it", by="ana")
        await check_told(watch, "breaker afip critical escalated")
        await afip.end_panic(by="ana")
        await check_told(watch, "breaker afip warning eased")


async def test_budgets_by_their_own_thresholds(valkey: Server) -> None:
    def declare(app: Faena) -> None:
        plain(app)
        budget = Budget("50 USD", thresholds=[50, 80, 100])
        app.upstream("openai", prices=[Price("call", "1 USD")], budgets=[budget])

    async with watching(valkey.url, declare) as watch:
        openai = watch.app.upstreams["openai"]
        await watch.tested.spend(openai, "30 USD")
        await check_told(watch, "budget openai day 50% warning firing")
        await watch.tested.spend(openai, "20 USD")
        assert await watch.judge() == [
            "budget openai day 100% critical firing",
            "budget openai day 80% warning firing",
        ]
        told = await watch.judge("1d")
        assert sorted(told) == [
            "budget openai day 100% critical resolved",
            "budget openai day 50% warning resolved",
            "budget openai day 80% warning resolved",
        ]


async def test_utilization_of_slots(valkey: Server) -> None:
    from faena.engine.scripts import Turn

    def declare(app: Faena) -> None:
        plain(app, alerts=Thresholds(utilization=(70, 90), wait=OFF))

    at_once = {"utilization": Rule()}
    async with watching(valkey.url, declare, options={"rules": at_once}) as watch:
        engine = (await watch.app.runtime()).engine
        await watch.app.queues["mail"].tasks["work"].enqueue_many([1] * 4)
        about = "1 0.1.0 library slots=5 host"
        turn = Turn("call0001", 4, is_sweep=True, next_sweep_us=600_000_000, about=about)
        await engine.exchange("mail", "busy", "busy", turn)
        assert await watch.judge("10s") == ["utilization mail warning firing"]


async def test_a_queue_with_a_limit_of_hours_is_not_silent(valkey: Server) -> None:
    def declare(app: Faena) -> None:
        plain(app, limits=[Limit("1/h")], alerts=Thresholds(wait=OFF))

    from faena.engine.scripts import Turn

    async with watching(valkey.url, declare) as watch:
        engine = (await watch.app.runtime()).engine
        await watch.app.queues["mail"].tasks["work"].enqueue_many([1] * 2)
        about = "1 0.1.0 library slots=5 host"
        turn = Turn("call0001", 0, is_sweep=True, next_sweep_us=10**11, about=about)
        await engine.exchange("mail", "idle", "idle", turn)
        for _ in range(8):
            assert await watch.judge("1m") == []


@pytest.mark.parametrize("rule", ["depth", "wait", "silent"])
async def test_a_rule_that_is_off_says_nothing(valkey: Server, rule: str) -> None:
    rules = {name: None for name in ("depth", "wait", "silent") if name == rule}
    async with watching(valkey.url, plain, options={"rules": rules}) as watch:
        await watch.app.queues["mail"].tasks["work"].enqueue_many([1] * 100)
        told = await watch.judge("3m")
        assert not [one for one in told if one.startswith(f"{rule} ")]
        assert told
