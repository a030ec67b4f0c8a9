"""Whenever the process dies that drives a bulk action: all jobs are changed, each of them once."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from faena import Faena, Task
from faena.bulk.record import BulkView
from faena.engine.calls.bulk import SHARD
from tests._support.bulk_process import bulk_app, carry_out
from tests._support.forked import Forked
from tests._support.search import IS_FULL
from tests._support.valkey import Server
from tests._support.working import obliterate
from tests.bulk.conftest import query

NUMBER = 9
STEPS = range(1, 12)
SAMPLE = STEPS if IS_FULL else (1, 2, 3, 4, 5, 6)
EVENTS = {
    "resolve": "dead_resolved",
    "cancel": "cancelled",
    "rerun": "rerun",
    "retry": "retried_as_new",
    "remove": "removed",
}

Shop = tuple[Faena, Task[int, int]]


@pytest.fixture
async def shop(valkey: Server, namespace: str) -> AsyncIterator[Shop]:
    app, send = bulk_app(valkey.url, namespace)
    yield app, send
    await (await app.runtime()).engine.command("DEL", SHARD, "bulks")
    await obliterate(app)


async def begun(shop: Shop, action: str) -> str:
    """Jobs that fit an action, and the action on them."""
    app, send = shop
    sign = -1 if action in {"retry", "resolve"} else 1
    await send.enqueue_many([sign * number for number in range(1, NUMBER + 1)])
    if action != "cancel":
        await app.run_worker(until_empty=True)
    return await app.bulk.begin(action, query=query("task:send"), by="ana", reason="r")


async def times(app: Faena, event: str) -> Counter[str]:
    """How often something happened to each job."""
    found: Counter[str] = Counter()
    async with aclosing(app.events("mail", since="start")) as events:
        await app.queues["mail"].pause()  # an event behind all others
        async for one in events:
            if one.name == "paused":
                break
            found.update([str(one.job)] if one.name == event else [])
    return found


async def ended(app: Faena, ident: str) -> BulkView:
    await app.bulk.carry_on(ident)
    return await app.bulk.get(ident)


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("fatal", SAMPLE)
@pytest.mark.parametrize("action", EVENTS)
async def test_another_process_finishes_it_and_changes_no_job_twice(
    shop: Shop, valkey: Server, tmp_path: Path, action: str, fatal: int, *, is_after: bool
) -> None:
    app, _ = shop
    ident = await begun(shop, action)
    given = (valkey.url, app.namespace, ident, fatal, is_after)
    code = Forked(carry_out, *given, log=tmp_path / "log").wait(60)
    assert code == -9
    if action == "rerun":  # what was rerun ends again, before anybody goes on
        await app.bulk.stop(ident)
        await app.run_worker(until_empty=True)
        await app.bulk.resume(ident)
    view = await ended(app, ident)
    assert view.state == "done"
    assert view.done + sum(view.refused.values()) == NUMBER
    assert set(view.refused) <= {"later"}
    done = await times(app, EVENTS[action])
    assert sorted(done.values()) == [1] * NUMBER
