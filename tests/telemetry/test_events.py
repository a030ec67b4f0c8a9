"""Events: what happens to jobs, for whoever reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from faena import Event, Faena, Queue
from faena.engine.scripts import Turn
from faena.errors import ConfigError, StoreUnavailable
from faena.telemetry import events as telemetry
from faena.telemetry.events import Cursor, Reader, read_kinds
from tests._support.eventually import eventually
from tests._support.valkey import Server


def sending(app: Faena, **options: Any) -> tuple[Queue, Any]:
    queue = app.queue("mail", **options)

    @queue.task
    async def send(number: int) -> int:
        return number

    return queue, send


async def take(events: AsyncGenerator[Event], number: int) -> list[Event]:
    """So many of them, after which the reader ends."""
    taken: list[Event] = []
    async with aclosing(events), asyncio.timeout(60):
        async for event in events:
            taken.append(event)
            if len(taken) == number:
                break
    return taken


def said(events: list[Event]) -> list[tuple[str, str | None]]:
    return [(event.name, event.job) for event in events]


async def test_each_job_and_transition_is_an_event(app: Faena) -> None:
    queue, send = sending(app)
    receipts = await send.enqueue_many(range(3), tenant="acme")
    await receipts[0].handle.cancel()
    await queue.pause()
    events = await take(app.events("mail", since="start", details=True), 4)
    first, second, third, last = events
    assert [one.job for one in events[:3]] == [receipt.id for receipt in receipts]
    assert {one.name for one in events[:3]} == {"enqueued"}
    assert (last.name, last.job, last.queue) == ("cancelled", receipts[0].id, "mail")
    assert (last.task, last.tenant, last.worker, last.value) == ("send", "acme", None, None)
    assert first.at == second.at == third.at <= last.at


async def test_what_comes_is_told_and_nothing_from_before(app: Faena) -> None:
    _, send = sending(app)
    before, after = await send.enqueue(1), list[str]()
    events = app.events()
    async with aclosing(events), asyncio.timeout(60):
        waiting = asyncio.ensure_future(anext(events))
        while not waiting.done():  # whenever it has begun
            after.append((await send.enqueue(2)).id)
            await asyncio.wait({waiting}, timeout=0.01)
        assert (await waiting).job in after
        assert before.id not in after


async def test_a_reader_does_not_wait_for_arrivals_that_nobody_can_take_in(app: Faena) -> None:
    """What lies there would end every wait at once."""
    _, send = sending(app)
    await send.enqueue(0)
    runtime = await app.runtime()
    kinds = read_kinds(None)
    reader = Reader(runtime.engine, runtime.routers, ["mail"], kinds=kinds, has_details=False)
    await reader.begin("now")
    await reader.read("mail")
    assert [key.rpartition(":")[2] for key in reader.positions()] == ["events", "arrivals"]
    await runtime.engine.command("HDEL", "mail", "clock", "digest")
    await send.enqueue(1)
    await reader.read("mail")
    assert [key.rpartition(":")[2] for key in reader.positions()] == ["events"]


async def test_a_reader_that_waits_is_woken_by_a_job_that_is_left_in_the_stream(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("faena.telemetry.events._BLOCK_S", 3600)
    _, send = sending(app)
    await send.enqueue(0)  # which makes the stream
    reading = asyncio.create_task(take(app.events("mail", since="now"), 1))
    engine = (await app.runtime()).engine

    async def is_waiting() -> bool:
        return b"blocked_clients:0" not in await engine.info("mail", "clients")

    await eventually(is_waiting)
    receipt = await send.enqueue(1)
    assert said(await reading) == [("enqueued", receipt.id)]


async def test_a_reader_goes_on_behind_any_event(app: Faena) -> None:
    _, send = sending(app)
    for start in range(0, 12, 4):
        await send.enqueue_many(range(start, start + 4))
    every = await take(app.events("mail", since="start"), 12)
    for at, event in enumerate(every[:-1]):
        rest = await take(app.events("mail", since=event.cursor), 11 - at)
        assert said(rest) == said(every[at + 1 :])


async def test_a_reader_that_stops_in_the_midst_of_several_batches_is_told_nothing_twice(
    app: Faena,
) -> None:
    _, send = sending(app)
    other = app.queue("other")

    @other.task
    async def count(number: int) -> int:
        return number

    await send.enqueue(0)
    (last,) = await take(app.events(since="start"), 1)
    batch = [receipt.id for receipt in await count.enqueue_many(range(3))]
    told: list[str | None] = []
    for number in range(1, 7):  # each stops after one event, so that both batches are begun
        if number == 2:
            batch += [receipt.id for receipt in await send.enqueue_many(range(3))]
        (last,) = await take(app.events(since=last.cursor), 1)
        told.append(last.job)
    assert sorted(map(str, told)) == sorted(batch)


async def test_a_reader_that_comes_too_late_is_told_how_much_it_has_missed(app: Faena) -> None:
    _, send = sending(app)
    for number in range(3):
        await send.enqueue(number, id=f"early{number}")  # by the script, and so a batch of one
    (first,) = await take(app.events("mail", since="start"), 1)
    for number in range(5):
        await send.enqueue(number, id=f"late{number}")
    engine = (await app.runtime()).engine
    await engine.command("XTRIM", "mail", "events", "MAXLEN", 2)
    gap, *rest = await take(app.events("mail", since=first.cursor, kinds="enqueued"), 3)
    assert (gap.name, gap.missed, gap.queue) == ("gap", 5, "mail")
    assert len(rest) == 2
    assert said(await take(app.events("mail", since=gap.cursor), 2)) == said(rest)
    (early, *_) = await take(app.events("mail", since=datetime.now(UTC) - timedelta(hours=1)), 2)
    assert (early.name, early.missed) == ("gap", None)


async def test_a_reader_may_begin_in_the_millisecond_of_an_event(app: Faena) -> None:
    _, send = sending(app)
    await send.enqueue(1)
    (first,) = await take(app.events("mail", since="start"), 1)
    within = timedelta(milliseconds=first.position.at_ms, microseconds=500)
    (again,) = await take(app.events("mail", since=datetime.fromtimestamp(0, UTC) + within), 1)
    assert said([again]) == said([first])


async def test_a_server_that_lost_everything_is_a_gap(app: Faena) -> None:
    queue, send = sending(app)
    await send.enqueue_many([1, 2])
    await send.enqueue(3)
    *_, last = await take(app.events("mail", since="start"), 3)
    await queue.obliterate(force=True)
    receipt = await send.enqueue(1)
    gap, event = await take(app.events("mail", since=last.cursor), 2)
    assert (gap.name, gap.missed, event.job) == ("gap", None, receipt.id)


async def test_all_shards_are_read_also_those_that_come_later(app: Faena) -> None:
    queue, send = sending(app, shards=2)
    tenants = [f"t{number}" for number in range(8)]
    seen: set[str | None] = set()
    events = app.events("mail", since="start", kinds=["enqueued"])
    async with aclosing(events), asyncio.timeout(60):
        wanted = {(await send.enqueue(1, tenant=tenant)).id for tenant in tenants}
        while seen != wanted:
            seen.add((await anext(events)).job)
        await queue.reshard(4)
        await queue.tenant("t1").dedicate()
        wanted |= {(await send.enqueue(1, tenant=tenant)).id for tenant in tenants}
        while seen != wanted:
            event = await anext(events)
            assert event.job not in seen
            seen.add(event.job)


async def test_a_shard_that_is_given_up_is_told_of_once(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "_LOOK_S", 0.0)
    queue, send = sending(app, shards=2)
    await queue.tenant("acme").dedicate()
    events, told = app.events("mail", since="start", kinds=["enqueued"]), list[str]()
    async with aclosing(events), asyncio.timeout(60):
        for number in range(1, 5):
            await send.enqueue(number, tenant="acme")
            while told.count("enqueued") < number:
                told.append((await anext(events)).name)
            if number == 1:
                await queue.tenant("acme").rejoin()
    assert told.count("gap") == 1


async def test_a_reader_survives_lost_connections(app: Faena, valkey: Server) -> None:
    _, send = sending(app)
    events = app.events("mail", since="start")
    async with aclosing(events), asyncio.timeout(60):
        for _ in range(4):
            receipt = await send.enqueue(1)
            assert (await anext(events)).job == receipt.id
            waiting = asyncio.ensure_future(anext(events))
            await asyncio.wait({waiting}, timeout=0.05)
            with valkey.client() as client:
                client.execute_command("CLIENT", "KILL", "TYPE", "NORMAL", "SKIPME", "YES")
            receipt = await send.enqueue(2)
            assert (await waiting).job == receipt.id


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"queue": "male"}, "queue must be the name of a queue of the app, got 'male'"),
        ({"kinds": ["compleet"]}, "did you mean 'completed'"),
        ({"since": "yesterday"}, "since must be 'now', 'start', a datetime or the cursor"),
        ({"since": datetime(2026, 1, 1)}, "must have a time zone"),  # noqa: DTZ001
        ({"since": 5}, "since must be"),
        ({"details": 1}, "details must be a bool"),
    ],
)
async def test_what_cannot_be_meant_is_refused_before_anything_is_read(
    app: Faena, given: dict[str, Any], message: str
) -> None:
    app.queue("mail")
    with pytest.raises(ConfigError, match=message):
        app.events(**given)


def test_events_can_be_read_without_a_loop(valkey: Server, namespace: str) -> None:
    app = Faena("shop", valkey.url, namespace=namespace)
    queue, send = sending(app)
    app.sync.run(send.enqueue(1))
    events = app.events("mail", since="start")
    assert app.sync.run(anext(events)).name == "enqueued"
    app.sync.run(events.aclose())
    app.sync.run(queue.obliterate(force=True))
    app.sync.close()


async def test_what_is_done_by_hand_says_who_asked_for_it(app: Faena) -> None:
    queue, send = sending(app, fair=True)
    receipts = await send.enqueue_many(range(4), delay="1h", tenant="acme")
    first, second, third, fourth = (receipt.handle for receipt in receipts)
    await first.promote(by="ana")
    await second.change(delay="2h", by="bob")
    await third.remove(by="eva")
    await first.cancel(by="leo")
    await first.rerun(by="mia")
    await queue.pause(by="ana")
    await queue.resume(by="bob")
    await queue.configure(max_running=5, by="eva")
    await queue.configure(max_running=5, by="leo")  # as it is already
    await queue.reset(by="leo")
    await queue.tenant("acme").hold("late", by="mia")
    await queue.tenant("acme").reset(by="ana")
    await queue.promote_all(by="bob")
    await queue.drain(by="eva")
    events = await take(app.events("mail", since="start"), 18)
    assert [(one.name, one.job or one.value, one.by) for one in events[4:]] == [
        ("promoted", first.id, "ana"),
        ("changed", second.id, "bob"),
        ("removed", third.id, "eva"),
        ("cancelled", first.id, "leo"),
        ("rerun", first.id, "mia"),
        ("paused", "pause", "ana"),
        ("resumed", "pause", "bob"),
        ("configured", "max_running", "eva"),
        ("reset", "max_running", "leo"),
        ("tenant_changed", "@acme", "mia"),
        ("tenant_changed", "@acme", "ana"),
        ("promoted", fourth.id, "bob"),
        ("promoted", second.id, "bob"),
        ("cleaned", "ready:3", "eva"),
    ]
    assert {one.worker for one in events} == {None}
    assert {one.by for one in events[:4]} == {None}


async def test_a_reason_is_told_as_it_was_given(app: Faena) -> None:
    queue, _ = sending(app)
    await (await app.runtime()).engine.declare(queue.name)  # one that nobody uses tells nothing
    await queue.pause(reason="AFIP  is down", lasting="1h", by="ana")
    await queue.resume(reason="AFIP  is down", by="ana")
    await queue.configure(max_running=5, events_kept=600)
    told = [(one.name, one.value) for one in await take(app.events(since="start"), 4)]
    assert told == [
        ("paused", "AFIP  is down"),
        ("resumed", "AFIP  is down"),
        ("configured", "max_running"),
        ("configured", "events_kept"),
    ]


async def test_who_asks_must_be_a_label(app: Faena) -> None:
    queue, send = sending(app)
    handle = (await send.enqueue(1, delay="1h")).handle
    with pytest.raises(ConfigError, match="by must be 1 to"):
        await handle.promote(by="two words")
    with pytest.raises(ConfigError, match="by must be 1 to"):
        await queue.configure(max_running=5, by="")
    assert await handle.state() == "delayed"
    assert not (await queue.settings()).edited


async def test_a_running_job_that_is_asked_to_stop_is_an_event(app: Faena) -> None:
    queue, send = sending(app)
    handle = (await send.enqueue(1)).handle
    engine = (await app.runtime()).engine
    await engine.exchange("mail", "w", "w", Turn("call1", 1))
    assert await handle.cancel(by="ana") == "asked"
    assert await handle.cancel(by="bob") == "asked"
    await queue.pause()
    events = await take(app.events("mail", since="start"), 4)
    assert [(one.name, one.by) for one in events[2:]] == [
        ("stopping", "ana"),
        ("paused", "operator"),
    ]


async def test_schedules_say_who_has_changed_them(app: Faena) -> None:
    _, send = sending(app)
    await send.enqueue(0)
    await app.schedules.create("nightly", send, 1, cron="0 3 * * *", by="ana")
    await app.schedules.pause("nightly", by="bob")
    await app.schedules.resume("nightly", by="eva")
    job = await app.schedules.run("nightly", by="leo")
    await app.schedules.remove("nightly", by="mia")
    names = ["schedule_changed", "schedule_removed"]
    events = await take(app.events("mail", since="start", kinds=names), 4)
    assert [(one.name, one.value, one.by) for one in events] == [
        ("schedule_changed", "nightly", "ana"),
        ("schedule_changed", "nightly", "bob"),
        ("schedule_changed", "nightly", "eva"),
        ("schedule_removed", "nightly", "mia"),
    ]
    view = await job.view()
    assert view is not None
    assert view.headers["faena-by"] == "leo"


async def test_flows_say_who_has_called_them_off_and_run_them_again(app: Faena) -> None:
    _, send = sending(app)
    flow = await app.chain(send.draft(1), send.draft(2)).start()
    await flow.cancel(by="ana")
    await app.run_worker(until_empty=True)
    assert (await flow.wait("10s")).state == "cancelled"
    await flow.rerun(by="bob")
    names = ["flow_cancelling", "flow_rerun"]
    events = await take(app.events("mail", since="start", kinds=names), 2)
    assert [(one.name, one.by) for one in events] == [
        ("flow_cancelling", "ana"),
        ("flow_rerun", "bob"),
    ]


@pytest.mark.parametrize("failing", [1, 2])
async def test_no_event_is_lost_when_details_cannot_be_read_for_a_moment(
    app: Faena, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    _, send = sending(app)
    jobs: list[str] = []
    for number in (1, 2, 250):  # more than one call tells of
        jobs += [receipt.id for receipt in await send.enqueue_many(range(number))]
    engine = (await app.runtime()).engine
    ask, asked = engine.ask, list[str]()

    def faulty(name: str, shard: str, *rest: Any, **named: Any) -> Awaitable[Any]:
        asked.append(name)
        if asked.count("briefs") == failing and name == "briefs":
            raise StoreUnavailable("planted", op="briefs")
        return ask(name, shard, *rest, **named)

    monkeypatch.setattr(engine, "ask", faulty)
    told = await take(app.events("mail", since="start", details=True), len(jobs))
    assert said(told) == [("enqueued", job) for job in jobs]
    assert {event.task for event in told} == {"send"}


async def test_a_shard_that_went_unseen_before_is_read_from_its_beginning(app: Faena) -> None:
    _, send = sending(app, shards=2)
    for number in range(8):
        await send.enqueue(number, tenant=f"t{number}")
    every = await take(app.events("mail", since="start"), 8)
    known, at_ms = every[-1].position.marks, every[-1].position.at_ms
    for shard in known:
        others = {one: mark for one, mark in known.items() if one != shard}
        later = Cursor(others, at_ms + 3_600_000)  # the clocks of servers may differ
        cursor = msgspec.structs.replace(every[-1], position=later).cursor
        number = await (await app.runtime()).engine.command("XLEN", shard, "events")
        assert number > 0
        rest = await take(app.events("mail", since=cursor), number)
        assert {event.job for event in rest} < {event.job for event in every}
