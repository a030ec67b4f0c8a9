"""A worker without work: nearly silent, and awake at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

from faena.engine.loader import load
from faena.homes import Home
from tests._support.crew import Crew
from tests._support.estate import MAIN, SHARD, Estate
from tests._support.eventually import eventually
from tests._support.shop import Plan, QueuePlan, Work, enqueue, open_shop
from tests._support.valkey import Server

SETTLED_S = 0.5
WATCHED_S = 8.0
TIMERS = 5  # each may fall due once more than its pace says, whenever the watch begins


async def test_an_idle_worker_sends_no_more_than_two_commands_a_second(
    server: Server, tmp_path: Path
) -> None:
    queues = {name: QueuePlan(lease="30s") for name in ("q", "second", "third")}
    plan = Plan(url=server.url, ledger=str(tmp_path / "ledger"), queues=queues)
    with Crew(plan) as crew:
        async with open_shop(plan, crew.ledger) as app:
            crew.hire()
            for queue in queues:
                await enqueue(app, [Work()], queue=queue)
            await eventually(lambda: len(crew.ledger.jobs("finish")) == 3)
        await asyncio.sleep(SETTLED_S)
        seen = await _commands(server, WATCHED_S)
    assert len(seen) <= 2 * WATCHED_S + TIMERS, seen


async def test_a_worker_that_looks_for_homes_is_no_louder(server: Server) -> None:
    estate = Estate(server, "estate", MAIN, SHARD)

    async def ask_the_server() -> Sequence[Home]:
        await (await estate.app.runtime()).engine.wire.run(
            load("overview"), ["estate:{q}:"], [""], patience_s=5
        )
        return await Estate.ask(estate)

    estate.ask = ask_the_server
    async with estate.app, estate.working():
        await asyncio.sleep(SETTLED_S)
        looks = estate.looks
        seen = await _commands(server, WATCHED_S)
        assert estate.looks > looks
    assert len(seen) <= 2 * WATCHED_S + TIMERS, seen


async def _commands(server: Server, seconds: float) -> list[str]:
    """What clients send meanwhile, without what scripts call."""
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

    watching = asyncio.create_task(asyncio.to_thread(watch))
    await asyncio.to_thread(is_watching.wait)
    await asyncio.sleep(seconds)
    with server.client() as client:
        client.echo("over")
    await watching
    return [command for command in seen if not command.startswith(("CLIENT SETINFO", "HELLO"))]
