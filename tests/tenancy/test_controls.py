"""What is decided for one tenant, obeyed by real workers on a real server."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from faena import Faena, Job, Limit, RateLimited, Retry
from faena.errors import ConfigError
from faena.testing import Harness
from tests._support.eventually import eventually
from tests._support.working import Working

NOBODY = {"limits": None, "max_running": None, "weight": None, "size": None, "held_until": None}


# -- holds --------------------------------------------------------------------------------------


async def test_a_held_tenant_waits_while_the_others_are_served(
    app: Faena, working: Working
) -> None:
    queue, started = app.queue("mail", fair=True), list[str]()

    @queue.task
    async def send(tenant: str) -> None:
        started.append(tenant)

    acme = queue.tenant("acme")
    held = await acme.hold("invoice unpaid", by="ana@ops")
    assert (held.held_until, held.reason, held.by, held.is_held) == (
        *(0, "invoice unpaid", "ana@ops"),
        True,
    )
    waiting = [await send.enqueue("acme", tenant="acme") for _ in range(3)]
    async with working(), working():
        for _ in range(5):
            await (await send.enqueue("zen", tenant="zen")).handle.result("60s")
        assert started == ["zen"] * 5
        view = await acme.view()
        assert (view.live, view.running, view.parked_until) == (3, 0, 0)
        assert not (await acme.release()).is_held
        for receipt in waiting:
            await receipt.handle.result("60s")
    assert started == ["zen"] * 5 + ["acme"] * 3


async def test_an_idle_worker_serves_a_tenant_when_its_hold_is_over(
    app: Faena, working: Working
) -> None:
    queue = app.queue("mail", fair=True)

    @queue.task
    async def send(job: Job) -> None: ...

    held = await queue.tenant("acme").hold("a moment", lasting="300ms")
    receipt = await send.enqueue(tenant="acme")
    async with working():
        await receipt.handle.result("60s")
    view = await receipt.handle.view()
    assert view is not None
    assert view.finished_at is not None
    assert held.at is not None
    assert view.finished_at >= held.at + 300_000


async def test_jobs_that_run_go_on_under_a_hold(app: Faena, working: Working) -> None:
    queue, gate, begun = app.queue("mail", fair=True), asyncio.Event(), asyncio.Event()

    @queue.task
    async def send(job: Job) -> str:
        begun.set()
        await gate.wait()
        return "sent"

    async with working():
        receipt = await send.enqueue(tenant="acme")
        await begun.wait()
        assert (await queue.tenant("acme").hold("stop")).running == 1
        gate.set()
        assert await receipt.handle.result("60s") == "sent"


async def test_a_hold_and_the_settings_end_each_at_its_own_time(app: Faena, h: Harness) -> None:
    tenant = app.queue("mail", fair=True).tenant("acme")
    await tenant.configure(weight=3, lasting="1h")
    view = await tenant.hold("short", lasting="10m")
    assert view.ends_at == h.clock() + 3_600_000_000
    assert view.held_until == h.clock() + 600_000_000
    h.clock.advance("10m")
    view = await tenant.view()
    assert (view.is_held, view.weight) == (False, 3)
    await tenant.hold("long", lasting="2h")
    h.clock.advance("50m")
    view = await tenant.view()
    assert (view.reason, view.weight, view.ends_at) == ("long", None, None)
    h.clock.advance("70m")
    assert await tenant.view() == await app.queues["mail"].tenant("acme").reset()


# -- settings -----------------------------------------------------------------------------------


async def test_a_tenant_s_own_limit_takes_the_place_of_the_queue_s(app: Faena, h: Harness) -> None:
    queue = app.queue("calls", tenant_limits=[Limit("2/min")], concurrency=50)

    @queue.task
    async def call(job: Job) -> None: ...

    await queue.tenant("slow").configure(limits=[Limit("1/min")])
    await queue.tenant("free").configure(limits=[])
    for tenant in ("slow", "plain", "free"):
        for _ in range(5):
            await call.enqueue(tenant=tenant)

    async def left() -> dict[str, int]:
        await h.drain()
        return {name: (await queue.tenant(name).view()).live for name in ("slow", "plain", "free")}

    assert await left() == {"slow": 4, "plain": 3, "free": 0}
    h.clock.advance("1m")
    assert await left() == {"slow": 3, "plain": 1, "free": 0}
    await queue.tenant("slow").configure(limits=None)
    h.clock.advance("1m")
    assert await left() == {"slow": 1, "plain": 0, "free": 0}


async def test_limits_are_read_as_they_were_given(app: Faena, h: Harness) -> None:
    tenant = app.queue("calls", fair=True).tenant("acme")
    limits = (Limit("5/s"), Limit("100/min"), Limit("333/7m"))
    assert (await tenant.configure(limits=list(reversed(limits)))).limits == limits
    assert (await tenant.configure(limits=[])).limits == ()
    assert (await tenant.configure(limits=None)).limits is None


async def test_a_tenant_s_own_maximum_bounds_all_workers_together(
    app: Faena, working: Working
) -> None:
    queue = app.queue("calls", fair=True, concurrency=10)
    now, peak = Counter[str](), Counter[str]()

    @queue.task
    async def call(tenant: str) -> None:
        now[tenant] += 1
        peak[tenant] = max(peak[tenant], now[tenant])
        await asyncio.sleep(0.005)
        now[tenant] -= 1

    await queue.tenant("acme").configure(max_running=2)
    receipts = [
        *await call.enqueue_many(["acme"] * 20, tenant="acme"),
        *await call.enqueue_many(["zen"] * 20, tenant="zen"),
    ]
    async with working(), working():
        for receipt in receipts:
            await receipt.handle.result("60s")
    assert peak["acme"] == 2
    assert peak["zen"] > 2


async def test_a_tenant_of_three_times_the_weight_starts_three_times_as_many(
    app: Faena, working: Working
) -> None:
    queue, started = app.queue("mail", fair=True, concurrency=1), list[str]()

    @queue.task
    async def send(tenant: str) -> None:
        started.append(tenant)

    await queue.tenant("acme").configure(weight=3)
    await queue.pause()
    for tenant in ("zen", "acme"):
        await send.enqueue_many([tenant] * 60, tenant=tenant)
    await queue.resume()
    async with working():
        await eventually(lambda: len(started) == 120)
    # Both wait all the while until acme's sixty have started, with twenty of zen's between them.
    first = Counter(started[:80])
    assert abs(first["acme"] - 60) <= 4, first


async def test_settings_end_by_themselves_and_every_change_renews_them(
    app: Faena, h: Harness
) -> None:
    tenant = app.queue("mail", fair=True).tenant("acme")
    await tenant.configure(weight=2, lasting="1h", by="ops")
    h.clock.advance("30m")
    view = await tenant.configure(max_running=4, lasting="1h", by="night-shift")
    assert (view.weight, view.max_running, view.by) == (2, 4, "night-shift")
    assert (view.at, view.ends_at) == (h.clock(), h.clock() + 3_600_000_000)
    h.clock.advance("59m")
    assert (await tenant.view()).weight == 2
    h.clock.advance("1m")
    view = await tenant.view()
    assert {name: getattr(view, name) for name in NOBODY} == NOBODY
    assert (view.by, view.at, view.ends_at) == (None, None, None)


async def test_reset_leaves_nothing_that_was_decided(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", fair=True)
    tenant = queue.tenant("acme")
    await tenant.configure(weight=2, max_running=1, size=5, limits=[Limit("1/s")])
    await tenant.hold("for good")
    assert [view.tenant for view in await queue.tenants()] == ["acme"]
    view = await tenant.reset()
    assert {name: getattr(view, name) for name in NOBODY} == NOBODY
    assert await queue.tenants() == []


async def test_a_refused_change_changes_nothing(app: Faena, h: Harness) -> None:
    tenant = app.queue("mail", fair=True).tenant("acme")
    before = await tenant.configure(weight=2, limits=[Limit("5/s")])
    h.clock.advance("1m")
    contradiction = [Limit("10/s"), Limit("5/min")]
    with pytest.raises(ConfigError, match="can never be reached"):
        await tenant.configure(weight=5, limits=contradiction)
    with pytest.raises(ConfigError, match="weight must be"):
        await tenant.configure(max_running=1, weight=0)
    assert await tenant.view() == before


async def test_jobs_without_a_tenant_are_a_tenant_of_their_own(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", fair=True)

    @queue.task
    async def send(job: Job) -> None: ...

    assert (await queue.tenant(None).hold("nobody's")).tenant is None
    await send.enqueue()
    await send.enqueue(tenant="acme")
    assert len(await h.drain()) == 1
    assert [(view.tenant, view.live) for view in await queue.tenants()] == [(None, 1)]


async def test_a_change_at_run_time_is_for_every_tenant_without_one_of_its_own(
    app: Faena, h: Harness
) -> None:
    queue = app.queue("calls", tenant_limits=[Limit("1/min")])

    @queue.task
    async def call(job: Job) -> None: ...

    await queue.tenant("own").configure(limits=[Limit("1/min")])
    for tenant in ("own", "plain"):
        for _ in range(5):
            await call.enqueue(tenant=tenant)
    await queue.configure(tenant_limits=[Limit("3/min")])
    await h.drain()
    assert {view.tenant: view.live for view in await queue.tenants()} == {"own": 4, "plain": 2}


async def test_the_busiest_tenants_come_first(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", fair=True)

    @queue.task
    async def send(job: Job) -> None: ...

    for number in range(12):
        for _ in range(number % 4 + 1):
            await send.enqueue(tenant=f"t{number:02d}")
    await queue.tenant("quiet").configure(weight=2)
    found = await queue.tenants(limit=4)
    assert [(view.tenant, view.live) for view in found] == [
        *(("t03", 4), ("t07", 4), ("t11", 4), ("t02", 3)),
    ]
    await queue.tenant("quieter").hold("a moment", lasting="1m")
    assert [view.tenant for view in (await queue.tenants())[-2:]] == ["quiet", "quieter"]
    h.clock.advance("1m")
    assert (await queue.tenants())[-1].tenant == "quiet"


def test_code_without_an_event_loop_decides_too(app: Faena) -> None:
    tenant = app.queue("mail", fair=True).tenant("acme")
    assert app.sync.run(tenant.hold("by hand")).reason == "by hand"
    assert not app.sync.run(tenant.release()).is_held
    app.sync.close()


# -- what a provider says -----------------------------------------------------------------------


async def test_a_provider_s_wait_holds_the_tenant_for_every_worker(
    app: Faena, working: Working
) -> None:
    queue = app.queue("calls", fair=True, concurrency=1, retry=Retry.never())
    attempts = list[tuple[str, int]]()
    is_limited = True

    @queue.task
    async def call(tenant: str, job: Job) -> None:
        attempts.append((tenant, job.attempt))
        if tenant == "acme" and is_limited:
            raise RateLimited("1h", scope="tenant")

    acme = await call.enqueue_many(["acme"] * 10, tenant="acme")
    tenant = queue.tenant("acme")
    async with working(), working():

        async def is_held() -> bool:
            return (await tenant.view()).is_held and not (await tenant.view()).running

        await eventually(is_held)
        tries = len(attempts)
        assert tries <= 2  # each of two workers may have begun one
        for _ in range(10):
            await (await call.enqueue("zen", tenant="zen")).handle.result("60s")
        assert Counter(name for name, _ in attempts) == {"acme": tries, "zen": 10}
        view = await tenant.view()
        assert (view.reason, view.by, view.live) == ("rate_limited", "handler", 10)
        assert view.at is not None
        assert view.held_until is not None
        assert view.held_until >= view.at + 3_600_000_000
        is_limited = False
        await tenant.release()
        for receipt in acme:
            await receipt.handle.result("60s")
    assert {attempt for _, attempt in attempts} == {1}  # none was used up by the wait


async def test_a_provider_s_wait_outlives_settings_and_never_shortens_a_hold(
    app: Faena, h: Harness
) -> None:
    queue, waits = app.queue("calls", fair=True), {"acme": "2h", "zen": "1m"}

    @queue.task
    async def call(tenant: str) -> None:
        if tenant == "zen":
            await queue.tenant("zen").hold("meanwhile", lasting="1d")
        if tenant in waits:
            raise RateLimited(waits.pop(tenant), scope="tenant")

    await queue.tenant("acme").configure(weight=2, lasting="1h")
    await call.enqueue("acme", tenant="acme")
    await call.enqueue("zen", tenant="zen")
    assert [ran.ending for ran in await h.drain()] == ["limited", "limited"]
    h.clock.advance("90m")
    assert len(await h.drain()) == 0
    acme = await queue.tenant("acme").view()
    assert (acme.weight, acme.reason) == (None, "rate_limited")
    assert (await queue.tenant("zen").view()).reason == "meanwhile"
    h.clock.advance("3h")
    assert [(ran.ending, ran.task) for ran in await h.drain()] == [("completed", "call")]


async def test_without_lanes_a_tenant_s_wait_puts_off_its_job_alone(app: Faena, h: Harness) -> None:
    queue, tries = app.queue("calls", fair=False), Counter[int]()

    @queue.task
    async def call(number: int, job: Job) -> int:
        tries[number] += 1
        if number == 0 and tries[0] == 1:
            raise RateLimited("10m", scope="tenant")
        return job.attempt

    await call.enqueue_many(range(3), tenant="acme")
    await h.drain()
    assert tries == {0: 1, 1: 1, 2: 1}
    assert (await queue.counts())["delayed"] == 1
    assert (await queue.overview()).holds == ()
    h.clock.advance("15m")
    assert [ran.result for ran in await h.drain()] == [1]
