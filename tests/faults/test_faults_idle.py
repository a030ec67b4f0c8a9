"""A worker without work: nearly silent, and awake at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from faena.engine.script_library import load
from faena.sharding.routing_table import Shard
from tests._support.eventually import eventually
from tests._support.fault_app import Plan, QueuePlan, Work, enqueue, open_app
from tests._support.sharded_queue import MAIN, SHARD, ShardedQueue
from tests._support.valkey import Server
from tests._support.worker_processes import WorkerProcesses

SETTLED_S = 5.0  # what was measured of the last jobs is sent a second later
WATCHED_S = 8.0
SHARDS = 3
ONCE = {"BZPOPMIN": 2.0, "PING": 5.0, "due": 5.0, "HGETALL": 4.0, "overview": 4.0}
"""Seconds between two commands of a kind. The last two ask where a queue lives, one queue after the
other, the very last in a test of its own."""
EACH = {"exchange": 5.0, "desk_stats": 60.0, "HGETALL": 60.0, "redrives": 48.0}
"""The same, of each shard. The dead-letter desk asks where a queue lives as well."""


async def test_an_idle_worker_sends_no_more_than_two_commands_a_second(
    server: Server, tmp_path: Path
) -> None:
    queues = {name: QueuePlan(lease="30s") for name in ("q", "second", "third")}
    plan = Plan(url=server.url, ledger=str(tmp_path / "ledger"), queues=queues)
    with WorkerProcesses(plan) as processes:
        async with open_app(plan, processes.ledger) as app:
            processes.start()
            for queue in queues:
                await enqueue(app, [Work()], queue=queue)
            await eventually(lambda: len(processes.ledger.jobs("finish")) == 3)
        await asyncio.sleep(SETTLED_S)
        check(*await _commands(server, WATCHED_S))


async def test_a_worker_that_looks_for_shards_is_no_louder(server: Server) -> None:
    sharded = ShardedQueue(server, "estate", MAIN, SHARD)

    async def ask_the_server() -> Sequence[Shard]:
        await (await sharded.app.runtime()).engine.wire.run(
            load("overview"), ["estate:{q}:"], [""], patience_s=60
        )
        return await ShardedQueue.ask(sharded)

    sharded.ask = ask_the_server
    async with sharded.app, sharded.working():
        await asyncio.sleep(SETTLED_S)
        looks = sharded.looks
        seen = await _commands(server, WATCHED_S)
        assert sharded.looks > looks
    check(*seen)


def test_the_paces_come_to_two_commands_a_second() -> None:
    once = sum(1 / pace for kind, pace in ONCE.items() if kind != "overview")
    assert once + sum(SHARDS / pace for pace in EACH.values()) <= 2


def check(seen: list[str], seconds: float) -> None:
    """Each timer keeps its pace, and may fall due as soon as the watch begins."""
    most = Counter({kind: int(seconds // pace) + 1 for kind, pace in ONCE.items()})
    most.update({kind: SHARDS * (int(seconds // pace) + 1) for kind, pace in EACH.items()})
    found = Counter(_kind(command) for command in seen)
    assert found <= most, seen


def _kind(command: str) -> str:
    verb, name, *_ = (*command.split(maxsplit=2), "")
    return name.split("_", 2)[2] if verb == "FCALL" else verb


async def _commands(server: Server, seconds: float) -> tuple[list[str], float]:
    """What clients send meanwhile, without what scripts call, and how long that was."""
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
    begun = time.monotonic()
    await asyncio.sleep(seconds)
    with server.client() as client:
        client.echo("over")
    await watching
    own = ("CLIENT SETINFO", "HELLO")
    return [one for one in seen if not one.startswith(own)], time.monotonic() - begun
