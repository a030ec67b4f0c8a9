"""A change of shards that the broker has lost with its data: the queue goes on without it."""

from __future__ import annotations

import msgspec
import pytest

from faena import Faena, Queue, Retain, Task
from faena.sharding.lost_change import end_lost_change
from faena.sharding.routing_table import ANNOUNCED, Change, Table
from tests._support.eventually import eventually
from tests._support.working import Working

ACME = "@acme"


@pytest.fixture
def ran() -> list[int]:
    return []


@pytest.fixture
def mail(app: Faena, ran: list[int]) -> Queue:
    queue = app.queue("mail", order="tenant", shards=2, retain=Retain(completed_count=0))

    @queue.task
    async def send(number: int) -> None:
        ran.append(number)

    return queue


def send(queue: Queue) -> Task[int, None]:
    return queue.tasks["send"]


async def announce_lost(app: Faena, change: Change) -> Table:
    """As a program does whose change was lost with the broker's data right after it had begun, and
    whose table was written again by another program: shards are told, and nothing is published."""
    router = (await app.runtime()).routers.of("mail")
    table = await router.settled(30)
    await router.relocation._announce(
        msgspec.structs.replace(table, phase=ANNOUNCED, change=change)
    )
    assert await router.look() == table
    return table


@pytest.mark.parametrize("change", [Change(own=ACME), Change(shards=5)], ids=["own", "more"])
async def test_a_queue_goes_on_after_its_change_was_lost(
    app: Faena, mail: Queue, ran: list[int], working: Working, change: Change
) -> None:
    for number in range(6):
        await send(mail).enqueue(number, tenant="acme")
        await send(mail).enqueue(number + 10, tenant=f"t{number}")
    table = await announce_lost(app, change)
    await send(mail).enqueue(6, tenant="acme")
    after = await (await app.runtime()).routers.of("mail").look()
    assert after == msgspec.structs.replace(table, epoch=table.epoch + 1, moved_at_us=0)
    async with working():
        await eventually(lambda: len(ran) == 13)
        await mail.reshard(5)
        await mail.tenant("acme").dedicate()
        for number in range(6):
            await send(mail).enqueue(number + 20, tenant=f"t{number}")
        await send(mail).enqueue(7, tenant="acme")
        await eventually(lambda: len(ran) == 20)
    assert [one for one in ran if one < 10] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert sorted(one for one in ran if one >= 10) == [*range(10, 16), *range(20, 26)]


async def test_a_change_that_another_program_works_on_is_not_taken_for_a_lost_one(
    app: Faena, mail: Queue
) -> None:
    await send(mail).enqueue(1, tenant="acme")
    table = await announce_lost(app, Change(own=ACME))
    runtime = await app.runtime()
    await runtime.engine.command("SET", "mail", "relocator", "another", "PX", 600_000)
    router = runtime.routers.of("mail")
    await end_lost_change(runtime.engine, "mail", router.relocation)
    assert await router.look() == table
    await runtime.engine.command("DEL", "mail", "relocator")
    await mail.tenant("acme").dedicate()
