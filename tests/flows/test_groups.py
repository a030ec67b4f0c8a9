"""Groups from end to end: callbacks are sent once, whatever became of the members."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from faena import Discard, Faena, Job, Retain, Retry
from faena.errors import (
    ArgumentError,
    ConfigError,
    InvalidTransition,
    JobNotFound,
    ResultTimeout,
)
from faena.task import Task
from tests._support.eventually import eventually
from tests.flows.conftest import Working


class Shop:
    """Members in one queue, callbacks in another."""

    def __init__(self, app: Faena) -> None:
        self.calls: list[tuple[str, dict[str, int]]] = []
        self.failing: set[int] = set()
        keep = Retain(completed_count=0)
        members = app.queue("members", retry=Retry.never(), retain=keep, concurrency=50)
        callbacks = app.queue("callbacks", retry=Retry.never(), retain=keep)
        self.member: Task[int, int] = members.task(name="member")(self._member)
        self.back: Task[str, None] = callbacks.task(name="back")(self._back)

    async def _member(self, number: int) -> int:
        if number in self.failing:
            raise Discard("no")
        return number

    async def _back(self, name: str, job: Job) -> None:
        self.calls.append((name, dict(job.group)))


@pytest.fixture
def shop(app: Faena) -> Shop:
    return Shop(app)


def both(shop: Shop) -> dict[str, Any]:
    return {"on_complete": shop.back.draft("complete"), "on_success": shop.back.draft("success")}


async def test_both_callbacks_are_sent_when_all_complete(
    app: Faena, shop: Shop, working: Working
) -> None:
    async with working(app):
        async with app.group(**both(shop)) as group:
            await group.enqueue(shop.member, 1)
            receipts = await group.enqueue_many(shop.member, range(2, 500))
        view = await group.wait("20s")
        await eventually(lambda: len(shop.calls) == 2)
    assert len(receipts) == 498
    assert (view.total, view.completed, view.dead, view.cancelled) == (499, 499, 0, 0)
    counts = {"total": 499, "completed": 499, "dead": 0, "cancelled": 0}
    assert dict(shop.calls) == {"complete": counts, "success": counts}
    assert len(shop.calls) == 2


async def test_a_failure_keeps_success_back_until_it_is_mended(
    app: Faena, shop: Shop, working: Working
) -> None:
    shop.failing = {3}
    async with working(app):
        async with app.group(**both(shop)) as group:
            receipts = await group.enqueue_many(shop.member, range(10))
        await group.wait("10s")
        await eventually(lambda: [name for name, _ in shop.calls] == ["complete"])
        assert shop.calls[0][1] == {"total": 10, "completed": 9, "dead": 1, "cancelled": 0}
        shop.failing.clear()
        await receipts[3].handle.rerun()
        await eventually(lambda: [name for name, _ in shop.calls] == ["complete", "success"])
        view = await group.view()
    assert (view.completed, view.dead) == (10, 0)


async def test_an_empty_group_calls_back_at_once(app: Faena, shop: Shop, working: Working) -> None:
    async with working(app):
        async with app.group(**both(shop)) as group:
            assert await group.enqueue_many(shop.member, []) == []
        await eventually(lambda: len(shop.calls) == 2)
        await eventually(lambda: _both_done(group))
    assert {call[1]["total"] for call in shop.calls} == {0}


async def _both_done(group: Any) -> bool:
    return (await group.view()).callbacks == {"complete": "completed", "success": "completed"}


async def test_a_group_ends_only_when_it_is_sealed(
    app: Faena, shop: Shop, working: Working
) -> None:
    group = app.group(**both(shop))
    async with working(app):
        await group.enqueue(shop.member, 1)
        await eventually(lambda: _completed(group, 1))
        with pytest.raises(ResultTimeout):
            await group.wait("50ms")
        assert shop.calls == []
        await group.seal()
        await group.seal()
        await eventually(lambda: len(shop.calls) == 2)
        await asyncio.sleep(0.1)
    assert len(shop.calls) == 2


async def _completed(group: Any, number: int) -> bool:
    return bool((await group.view()).completed == number)


async def test_a_block_that_fails_seals_nothing(app: Faena, shop: Shop) -> None:
    group = app.group(**both(shop))
    with contextlib.suppress(ZeroDivisionError):
        async with group:
            await group.enqueue(shop.member, 1)
            _ = 1 // 0
    assert (await group.view()).total is None


async def test_members_that_are_removed_or_cancelled_count_as_cancelled(
    app: Faena, shop: Shop, working: Working
) -> None:
    async with app.group(on_complete=shop.back.draft("complete")) as group:
        receipts = await group.enqueue_many(
            shop.member, [shop.member.draft(1), shop.member.draft(2, priority="high"), 3]
        )
    await receipts[0].handle.cancel()
    await app.queues["members"].drain()
    async with working(app):
        await eventually(lambda: len(shop.calls) == 1)
    assert shop.calls == [("complete", {"total": 3, "completed": 0, "dead": 0, "cancelled": 3})]


async def test_the_options_of_a_list_count_for_its_drafts(app: Faena, shop: Shop) -> None:
    group = app.group()
    receipts = await group.enqueue_many(
        shop.member, [shop.member.draft(1, priority=3), 2], tenant="acme", priority=7
    )
    await group.seal()
    views = [await one.handle.view() for one in receipts]
    assert [(view.tenant, view.priority) for view in views if view] == [("acme", 3), ("acme", 7)]
    assert (await group.view()).total == 2


async def test_what_is_no_list_of_members_is_refused(app: Faena, shop: Shop) -> None:
    group = app.group()
    for wrong in ("12", {"1": 2}, 12):
        with pytest.raises(ArgumentError, match="payloads must be a list"):
            await group.enqueue_many(shop.member, wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="on_conflict must be given together with id="):
        await group.enqueue_many(shop.member, [1], on_conflict="keep")
    assert (await app.queues["members"].counts())["ready"] == 0


async def test_duplicates_are_no_members(app: Faena, shop: Shop, working: Working) -> None:
    async with app.group(on_complete=shop.back.draft("complete")) as group:
        for _ in range(3):
            await group.enqueue(shop.member, 1, unique="same")
        await group.enqueue(shop.member, 2, id="mine")
        await group.enqueue(shop.member, 2, id="mine")
    assert (await group.view()).total == 2
    async with working(app):
        await group.wait("10s")


async def test_a_group_is_found_by_its_id(app: Faena, shop: Shop) -> None:
    group = app.group()
    with pytest.raises(ConfigError, match="before its first member"):
        _ = group.id
    with pytest.raises(ConfigError, match="a callback or a member"):
        await group.seal()
    await group.enqueue(shop.member, 1)
    found = app.group(id=group.id)
    assert (await found.view()).total is None
    with pytest.raises(JobNotFound, match="no group members/nobody"):
        await app.group(id="members/nobody").view()


async def test_a_sealed_group_takes_no_more_members(
    app: Faena, shop: Shop, working: Working
) -> None:
    async with app.group(on_complete=shop.back.draft("complete"), id="day") as group:
        await group.enqueue_many(shop.member, [1, 2])
    again = app.group(on_complete=shop.back.draft("other"), id="day")
    for one in (group, again):
        with pytest.raises(InvalidTransition, match="is sealed with 2 members and takes no more"):
            await one.enqueue(shop.member, 3)
        with pytest.raises(InvalidTransition, match="create another"):
            await one.enqueue_many(shop.member, [3, 4])
    assert (await app.queues["members"].counts())["ready"] == 2
    async with working(app):
        await eventually(lambda: len(shop.calls) == 1)
    assert shop.calls == [("complete", {"total": 2, "completed": 2, "dead": 0, "cancelled": 0})]


async def test_a_program_may_repeat_a_sealed_group_with_the_ids_of_its_members(
    app: Faena, shop: Shop, working: Working
) -> None:
    for _ in range(2):
        async with app.group(on_complete=shop.back.draft("complete"), id="day") as group:
            for number in (1, 2):
                await group.enqueue(shop.member, number, id=f"m{number}")
    with pytest.raises(InvalidTransition, match="takes no more"):
        await group.enqueue(shop.member, 3, id="m3")
    assert (await app.queues["members"].counts())["ready"] == 2
    async with working(app):
        await eventually(lambda: len(shop.calls) == 1)
    assert shop.calls[0][1]["completed"] == 2


async def test_an_empty_group_may_be_sealed_again(app: Faena, shop: Shop) -> None:
    for _ in range(2):
        async with app.group(on_complete=shop.back.draft("complete"), id="none") as group:
            pass
    assert (await group.view()).total == 0
