"""Redrives that nobody watches: workers carry them on, whoever of them dies."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from faena.deadletter.redrive import Redrives
from faena.deadletter.redrive_driver import Driver
from faena.deadletter.redrive_takeover import RedriveTakeover
from faena.engine.calls.lock import Lock
from faena.errors import JobNotFound
from tests._support.command import Service
from tests._support.dead_jobs_app import app, fill
from tests._support.eventually import eventually
from tests._support.valkey import Server

TARGET = "tests._support.dead_jobs_app:app"
NUMBER, RATE = 200, 40


async def state(redrive: str) -> tuple[str, int]:
    view = await app.dead_letters.redrive_state("mail", redrive)
    return view.state, view.moved


async def instants(number: int) -> list[int]:
    """When the new jobs were made."""
    found: list[int] = []
    async with aclosing(app.events("mail", since="start", kinds="retried_as_new")) as events:
        async for event in events:
            found.append(event.at)
            if len(found) == number:
                break
    return sorted(found)


async def test_another_worker_carries_on_when_the_one_that_drives_is_killed(
    server: Server, tmp_path: Path
) -> None:
    with app.override(url=server.url):
        async with app:
            await app.queues["mail"].configure(events_kept=100_000)
            dead = await fill((await app.runtime()).engine, NUMBER)
            worker = Service("worker", TARGET, log=tmp_path / "log", FAENA_URL=server.url)
            with worker:
                redrive = await app.dead_letters.start_redrive("mail", rate=f"{RATE}/s", canary=5)

                async def is_at_it() -> bool:
                    return (await state(redrive))[1] > 40

                await eventually(is_at_it)
                os.kill(worker.children()[0], signal.SIGKILL)
                assert (await state(redrive))[1] < NUMBER

                async def is_done() -> bool:
                    return await state(redrive) == ("done", NUMBER)

                await eventually(is_done)
                await eventually(lambda: has_completed(NUMBER))  # lease and sweep
            made = Counter([view.retry_of for view in await every("completed")])
            assert made == Counter(dead)
            at = await instants(NUMBER)
            for first in at:
                assert sum(first <= one < first + 1_000_000 for one in at) <= RATE + 10


async def has_completed(number: int) -> bool:
    return (await app.queues["mail"].counts())["completed"] == number


async def every(state: str) -> list[Any]:
    page = await app.queues["mail"].jobs(state, limit=1000)
    return list(page.jobs)


async def test_a_redrive_is_stopped_and_goes_on_without_anybody_who_watches(server: Server) -> None:
    with app.override(url=server.url):
        async with app:
            await fill((await app.runtime()).engine, 60)
            desk = app.dead_letters
            takeover = RedriveTakeover(Redrives(app._desk_queues), ["mail"], soon_s=0.05)
            carrying = asyncio.create_task(takeover.run())
            redrive = await desk.start_redrive("mail", rate="20/s")
            takeover.notify("mail", redrive)

            async def has_begun() -> bool:
                return (await state(redrive))[1] > 0

            await eventually(has_begun)
            assert (await desk.stop_redrive("mail", redrive)).state == "stopped"
            view = await desk.resume_redrive("mail", redrive, watch=False)
            assert view.state == "running"
            takeover.notify("mail", redrive)

            async def is_done() -> bool:
                return await state(redrive) == ("done", 60)

            await eventually(is_done)
            carrying.cancel()
            await asyncio.wait({carrying})
            with pytest.raises(JobNotFound, match="no redrive other"):
                await desk.redrive_state("mail", "other")


async def test_one_drives_at_a_time_and_one_that_was_replaced_lets_go(server: Server) -> None:
    with app.override(url=server.url):
        async with app:
            engine = (await app.runtime()).engine
            first, second = (
                Lock(engine, "mail", "redriver:r", owner=name, lease_s=60, every_s=1)
                for name in ("a", "b")
            )
            assert await first.take()
            assert await first.take()
            assert not await second.take()
            assert await second.take(by_force=True)
            assert not await first.take()
            await first.drop()
            assert not await first.take()
            await second.drop()
            assert await first.take()


async def test_who_watches_sees_what_a_worker_does(server: Server) -> None:
    with app.override(url=server.url):
        async with app:
            await fill((await app.runtime()).engine, 30)
            redrives = Redrives(app._desk_queues, lease_s=60)
            redrive = await app.dead_letters.start_redrive("mail", rate="20/s")
            driving = asyncio.create_task(redrives.carry_on("mail", redrive))

            async def has_begun() -> bool:
                return (await state(redrive))[1] > 0

            await eventually(has_begun)
            assert await redrives.carry_on("mail", redrive) is None
            seen: list[int] = []
            view = await app.dead_letters.watch_redrive(
                "mail", redrive, report=lambda one: seen.append(one.moved)
            )
            assert (view.state, view.moved) == ("done", 30)
            assert seen == sorted(seen)
            await driving


@pytest.mark.parametrize("command", [("dlq", "redrive"), ("retry-failed",)])
async def test_ctrl_c_says_that_workers_carry_on_and_how_to_stop_them(
    command: tuple[str, ...], server: Server, tmp_path: Path
) -> None:
    with app.override(url=server.url):
        async with app:
            await fill((await app.runtime()).engine, 30)
            words = [*command, TARGET, "mail", "--rate", "1/s"]
            with Service(*words, log=tmp_path / "log", FAENA_URL=server.url) as service:
                await eventually(_has_begun)
                service.send(signal.SIGINT)
                code, _ = await service.ended()
            (view,) = await app.dead_letters.redrives("mail")
            assert (code, view.state) == (130, "running")
            assert service.log().strip() == (
                f"faena: interrupted; workers of mail continue redrive {view.id}: "
                f"`faena dlq redrive mail --stop {view.id}` stops it"
            )


async def _has_begun() -> bool:
    return any(view.moved for view in await app.dead_letters.redrives("mail"))


async def test_who_takes_a_redrive_over_waits_until_the_rate_allows_more(server: Server) -> None:
    with app.override(url=server.url):
        async with app:
            await fill((await app.runtime()).engine, 3)
            redrive = await app.dead_letters.start_redrive("mail", rate="1/h")
            first = asyncio.create_task(Redrives(app._desk_queues).carry_on("mail", redrive))

            async def has_begun() -> bool:
                return (await app.dead_letters.redrive_state("mail", redrive)).moved == 1

            await eventually(has_begun)
            first.cancel()
            await asyncio.wait({first})
            second = Driver(app._desk_queues, "mail", redrive, None)
            await second.check()
            assert second._free_at - time.monotonic() > 1_800
