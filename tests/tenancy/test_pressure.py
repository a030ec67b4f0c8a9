"""How deep one tenant may be, and what tenants were given."""

from __future__ import annotations

import struct

import pytest

from faena import Backpressure, Faena, Job
from faena.errors import Overloaded
from faena.options import Order
from faena.outcomes import Completed
from faena.testing import Harness
from tests._support.rig import Rig

MINUTE_US = 60_000_000


# -- back-pressure ------------------------------------------------------------------------------


def press(soft: int | None, hard: int | None) -> Backpressure:
    return Backpressure(soft=50, hard=100, tenant_soft=soft, tenant_hard=hard, max_delay="10s")


async def test_a_full_tenant_is_slowed_and_refused_while_others_are_let_in(
    app: Faena, h: Harness
) -> None:
    queue = app.queue("mail", fair=True, backpressure=press(2, 4))

    @queue.task
    async def send(job: Job) -> None: ...

    told = [await send.enqueue(tenant="acme") for _ in range(4)]
    assert [receipt.status for receipt in told] == ["created"] * 4
    assert [receipt.retry_after for receipt in told] == [0, 0, 0, 5]
    assert told[1].reason is None
    assert told[3].reason == "tenant acme of queue mail near capacity"
    with pytest.raises(Overloaded, match=r"^tenant acme of queue mail is full: try again in") as no:
        await send.enqueue(tenant="acme")
    assert no.value.reason == "tenant acme of queue mail at capacity"
    assert no.value.retry_after == 10
    assert (await send.enqueue(tenant="zen")).retry_after == 0
    await h.drain()
    assert (await send.enqueue(tenant="acme")).status == "created"


async def test_a_bound_on_tenants_is_none_on_the_queue(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", fair=True, backpressure=Backpressure(tenant_hard=300))

    @queue.task
    async def send(number: int) -> None: ...

    told = [await send.enqueue_many(range(300), tenant=tenant) for tenant in ("acme", "zen")]
    assert {(one.status, one.retry_after) for many in told for one in many} == {("created", 0)}
    settings = await queue.settings()
    assert settings.backpressure == Backpressure(tenant_hard=300)


async def test_a_hard_bound_alone_slows_nobody_down(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", backpressure=Backpressure(hard=3))

    @queue.task
    async def send(number: int) -> None: ...

    told = await send.enqueue_many(range(4))
    assert [(one.status, one.retry_after) for one in told[:3]] == [("created", 0)] * 3
    assert told[3].status == "overloaded"


async def test_a_soft_bound_alone_refuses_nobody(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", backpressure=Backpressure(soft=1, max_delay="2s"))

    @queue.task
    async def send(number: int) -> None: ...

    told = await send.enqueue_many(range(3))
    assert [(one.status, one.retry_after) for one in told] == [
        ("created", 0),
        ("created", 2),
        ("created", 2),
    ]


async def test_what_has_no_tenant_is_bounded_like_one(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", fair=True, backpressure=press(None, 1))

    @queue.task
    async def send(job: Job) -> None: ...

    await send.enqueue()
    with pytest.raises(Overloaded) as no:
        await send.enqueue()
    assert no.value.reason == "the lane without tenant of queue mail at capacity"


async def test_the_queue_s_own_bound_is_told_as_such(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", fair=True, backpressure=Backpressure(soft=1, hard=2, tenant_hard=9))

    @queue.task
    async def send(job: Job) -> None: ...

    await send.enqueue(tenant="acme")
    assert (await send.enqueue(tenant="acme")).reason == "queue mail near capacity"
    with pytest.raises(Overloaded, match=r"^queue mail is full") as no:
        await send.enqueue(tenant="zen")
    assert no.value.reason == "queue mail at capacity"


async def test_many_jobs_are_answered_one_by_one(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", fair=True, backpressure=press(None, 2))

    @queue.task
    async def send(number: int) -> None: ...

    drafts = [
        send.draft(number, tenant=tenant) for number, tenant in enumerate(["acme", "zen"] * 4)
    ]
    receipts = await send.enqueue_many(drafts)
    assert [receipt.status for receipt in receipts] == ["created"] * 4 + ["overloaded"] * 4
    assert [receipt.reason for receipt in receipts[4:6]] == [
        "tenant acme of queue mail at capacity",
        "tenant zen of queue mail at capacity",
    ]
    assert not any(receipt.is_accepted for receipt in receipts[4:])
    assert (await queue.counts())["ready"] == 4


async def test_a_tenant_s_own_size_takes_the_place_of_the_queue_s(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", fair=True, backpressure=press(None, 1))

    @queue.task
    async def send(number: int) -> None: ...

    await queue.tenant("large").configure(size=3)
    await queue.tenant("shut").configure(size=0)

    async def taken(tenant: str) -> int:
        receipts = await send.enqueue_many(range(5), tenant=tenant)
        return sum(receipt.is_accepted for receipt in receipts)

    assert [await taken(name) for name in ("large", "plain", "shut")] == [3, 1, 0]


async def test_a_size_bounds_a_queue_that_has_no_back_pressure(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", order=Order.TENANT)

    @queue.task
    async def send(number: int) -> None: ...

    await queue.tenant("acme").configure(size=2)
    receipts = await send.enqueue_many(range(3), tenant="acme")
    assert [receipt.status for receipt in receipts] == ["created", "created", "overloaded"]
    assert (await queue.counts())["blocked"] == 1


# -- shares -------------------------------------------------------------------------------------


async def test_shares_tell_what_each_tenant_was_given_minute_by_minute(
    app: Faena, h: Harness
) -> None:
    queue = app.queue("mail", fair=True, concurrency=50)

    @queue.task
    async def send(number: int) -> None: ...

    h.clock.advance("1m")
    await queue.tenant("heavy").configure(weight=4)
    await send.enqueue_many(range(8), tenant="heavy")
    await send.enqueue_many(range(2), tenant="acme")
    await send.enqueue(0)
    await h.drain()
    before, now = await queue.shares()
    assert (before.is_over, before.given, before.fairness) == (True, {}, None)
    assert now.given == {"heavy": 2, "acme": 2, "": 1}
    assert now.fairness == pytest.approx(25 / 27)
    assert (now.of("acme"), now.of(None)) == (0.4, 0.2)
    assert now.at == h.clock() // MINUTE_US * MINUTE_US
    h.clock.advance("1m")
    await send.enqueue(1, tenant="acme")
    await h.drain()
    oldest, last, this = await queue.shares(minutes=2)
    assert (oldest.given, last.given, this.given) == ({}, now.given, {"acme": 1})
    assert [minute.is_over for minute in (oldest, last, this)] == [True, True, False]


async def test_shares_of_more_tenants_than_a_page_holds_are_complete(
    app: Faena, h: Harness
) -> None:
    queue = app.queue("mail", fair=True, concurrency=1000)

    @queue.task
    async def send(number: int) -> None: ...

    await send.enqueue_many([send.draft(n, tenant=f"t{n % 700}") for n in range(1400)])
    assert len(await queue.tenants(limit=1000)) == 700
    await h.drain()
    (now,) = await queue.shares(minutes=0)
    assert now.given == {f"t{number}": 2 for number in range(700)}
    assert now.fairness == 1


async def test_the_minute_s_counters_tell_the_same_fairness(rig: Rig) -> None:
    await rig.declare(fair=True)
    await rig.engine.tenant("q", "@b", {"weight": "0.5"})
    await rig.add("a1", "a2", "a3", lane="@a")
    await rig.add("b1", lane="@b")
    await rig.claim(4)
    counters = await rig.counters()
    assert (counters["shares"], counters["shares_squared"]) == (5000, 13_000_000)


async def test_a_claim_never_fails_because_a_tenant_of_small_weight_had_much(rig: Rig) -> None:
    await rig.declare(fair=True)
    await rig.engine.tenant("q", "@a", {"weight": "0.01"})
    shares = f"{rig.engine.namespace}:{{q}}:shares:{rig.clock() // MINUTE_US}"
    much = struct.pack(">4d", 1e13, 0, 0, 0)
    for command in (("HSET", shares, "@a", much), ("EXPIRE", shares, 60)):
        await rig.engine.wire.call(*command, key=shares, patience_s=60)
    await rig.add("a1", "a2", lane="@a")
    lease = await rig.claim(2)
    await rig.turn(0, ("a1", lease, Completed()), ("a2", lease, Completed()))
    assert (await rig.states()) == {"a1": "completed", "a2": "completed"}
