"""The dead-letter desk with real workers: canaries, shards, automatic retries, alerts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from faena import DeadLetters, Faena, RedriveView, Retry
from faena.deadletter import queues as desk_queues
from faena.deadletter.upkeep import Upkeep
from faena.errors import ConfigError, InvalidTransition, JobNotFound, StoreUnavailable
from faena.sharding.routing_table import Change
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.valkey import Server


class Shop:
    """An app whose handler fails as long as it is told to."""

    def __init__(self, url: str, namespace: str, **options: Any) -> None:
        self.app = Faena("shop", url, namespace=namespace, dead_letters=options.pop("dead", None))
        self.mail = self.app.queue("mail", retry=Retry.never(), **options)
        self.is_down = True
        self.bad: set[int] = set()
        self.begun: list[int] = []
        self.ran: list[int] = []
        self.gate = asyncio.Event()
        self.gate.set()

        @self.mail.task
        async def send(number: int) -> None:
            self.begun.append(number)
            await self.gate.wait()
            if self.is_down or number in self.bad:
                raise ConnectionRefusedError(f"cannot reach {number}")
            self.ran.append(number)

        self.send = send

    @property
    def desk(self) -> Any:
        return self.app.dead_letters

    async def bury(self, *numbers: int, tenants: int = 1) -> list[str]:
        """Dead jobs, one after the other."""
        ids: list[str] = []
        for tenant in range(tenants):
            mine = [number for number in numbers if number % tenants == tenant]
            receipts = await self.send.enqueue_many(mine, tenant=f"t{tenant}")
            ids += [receipt.id for receipt in receipts]
        await self.app.run_worker(until_empty=True)
        return ids

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        running = asyncio.create_task(self.app.run_worker())
        try:
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def shop(valkey: Server, namespace: str, **options: Any) -> AsyncIterator[Shop]:
    made = Shop(valkey.url, namespace, **options)
    try:
        yield made
    finally:
        await made.mail.obliterate(force=True)
        await made.app.close()


async def test_a_redrive_waits_for_its_canary_and_then_goes_on(
    valkey: Server, namespace: str
) -> None:
    async with shop(valkey, namespace) as one:
        await one.bury(*range(20))
        one.is_down = False
        states: list[str] = []

        def report(view: RedriveView) -> None:
            states.append(view.state)

        async with one.working():
            view = await one.desk.redrive("mail", canary=3, rate="1000/s", report=report)
        assert (view.state, view.moved, view.died) == ("done", 20, 0)
        assert states[0] == "canary"
        assert sorted(one.ran)[:3] == [0, 1, 2]


async def test_a_canary_that_dies_again_ends_the_redrive_and_a_resume_sends_others(
    valkey: Server, namespace: str
) -> None:
    async with shop(valkey, namespace) as one:
        await one.bury(*range(10))
        one.is_down, one.bad = False, {1, 4}
        async with one.working():
            view = await one.desk.redrive("mail", canary=3)
            assert (view.state, view.moved, view.died) == ("failed", 3, 1)
            stats = await one.desk.stats()
            assert stats.by_status["pending"] == 8  # seven, and the one that died again
            view = await one.desk.resume_redrive("mail", view.id)
            assert (view.state, view.moved, view.died) == ("failed", 6, 1)  # the rest stays
            view = await one.desk.resume_redrive("mail", view.id)
            assert (view.state, view.moved) == ("done", 10)
        seen = await one.desk.redrives("mail")
        assert [(each.id, each.state) for each in seen] == [(view.id, "done")]


async def test_a_redrive_whose_canaries_were_well_goes_on_without_others(
    valkey: Server, namespace: str
) -> None:
    async with shop(valkey, namespace, shards=2) as one:
        await one.bury(*range(20), tenants=4)
        one.is_down = False
        seen: list[RedriveView] = []
        async with one.working():
            driving = asyncio.create_task(
                one.desk.redrive("mail", canary=2, rate="10/s", report=seen.append)
            )
            await eventually(lambda: seen and seen[-1].state == "running")
            await one.desk.stop_redrive("mail", seen[0].id)
            assert (await driving).state == "stopped"
        # nobody works any more: canaries would never complete
        view = await one.desk.resume_redrive("mail", seen[0].id)
        assert (view.state, view.moved) == ("done", 20)


async def test_a_redrive_that_somebody_stops_ends_for_its_driver_too(
    valkey: Server, namespace: str
) -> None:
    async with shop(valkey, namespace) as one:
        await one.bury(*range(10))
        seen: list[RedriveView] = []
        driving = asyncio.create_task(one.desk.redrive("mail", rate="1/s", report=seen.append))
        await eventually(lambda: seen and seen[-1].moved)
        stopped = await one.desk.stop_redrive("mail", seen[0].id)
        view = await driving
        assert (stopped.state, view.state) == ("stopped", "stopped")
        assert 1 <= view.moved < 10
        with pytest.raises(JobNotFound, match="no redrive never in queue mail"):
            await one.desk.stop_redrive("mail", "never")


async def test_the_rate_of_a_redrive_is_that_of_all_shards_together(
    valkey: Server, namespace: str
) -> None:
    async with shop(valkey, namespace, shards=4) as one:
        await one.bury(*range(12), tenants=12)
        view = await one.desk.redrive("mail", rate="5/s")
        assert (view.state, view.moved) == ("done", 12)
        page = await one.desk.list(status="retried")
        instants = [letter.resolution.at for letter in page.items]
        assert max(instants) - min(instants) >= (12 - 5) * 1_000_000 / 5  # five may go at once


@pytest.mark.parametrize(("canary", "state"), [(0, "done"), (1, "failed")])
async def test_a_redrive_that_is_over_does_not_wait_for_its_rate(
    valkey: Server, namespace: str, canary: int, state: str
) -> None:
    async with shop(valkey, namespace) as one:
        await one.bury(1)
        async with one.working(), asyncio.timeout(60):
            view = await one.desk.redrive("mail", rate="1/h", canary=canary)
        assert (view.state, view.moved) == (state, 1)


async def test_a_redrive_is_seen_and_stopped_while_a_tenant_moves(
    valkey: Server, namespace: str
) -> None:
    async with shop(valkey, namespace, order="tenant") as one:
        await one.bury(*range(10))
        seen: list[RedriveView] = []
        driving = asyncio.create_task(one.desk.redrive("mail", rate="1/s", report=seen.append))
        await eventually(lambda: seen)
        await one.send.enqueue(99, tenant="slow")
        one.gate.clear()
        one.is_down = False
        async with one.working():
            await eventually(lambda: 99 in one.begun)
            await one.mail.tenant("slow").dedicate(wait="100ms")
            assert (await one.mail.shards()).is_moving
            async with asyncio.timeout(60):  # a decision about jobs would wait for the move
                assert [each.id for each in await one.desk.redrives("mail")] == [seen[0].id]
                assert (await one.desk.stop_redrive("mail", seen[0].id)).state == "stopped"
            one.gate.set()
            assert (await driving).state == "stopped"


async def test_dead_jobs_wait_for_tenants_that_move(
    valkey: Server, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_queues, "_SETTLE_S", 0.0)
    async with shop(valkey, namespace, shards=2) as one:
        ids = await one.bury(*range(4), tenants=4)
        router = (await one.app.runtime()).routers.of("mail")
        grown = await router.settled(PATIENCE_S)
        assert await router.relocation.begin(Change(shards=3), grown, "ops")
        assert await router.relocation.work(until_published=True)
        with pytest.raises(StoreUnavailable, match="moving"):
            await one.desk.retry_many_as_new("mail", ids)
        assert not (await router.settled(PATIENCE_S)).phase
        assert len(await one.desk.retry_many_as_new("mail", ids)) == 4


async def test_a_queue_of_shards_and_dedicated_tenants_has_one_desk(
    valkey: Server, namespace: str
) -> None:
    async with shop(valkey, namespace, shards=3) as one:
        ids = await one.bury(*range(40), tenants=8)
        await one.mail.tenant("t3").dedicate()
        found: list[str] = []
        cursor = None
        while True:
            page = await one.desk.list(limit=7, cursor=cursor)
            found += [letter.id for letter in page.items]
            times = [letter.died_at for letter in page.items]
            assert times == sorted(times, reverse=True)
            cursor = page.cursor
            if cursor is None:
                break
        assert sorted(found) == sorted(ids)
        mine = (await one.desk.list(tenant="t3")).items
        assert [letter.tenant for letter in mine] == ["t3"] * 5
        assert (await one.desk.groups())[0].pending == 40
        got = await one.desk.get("mail", mine[0].id)
        assert msgspec.structs.replace(got, retry_at=None) == mine[0]
        one.is_down = False
        dealt = await one.desk.retry_many_as_new("mail", [mine[0].id, found[0], found[-1], "never"])
        assert [each.refused for each in dealt][-1] == "unknown"
        await one.desk.discard("mail", mine[1].id)
        view = await one.desk.redrive("mail")
        kept = len({mine[0].id, found[0], found[-1]})
        assert (view.state, view.moved) == ("done", 40 - kept - 1)
        await one.mail.tenant("t3").rejoin()
        await one.app.run_worker(until_empty=True)
        assert len(one.ran) == len(set(one.ran)) == 39
        assert (await one.desk.stats()).by_status["retried"] == 39


async def test_a_retry_while_tenants_move_is_neither_lost_nor_doubled(
    valkey: Server, namespace: str
) -> None:
    async with shop(valkey, namespace, fair=True) as one:
        ids = await one.bury(*range(60), tenants=6)
        one.is_down = False
        growing = asyncio.create_task(one.mail.reshard(3))
        for job in ids:
            await one.desk.retry_as_new("mail", job)
        await growing
        await one.app.run_worker(until_empty=True)
        assert sorted(one.ran) == list(range(60))


async def test_only_more_deaths_than_are_borne_are_told_of(valkey: Server, namespace: str) -> None:
    dead = DeadLetters(auto_retry=False, alert_new=2, alert_waiting=2)
    async with shop(valkey, namespace, dead=dead) as one:
        upkeep = Upkeep(one.app._desk_queues, dead.settled({}), ["mail"])
        await one.bury(7, 8)
        await upkeep.send_alerts()
        assert await told(one, b"dead_many") == await told(one, b"dead_surge") == 0
        await one.bury(9)
        await upkeep.send_alerts()  # unless the worker that buried it has been as quick
        assert await told(one, b"dead_many") == await told(one, b"dead_surge") == 1


async def test_workers_retry_what_may_have_passed_and_tell_of_a_surge(
    valkey: Server, namespace: str
) -> None:
    dead = DeadLetters(retry_after="1ms", most_retries=2, alert_new=2, alert_age="1ms")
    async with shop(valkey, namespace, dead=dead) as one:
        await one.bury(7, 8, 9)
        upkeep = Upkeep(one.app._desk_queues, dead.settled({}), ["mail"], every_s=0.01)
        looking = asyncio.create_task(upkeep.run())
        async with one.working():

            async def is_spent() -> bool:
                stats = await one.desk.stats()
                return stats.by_status["retried"] == 6 and stats.by_status["pending"] == 3

            await eventually(is_spent)
        assert (await one.desk.stats()).due == 0
        await eventually(lambda: told(one, b"dead_old"))  # of those that are left
        looking.cancel()
        assert await told(one, b"dead_surge") == await told(one, b"dead_old") == 1
        assert await told(one, b"dead_many") == 0


async def told(one: Shop, name: bytes) -> int:
    """How often the queue's events tell of something."""
    engine = (await one.app.runtime()).engine
    events = await engine.command("XRANGE", "mail", "events", "-", "+")
    return sum(flat[::2].count(name) for _, flat in events)


async def test_automatic_retries_can_be_switched_off_and_on_again(
    valkey: Server, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENABLE_DLQ_AUTO_RETRY", "false")
    dead = DeadLetters(retry_after="1ms")
    async with shop(valkey, namespace, dead=dead) as one:
        await one.bury(7)

        async def look() -> list[str]:
            upkeep = Upkeep(one.app._desk_queues, dead.settled(os.environ), ["mail"])
            return await upkeep.look_after("mail")

        assert await look() == []
        assert (await one.desk.stats()).due == 1
        monkeypatch.setenv("ENABLE_DLQ_AUTO_RETRY", "true")
        await eventually(look)
        assert (await one.desk.stats()).due == 0
    monkeypatch.setenv("ENABLE_DLQ_AUTO_RETRY", "perhaps")
    async with shop(valkey, namespace) as one:
        with pytest.raises(ConfigError, match="ENABLE_DLQ_AUTO_RETRY must be true or false"):
            await one.app.worker()


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"queues": "mial"}, "queue must be the name of a queue of the app"),
        ({"queues": 5}, "queue must be the name of a queue of the app"),
        ({"queues": []}, "queues must be at least one"),
        ({"cursor": 5}, "cursor must come from"),
        ({"status": "mended"}, "status must be a known one"),
        ({"tenannt": "acme"}, "did you mean 'tenant'"),
        ({"tenant": "two words"}, "tenant must be 1 to 128"),
        ({"limit": 0}, "limit must be a whole number"),
        ({"limit": 10_000}, "limit must be a whole number"),
        ({"older_than": "soon"}, "older_than must be"),
        ({"older_than": "1d", "newer_than": "1h"}, "older_than must be less than newer_than"),
        ({"older_than": "1h", "newer_than": "1h"}, "older_than must be less than newer_than"),
        ({"cursor": "nonsense"}, "cursor must come from"),
        ({"cursor": "%%%"}, "cursor must come from"),
        ({"cursor": ""}, "cursor must come from"),
    ],
)
async def test_bad_filters_are_refused(
    valkey: Server, namespace: str, wanted: dict[str, Any], words: str
) -> None:
    async with shop(valkey, namespace) as one:
        with pytest.raises(ConfigError, match=words):
            await one.desk.list(**wanted)


async def test_bad_decisions_are_refused(valkey: Server, namespace: str) -> None:
    async with shop(valkey, namespace) as one:
        (job,) = await one.bury(1)
        with pytest.raises(ConfigError, match="by must be"):
            await one.desk.retry_as_new("mail", job, by="two words")
        with pytest.raises(ConfigError, match="reason must be a UTF-8 string of at most 500"):
            await one.desk.discard("mail", job, reason="x" * 501)
        for options in ({"rate": "fast"}, {"rate": 5}, {"rate": "0/s"}):
            with pytest.raises(ConfigError, match="rate must be one or more in a window") as caught:
                await one.desk.redrive("mail", **options)
            assert (caught.value.field, caught.value.value) == ("rate", options["rate"])
        for options in ({"canary": -1}, {"failures": -1}, {"status": "retried"}):
            with pytest.raises(ConfigError, match="must be"):
                await one.desk.redrive("mail", **options)
        for queue in (None, ["mail", "mail"], one.mail):
            for call in (one.desk.redrive(queue), one.desk.retry_as_new(queue, job)):
                with pytest.raises(ConfigError, match="queue must be the name of a queue"):
                    await call
        for ids in (job, None, 5):
            with pytest.raises(ConfigError, match=r"job_ids must be a list of ids.*; write \[id\]"):
                await one.desk.retry_many_as_new("mail", ids)
        with pytest.raises(
            ConfigError, match="action must be a known one, got 'pray'; valid: auto"
        ):
            await one.desk.retry_many_as_new("mail", [job], action="pray")
        letter = await one.desk.get("mail", job)
        assert letter.status == "pending"
        await one.desk.resolve("mail", job)
        with pytest.raises(
            InvalidTransition, match=f"cannot retry dead job {job}: it is already resolved"
        ):
            await one.desk.retry_as_new("mail", job)
        with pytest.raises(JobNotFound, match="no dead job never in queue mail"):
            await one.desk.retry_as_new("mail", "never")
        one.is_down = False
        (job,) = await one.bury(2)
        with pytest.raises(InvalidTransition, match=f"discard job {job}: it is completed, not"):
            await one.desk.discard("mail", job)


async def test_two_drivers_of_one_redrive_double_nothing(valkey: Server, namespace: str) -> None:
    async with shop(valkey, namespace) as one:
        await one.bury(*range(120))
        one.is_down = False
        seen: list[RedriveView] = []
        first = asyncio.create_task(one.desk.redrive("mail", canary=4, report=seen.append))
        await eventually(lambda: seen)
        others = [
            asyncio.create_task(one.desk.resume_redrive("mail", seen[0].id)) for _ in range(2)
        ]
        async with one.working():
            views = await asyncio.gather(first, *others)
            await eventually(lambda: len(one.ran) == 120)
        assert {view.state for view in views} == {"done"}
        assert sorted(one.ran) == list(range(120))
        assert (await one.desk.redrives("mail"))[0].moved == 120
