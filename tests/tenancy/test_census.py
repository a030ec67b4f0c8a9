"""All tenants of a queue at once, and the ready jobs and costs of one of them."""

from __future__ import annotations

import pytest

from faena import Faena, Job
from faena.errors import ConfigError
from faena.testing import Harness


async def test_the_census_has_who_waits_and_for_whom_something_is_decided(app: Faena) -> None:
    queue = app.queue("mail", fair=True)

    @queue.task
    async def send(job: Job) -> None: ...

    for number in range(3):
        await send.enqueue(tenant="acme", id=f"a{number}")
    await send.enqueue(tenant="bolt")
    await send.enqueue()
    await queue.tenant("bolt").configure(weight=2.5, limits=[], by="ana")
    await queue.tenant("zen").hold("unpaid")
    found = {one.tenant: one for one in await queue.census()}
    assert [*found] == [None, "acme", "bolt", "zen"]
    assert {name: one.live for name, one in found.items()} == {
        None: 1,
        "acme": 3,
        "bolt": 1,
        "zen": 0,
    }
    assert (found["bolt"].weight, found["bolt"].limits, found["bolt"].by) == (2.5, (), "ana")
    assert (found["zen"].held_until, found["zen"].reason) == (0, "unpaid")


async def test_the_census_agrees_with_each_view_when_time_passes(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", fair=True)
    await queue.tenant("short").configure(weight=3, lasting="1h")
    await queue.tenant("both").configure(max_running=2, lasting="10m")
    await queue.tenant("both").hold("later", lasting="2h")
    for step in ("0s", "20m", "50m", "2h"):
        h.clock.advance(step)
        census = {one.tenant: one for one in await queue.census()}
        for name in ("short", "both"):
            view = await queue.tenant(name).view()
            if name in census:
                assert census[name] == view
            else:
                assert (view.live, view.weight, view.is_held) == (0, None, False)
    assert not await queue.census()


async def test_the_census_is_whole_over_shards_and_more_than_a_page(app: Faena) -> None:
    queue = app.queue("mail", fair=True, shards=3)

    @queue.task
    async def send(job: Job) -> None: ...

    for number in range(700):
        await send.enqueue(tenant=f"t{number:03}")
    await queue.tenant("t007").dedicate()
    census = await queue.census()
    assert [one.tenant for one in census] == [f"t{number:03}" for number in range(700)]
    assert {one.tenant for one in census if one.is_dedicated} == {"t007"}


async def test_ready_jobs_of_a_tenant_come_in_pages_in_their_order(app: Faena) -> None:
    queue = app.queue("mail", fair=True, shards=2)

    @queue.task
    async def send(job: Job) -> None: ...

    for number in range(7):
        await send.enqueue(tenant="acme", id=f"a{number}")
        await send.enqueue(tenant="bolt", id=f"b{number}")
    await send.enqueue(tenant="acme", id="first", priority=1)
    await send.enqueue(tenant="acme", id="later", delay="1h")
    acme, found, cursor = queue.tenant("acme"), list[str](), None
    while True:
        page = await acme.ready(limit=3, cursor=cursor)
        found += [one.id for one in page.jobs]
        if (cursor := page.cursor) is None:
            break
    assert found == ["first", *(f"a{number}" for number in range(7))]
    await acme.dedicate()
    assert [one.id for one in (await acme.ready()).jobs] == found
    with pytest.raises(ConfigError, match="cursor must come from"):
        await acme.ready(cursor="nonsense")
    other = (await acme.ready(limit=1)).cursor
    with pytest.raises(ConfigError, match="cursor must come from"):
        await queue.tenant("bolt").ready(cursor=other)
