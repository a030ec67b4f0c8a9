"""Programs that only produce: what they read of a queue, and what they never write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from faena import Backpressure, Faena, Limit, Order, Retain, Retry
from faena.errors import ConfigError, NotDeclared, Overloaded, PayloadError
from faena.remote import RemoteQueue
from faena.testing import harness
from tests._support.eventually import eventually
from tests._support.remote_producer import Mail, Pair, Receipt, paired
from tests._support.valkey import Server


@dataclass
class Letter:
    to: str


@pytest.fixture
async def pair(valkey: Server, namespace: str) -> AsyncIterator[Pair]:
    async with paired(valkey.url, namespace) as pair:
        yield pair


async def test_a_stub_is_enqueued_like_the_task_itself(pair: Pair) -> None:
    worker = pair.worker()
    await worker.declares()
    send = pair.mail.stub("send", payload=Mail, result=Receipt)
    receipt = await send.enqueue(Mail(to="ana"), tenant="acme", id="m-1")
    again = await worker.send.enqueue(Mail(to="ana"), tenant="acme", id="m-1")
    assert (receipt.status, again.status, again.id) == ("created", "duplicate", "m-1")
    more = await send.enqueue_many([Mail(to="bo", copies=2), send.draft(Mail(to="cy"), delay="1h")])
    assert [one.status for one in more] == ["created"] * 2
    assert await more[1].handle.state() == "delayed"
    assert await more[1].handle.cancel() == "cancelled"
    await worker.app.run_worker(until_empty=True)
    assert (Mail(to="ana"), "acme") in worker.seen
    assert await receipt.handle.result("60s") == Receipt(1)
    assert await send.handle(more[0].id).result("60s") == Receipt(2)


@pytest.mark.parametrize(
    ("payload", "good", "bad"),
    [
        (Mail, Mail(to="ana"), {"copies": 1}),
        (Receipt, Receipt(1), {"number": "x"}),
        (Letter, Letter("ana"), {"too": "ana"}),
        (list[int], [1, 2], ["a"]),
        (Any, {"any": ["json", 1.5, None]}, object()),
    ],
)
async def test_payloads_are_checked_by_the_codec_of_their_type(
    pair: Pair, payload: Any, good: Any, bad: Any
) -> None:
    await pair.worker().declares()
    stub = pair.mail.stub("any", payload=payload)
    assert (await stub.enqueue(good)).status == "created"
    with pytest.raises(PayloadError):
        await stub.enqueue(bad)
    assert (await pair.mail.counts())["ready"] == 1


async def test_a_task_without_a_payload_is_given_none(pair: Pair) -> None:
    worker = pair.worker()
    await worker.declares()
    tick = pair.mail.stub("tick", payload=None)
    await tick.enqueue()
    surplus: Any = tick
    with pytest.raises(PayloadError, match="takes no payload"):
        await surplus.enqueue(7)
    await worker.app.run_worker(until_empty=True)
    assert worker.seen == ["tick"]


STRICT = {
    "limits": [Limit("7/min")],
    "retain": Retain(completed="1h", completed_count=3),
    "backpressure": Backpressure(soft=2, hard=3),
    "max_running": 2,
    "lease": "11s",
    "priority": "low",
    "payload_limit": 200,
}


async def test_a_producer_never_writes_settings(pair: Pair) -> None:
    worker = pair.worker(**STRICT)
    await worker.declares()
    before = await worker.settings()
    assert before["limits"] == "7/60000000"
    send = pair.mail.stub("send", payload=Mail)
    receipt = await send.enqueue(Mail(to="ana"))
    await send.enqueue_many([Mail(to="bo")] * 2)
    with pytest.raises(Overloaded):
        await send.enqueue(Mail(to="cy"))
    await pair.mail.pause()
    await pair.mail.resume()
    await receipt.handle.cancel()
    await receipt.handle.explain()
    assert await worker.settings() == before


async def test_two_programs_that_both_declare_a_queue_have_the_settings_of_the_last(
    pair: Pair,
) -> None:
    strict = pair.worker(**STRICT)
    await strict.declares()
    before = await strict.settings()
    plain = pair.worker()
    await plain.declares()
    assert (await strict.settings()).get("limits", "") == ""
    assert await strict.settings() != before


async def test_the_priority_and_the_largest_payload_are_those_of_the_queue(pair: Pair) -> None:
    worker = pair.worker(**STRICT)
    await worker.declares()
    send = pair.mail.stub("send", payload=Mail)
    soon = pair.mail.stub("soon", payload=Mail, priority="critical")
    with pytest.raises(PayloadError, match="must be at most 200 bytes"):
        await send.enqueue(Mail(to="a" * 300))
    views = [
        await (await send.enqueue(Mail(to="a"))).handle.view(),
        await (await send.enqueue(Mail(to="a"), priority=7)).handle.view(),
        await (await soon.enqueue(Mail(to="a"))).handle.view(),
    ]
    own = await (await worker.send.enqueue_many([Mail(to="a")]))[0].handle.view()
    assert own is None  # refused: the queue is full
    low = worker.mail.options.priority
    assert [view.priority for view in views if view] == [low, 7, 1]


@pytest.mark.parametrize(
    ("options", "tenant", "key"),
    [
        ({"order": Order.QUEUE}, None, None),
        ({"order": Order.TENANT}, "acme", None),
        ({"order": Order.KEY}, "acme", "k"),
        ({"fair": True}, "acme", None),
        ({"fair": True, "shards": 3}, "acme", None),
        ({"fair": "time"}, None, None),
        ({}, "acme", None),
    ],
    ids=str,
)
async def test_jobs_are_placed_as_the_worker_would_place_them(
    pair: Pair, options: Any, tenant: str | None, key: str | None
) -> None:
    worker = pair.worker(**options)
    place: Any = {name: value for name, value in {"tenant": tenant, "key": key}.items() if value}
    first = await worker.send.enqueue(Mail(to="1"), **place)
    send = pair.mail.stub("send", payload=Mail)
    second = await send.enqueue(Mail(to="2"), **place)
    ordered = "order" in options
    assert await second.handle.state() == ("blocked" if ordered else "ready")
    assert send.lane_facts(tenant, key) == worker.send.lane_facts(tenant, key)
    assert await worker.send.handle(second.id).state() is not None  # where it looks for it
    await worker.app.run_worker(until_empty=True)
    assert [mail.to for mail, _ in worker.seen] == ["1", "2"] or not ordered
    assert await first.handle.state() == await second.handle.state() == "completed"


async def test_what_an_order_needs_is_asked_for_at_enqueue(pair: Pair) -> None:
    await pair.worker(order=Order.KEY).declares()
    send = pair.mail.stub("send", payload=Mail)
    with pytest.raises(ConfigError, match="each key of a tenant: its jobs must have a tenant"):
        await send.enqueue(Mail(to="1"))
    with pytest.raises(ConfigError, match="each key of a tenant: its jobs must have a key"):
        await send.enqueue(Mail(to="1"), tenant="acme")


async def test_a_tenant_that_moved_is_followed(pair: Pair) -> None:
    worker = pair.worker(fair=True)
    await worker.declares()
    send = pair.mail.stub("send", payload=Mail)
    await send.enqueue(Mail(to="1"), tenant="acme")
    await worker.mail.tenant("acme").dedicate()
    receipt = await send.enqueue(Mail(to="2"), tenant="acme")
    assert await receipt.handle.state() == "ready"
    await worker.mail.reshard(3)
    receipts = await send.enqueue_many(
        [send.draft(Mail(to=str(n)), tenant=f"t{n}") for n in range(20)]
    )
    assert {await one.handle.state() for one in receipts} == {"ready"}
    assert sum((await pair.mail.counts()).values()) == 22
    assert len(await pair.mail.tenants()) == 21


async def test_a_queue_that_nobody_has_declared_yet_is_told_and_may_be_tried_again(
    pair: Pair,
) -> None:
    send = pair.mail.stub("send", payload=Mail)
    for call in (
        lambda: send.enqueue(Mail(to="ana")),
        lambda: send.enqueue_many([Mail(to="ana")]),
        lambda: send.handle("x").cancel(),
        pair.mail.learn,
    ):
        with pytest.raises(NotDeclared, match="queue mail is not declared on this server yet"):
            await call()
    assert await send.handle("x").state() is None
    await pair.worker().declares()
    assert (await send.enqueue(Mail(to="ana"))).status == "created"


async def test_settings_that_the_server_has_lost_are_not_made_up(
    pair: Pair, valkey: Server
) -> None:
    worker = pair.worker(**STRICT)
    await worker.declares()
    send = pair.mail.stub("send", payload=Mail)
    await send.enqueue(Mail(to="ana"))
    with valkey.client() as client:
        client.flushall()
    with pytest.raises(NotDeclared):
        await send.enqueue(Mail(to="ana"))
    with valkey.client() as client:
        assert not [key for key in client.scan_iter() if ":conf" in key]
    await worker.send.enqueue(Mail(to="ana"))  # which declares it again
    assert (await send.enqueue(Mail(to="ana"))).status == "created"


async def test_a_flow_and_a_group_may_be_made_of_stubs(pair: Pair) -> None:
    worker = pair.worker(order=Order.TENANT)
    await worker.declares()
    send = pair.mail.stub("send", payload=Mail)
    plan = pair.api.flow()
    one = plan.add(send.draft(Mail(to="1"), tenant="acme"))
    plan.add(send.draft(Mail(to="2"), tenant="acme"), after=[one])
    flow = await plan.start()
    async with pair.api.group(on_complete=send.draft(Mail(to="done"), tenant="acme")) as group:
        await group.enqueue(send, Mail(to="member"), tenant="acme")
    await worker.app.run_worker(until_empty=True)

    async def is_over() -> bool:
        await worker.app.run_worker(until_empty=True)
        return len(worker.seen) == 4

    await eventually(is_over)
    assert await flow.state() == "completed"


def test_a_stub_is_not_called_served_scheduled_or_given_a_handler() -> None:
    app = Faena("api", "redis://127.0.0.1:1/0")
    mail = app.remote_queue("mail")
    send = mail.stub("send", payload=Mail)
    with pytest.raises(ConfigError, match="task mail/send cannot be called here"):
        send(Mail(to="ana"))
    with pytest.raises(ConfigError, match="cannot register a handler: queue mail is declared by"):
        mail.task  # noqa: B018 - the decorator is the mistake
    with pytest.raises(ConfigError, match="cannot register a handler"):
        mail.batch(size=5)
    with pytest.raises(
        ConfigError, match="a schedule must be for a task with a handler in this program"
    ):
        app.schedule("nightly", send, Mail(to="ana"), cron="0 2 * * *")
    with pytest.raises(ConfigError, match="cannot register a hook"):
        send.on_dead(lambda _death: None)
    with pytest.raises(ConfigError, match="cannot register a handler"):
        app.cron("0 2 * * *", queue=mail)(lambda: None)
    with pytest.raises(ConfigError, match="queue mail cannot be served here"):
        app.pool("all", [mail])
    assert (app.schedules.declared, app.pools, set(mail.tasks)) == ({}, {}, {"send"})


async def test_a_worker_serves_what_its_program_declares_and_nothing_else(pair: Pair) -> None:
    with pytest.raises(ConfigError, match="queue mail cannot be served here"):
        await pair.api.worker(["mail"])
    with pytest.raises(ConfigError, match="a worker must have at least one queue"):
        await pair.api.worker()
    await pair.worker().declares()
    await pair.mail.stub("send", payload=Mail).enqueue(Mail(to="ana"))
    own = pair.api.queue("own", retry=Retry.never())
    await pair.api.run_worker(until_empty=True)
    assert (await pair.mail.counts())["ready"] == 1
    await own.obliterate(force=True)


async def test_settings_are_changed_where_the_queue_is_declared(pair: Pair) -> None:
    await pair.worker().declares()
    for call in (
        lambda: pair.mail.configure(max_running=1),
        pair.mail.reset,
        lambda: pair.mail.reshard(2),
    ):
        with pytest.raises(ConfigError, match="queue mail is declared by another program"):
            await call()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "a b"}, "task must be 1 to 64"),
        ({"name": "send"}, "stub 'send' is made twice on queue mail"),
        ({"payload": object()}, "payload type must be"),
        ({"priority": "soon"}, "priority must be"),
        ({"version": 0}, "version must be"),
    ],
)
def test_a_stub_that_cannot_be_meant_is_refused(options: Any, words: str) -> None:
    app = Faena("api", "redis://127.0.0.1:1/0")
    mail = app.remote_queue("mail")
    mail.stub("send")
    with pytest.raises(ConfigError, match=words):
        mail.stub(**{"name": "other"} | options)
    with pytest.raises(ConfigError, match="queue 'mail' is declared twice"):
        app.queue("mail")
    assert app.remote_queue("mail") is mail
    app.queue("own")
    with pytest.raises(ConfigError, match=r"twice: use app\.queues\['own'\]"):
        app.remote_queue("own")
    assert set(mail.tasks) == {"send"}


async def test_a_producers_own_tests_need_no_other_program(valkey: Server) -> None:
    app = Faena("api", "redis://127.0.0.1:1/0")
    send = app.remote_queue("mail").stub("send", payload=Mail)
    async with harness(app, url=valkey.url) as h:
        await send.enqueue(Mail(to="ana"), tenant="acme")
        await h.assert_enqueued(send, tenant="acme")


async def test_settings_of_one_broker_are_not_those_of_another(
    valkey: Server, namespace: str
) -> None:
    api = Faena("api", valkey.url, namespace=namespace)
    tick = api.remote_queue("mail").stub("tick", payload=None)
    for name, priority in ((namespace, 20), (f"{namespace}-other", 70)):
        owner = Faena("worker", valkey.url, namespace=name)
        mail = owner.queue("mail", priority=priority)
        await (await owner.runtime()).engine.declare("mail")
        with api.override(namespace=name):
            view = await (await tick.enqueue()).handle.view()
            await api.close()
        assert view is not None
        assert view.priority == priority
        await mail.obliterate(force=True)
        await owner.close()
    await api.close()


async def test_jobs_of_a_stub_cost_what_the_task_says(valkey: Server, namespace: str) -> None:
    worker = Faena("worker", valkey.url, namespace=namespace)
    api = Faena("api", valkey.url, namespace=namespace)
    llm = worker.queue("llm", limits=[Limit("1000/h", cost="tokens")])
    ran: list[int] = []

    @llm.task(cost={"tokens": 500})
    async def ask(number: int) -> None:
        ran.append(number)

    async with worker, api:
        await (await worker.runtime()).engine.declare("llm")
        remote = api.remote_queue("llm")
        await remote.stub("other", payload=int).enqueue(0, delay="1h")
        stub = remote.stub("ask", payload=int)  # made after the settings were read
        await stub.enqueue_many(range(10))
        await stub.enqueue(10)
        serving = await worker.worker()
        running = asyncio.create_task(serving.run())
        try:
            await eventually(lambda: len(ran) == 2)
            why = await stub.handle((await llm.jobs("ready")).jobs[0].id).explain()
            assert "limit of 1000/h of tokens has no room" in str(why)
            assert len(ran) == 2
        finally:
            serving.stop()
            await running
            await llm.obliterate(force=True)


async def test_costs_that_code_takes_back_do_not_count_for_stubs(
    valkey: Server, namespace: str
) -> None:
    old, new, api = (Faena(name, valkey.url, namespace=namespace) for name in ("old", "new", "api"))
    limits = [Limit("1000/h", cost="tokens")]

    @old.queue("llm", limits=limits).task(name="ask", cost={"tokens": 500})
    async def dear() -> None: ...

    @new.queue("llm", limits=limits).task(name="ask")
    async def cheap() -> None: ...

    async with old, new, api:
        await (await old.runtime()).engine.declare("llm")
        stub = api.remote_queue("llm").stub("ask", payload=None)
        await stub.prepare()
        assert stub.handler.cost == {"tokens": 500}
        await new.run_worker(until_empty=True)
        again = RemoteQueue(api, "llm").stub("ask", payload=None)
        await again.prepare()
        assert again.handler.cost == {}
        await new.queues["llm"].obliterate()
