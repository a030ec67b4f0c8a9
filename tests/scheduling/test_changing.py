"""Schedules changed at run time, and by code that changes beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from faena import Faena, Job
from faena.errors import ConfigError, InvalidTransition, PayloadError
from faena.scheduling.view import ScheduleView
from faena.task import Task
from faena.testing import Harness, harness
from tests._support.valkey import Server
from tests.scheduling.conftest import START, ids, look

HOUR = 3600 * 10**6


@pytest.fixture
def nightly(app: Faena) -> Task[None, Any]:
    @app.cron("0 2 * * *", tz="UTC", tenant="acme")
    async def nightly(job: Job) -> str:
        return str(job.instant)

    return nightly


def at(hours: float) -> int:
    return round((START - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1)) + round(
        hours * HOUR
    )


# -- code -----------------------------------------------------------------------------------------


def another(app: Faena, h: Harness, url: str, **terms: Any) -> Faena:
    """The same program in another version, on the same broker and clock."""
    other = Faena("shop", url, namespace=h.namespace, clock=h.clock)

    @other.cron(terms.pop("cron", "0 2 * * *"), **terms)
    async def nightly() -> None: ...

    return other


async def test_declaring_twice_changes_nothing(app: Faena, h: Harness, nightly: Any) -> None:
    await app.schedules.declare()
    view = await app.schedules.get("nightly")
    assert (view.next_at, view.state, view.edits) == (at(2), "active", {})
    await app.schedules.declare()
    assert await app.schedules.get("nightly") == view
    h.clock.advance("5m")
    await app.schedules.declare()
    later = await app.schedules.get("nightly")
    assert view.declared_at is not None
    assert later.declared_at == view.declared_at + 5 * 60 * 10**6
    assert later.next_at == at(2)


async def test_a_code_change_wins_for_what_nobody_edited(
    app: Faena, h: Harness, nightly: Any, valkey: Server
) -> None:
    await app.schedules.declare()
    await app.schedules.edit("nightly", tz="Europe/Madrid", by="ana")
    async with another(app, h, valkey.url, cron="0 5 * * *", tz="Asia/Tokyo") as newer:
        await newer.schedules.declare()
        view = await newer.schedules.get("nightly")
    assert view.when == "0 5 * * * Europe/Madrid"
    assert view.terms["tenant"] is None
    assert view.edits["tz"].by == "ana"
    assert view.next_at == at(4)
    await app.schedules.declare()  # the old version is started once more
    assert (await app.schedules.get("nightly")).when == "0 2 * * * Europe/Madrid"


async def test_two_versions_side_by_side_fire_every_instant_once(
    app: Faena, h: Harness, nightly: Any, valkey: Server
) -> None:
    async with another(app, h, valkey.url, jitter="1h", tenant="other") as newer:
        for _ in range(10):
            for one in (app, newer):
                await one.schedules.declare()
                await look(one)
            h.clock.advance("12h")
    found = await ids(h)
    assert found == [f"nightly@202603{day:02d}T020000Z" for day in range(1, 6)]


async def test_an_overdue_instant_survives_a_declaration(
    app: Faena, h: Harness, nightly: Any, valkey: Server
) -> None:
    await app.schedules.declare()
    h.clock.advance("2h5m")
    async with another(app, h, valkey.url, cron="0 2,14 * * *") as newer:
        await newer.schedules.declare()
        await look(newer)
    assert await ids(h) == ["nightly@20260301T020000Z"]


def moved_to_reports(h: Harness, valkey: Server) -> Faena:
    """A newer version of the program, whose schedule is on another queue."""
    newer = Faena("shop", valkey.url, namespace=h.namespace, clock=h.clock)
    newer.queue("scheduler")
    newer.queue("reports")

    @newer.cron("0 2 * * *", queue="reports", name="nightly")
    async def nightly_report() -> None: ...

    return newer


async def test_one_that_code_has_moved_to_another_queue_goes_on_there(
    app: Faena, h: Harness, nightly: Any, valkey: Server
) -> None:
    app.queue("reports")
    await app.schedules.declare()
    await app.schedules.edit("nightly", tz="Europe/Madrid")
    h.clock.advance("25h30m")  # one instant is overdue
    async with moved_to_reports(h, valkey) as newer:
        await look(newer)
        (view,) = await newer.schedules.list()
        assert (view.queue, view.task, view.when) == (
            "reports",
            "nightly_report",
            "0 2 * * * Europe/Madrid",
        )
        assert (view.fired, view.last_job) == (1, "nightly@20260302T010000Z")
        await look(app)  # the old version is still there, and takes it back
        (view,) = await newer.schedules.list()
        assert (view.queue, view.fired) == ("scheduler", 1)


async def test_what_an_old_version_has_left_on_another_queue_is_cleared_away(
    app: Faena, h: Harness, nightly: Any, valkey: Server
) -> None:
    async with moved_to_reports(h, valkey) as newer:
        await look(newer)
        await look(app)  # it knows nothing of the other queue
        views = await newer.schedules.list()
        assert {view.queue: view.is_declared for view in views} == {
            "reports": True,
            "scheduler": False,
        }
        h.clock.advance("2h")
        await look(newer)
        (view,) = await newer.schedules.list()
        assert (view.queue, view.fired) == ("reports", 1)
    assert await ids(h) == []  # on the old queue


async def test_one_that_code_declares_no_more_is_shown_and_goes_on(
    app: Faena, h: Harness, nightly: Any, valkey: Server
) -> None:
    await app.schedules.declare()
    newer = Faena("shop", valkey.url, namespace=h.namespace, clock=h.clock)
    newer.queue("scheduler")
    async with newer:
        (view,) = await newer.schedules.list()
        assert (view.is_declared, view.declared_at) == (False, at(0))
        h.clock.advance("1d")
        await look(newer)
        assert await ids(h) == ["nightly@20260301T020000Z"]
        await newer.schedules.remove("nightly")
        assert await newer.schedules.list() == []


async def test_a_code_change_that_does_not_go_with_an_edit_changes_nothing(
    app: Faena, h: Harness, nightly: Any, valkey: Server
) -> None:
    await app.schedules.declare()
    await app.schedules.edit("nightly", end="2026-03-05")
    before = await app.schedules.get("nightly")
    async with another(app, h, valkey.url, start="2026-04-01") as newer:
        await look(newer)
    assert await app.schedules.get("nightly") == before


async def test_one_that_no_worker_has_started_is_shown_and_not_written_down(
    app: Faena, h: Harness, nightly: Any
) -> None:
    (view,) = await app.schedules.list()
    assert (view.name, view.state, view.next_at) == ("nightly", "not started", at(2))
    assert await app.schedules.get("nightly") == view
    assert len(await app.schedules.next("nightly", 3)) == 3
    h.clock.advance("3h")
    (view,) = await app.schedules.list()
    assert view.next_at == at(26)  # nobody has begun to count instants
    await app.schedules.declare()
    assert [one.state for one in await app.schedules.list()] == ["active"]


async def test_a_declaration_without_an_instant_left_is_warned_of(
    app: Faena, h: Harness, nightly: Any, caplog: pytest.LogCaptureFixture
) -> None:
    app.schedule("late", nightly, at="2026-02-28T23:00")
    app.schedule("soon", nightly, at="2026-03-01T01:00")
    await look(app)
    assert [record.getMessage() for record in caplog.records] == [
        "schedule late will never fire: no instant is left, at 2026-02-28T23:00:00Z"
    ]
    h.clock.advance("1h")
    await look(app)
    assert (await app.schedules.get("soon")).state == "over"
    assert not any("soon" in record.getMessage() for record in caplog.records)


# -- operators ------------------------------------------------------------------------------------


async def test_edits_count_from_the_next_look_on(app: Faena, h: Harness, nightly: Any) -> None:
    await look(app)
    view = await app.schedules.edit("nightly", every="30m", by="ana")
    assert (view.when, view.next_at) == ("every 30m", at(0.5))
    assert (view.edits["when"].by, view.edits["when"].at) == ("ana", at(0))
    h.clock.advance("30m")
    await look(app)
    assert await ids(h) == ["nightly@20260301T003000Z"]
    view = await app.schedules.reset("nightly", "cron")
    assert (view.when, view.edits, view.next_at) == ("0 2 * * * UTC", {}, at(2))


async def test_reset_lets_code_decide_everything_again(
    app: Faena, h: Harness, nightly: Any
) -> None:
    await app.schedules.declare()
    before = await app.schedules.get("nightly")
    await app.schedules.edit("nightly", tz="Asia/Tokyo", count=3, tenant=None)
    view = await app.schedules.reset("nightly", "tz")
    assert set(view.edits) == {"count", "tenant"}
    assert await app.schedules.reset("nightly") == before


async def test_what_does_not_decide_instants_leaves_them_alone(
    app: Faena, h: Harness, nightly: Any
) -> None:
    await look(app)
    h.clock.advance("3h")  # overdue by an hour: nobody has looked
    view = await app.schedules.edit("nightly", jitter="5m", tenant="other")
    assert view.next_at == at(2)


async def test_a_paused_schedule_misses_nothing(app: Faena, h: Harness, nightly: Any) -> None:
    await look(app)
    view = await app.schedules.pause("nightly", by="ana")
    assert (view.state, view.next_at) == ("paused", None)
    assert await app.schedules.next("nightly") == []
    assert (await app.schedules.pause("nightly", by="leo")).paused == view.paused
    h.clock.advance("3d")
    await look(app)
    view = await app.schedules.resume("nightly")
    assert (view.state, view.next_at) == ("active", at(74))
    assert await app.schedules.resume("nightly") == view
    await look(app)
    assert await ids(h) == []


async def test_the_next_five_instants(app: Faena, h: Harness, nightly: Any) -> None:
    await app.schedules.edit("nightly", cron="30 2 * * *", tz="Europe/Madrid")
    h.clock.advance_to(datetime(2026, 3, 28, tzinfo=UTC))
    await look(app)
    found = await app.schedules.next("nightly", 5)
    assert [f"{one:%d %H:%M}" for one in found] == [
        "28 01:30",
        "29 01:00",
        "30 00:30",
        "31 00:30",
        "01 00:30",
    ]
    await app.schedules.edit("nightly", count=3)
    view = await app.schedules.get("nightly")
    assert len(await app.schedules.next("nightly", 5)) == 3 - view.fired


async def test_run_makes_a_job_beside_and_uses_no_instant(
    app: Faena, h: Harness, nightly: Any
) -> None:
    before = await app.schedules.get("nightly")
    handle = await app.schedules.run("nightly")
    assert await app.schedules.get("nightly") == before
    (job,) = await h.jobs()
    assert (job.id, job.tenant, job.headers) == (handle.id, "acme", {"faena-schedule": "nightly"})
    assert [ran.result for ran in await h.drain()] == ["None"]


async def test_run_obeys_overlap(app: Faena, h: Harness) -> None:
    @app.every("1h", overlap="skip")
    async def tick() -> None: ...

    await look(app)
    h.clock.advance("1h")
    await look(app)
    assert (await app.schedules.run("tick")).id == "tick@20260301T010000Z"
    assert len(await ids(h)) == 1


@pytest.mark.parametrize("task", [print, None, 7, lambda: None])
async def test_what_is_created_must_be_of_a_task(app: Faena, h: Harness, task: Any) -> None:
    with pytest.raises(ConfigError, match=r"task of schedule 'x' must be a task, got"):
        await app.schedules.create("x", task, every="1h")


async def test_created_at_run_time_changed_and_removed(app: Faena, h: Harness) -> None:
    queue = app.queue("q")

    @queue.task
    async def work(number: int) -> int:
        return number

    view = await app.schedules.create(
        "once", "q/work", 5, at=["2026-03-01T10:00", "2026-03-01T12:00"], by="ana"
    )
    assert (view.declared_at, view.since.by, view.is_declared) == (None, "ana", False)
    with pytest.raises(ConfigError, match="'once' exists already"):
        await app.schedules.create("once", work, 5, every="1h")
    await app.schedules.edit("once", payload=6)
    h.clock.advance("1d")
    await look(app)
    view = await app.schedules.get("once")
    assert (view.state, view.fired, view.last_job) == ("over", 1, "once@20260301T120000Z")
    assert [ran.result for ran in await h.drain()] == [6]
    await app.schedules.remove("once")
    with pytest.raises(ConfigError, match="no schedule 'once' in app shop"):
        await app.schedules.get("once")


async def test_a_schedule_of_that_name_on_another_queue_is_refused(
    app: Faena, h: Harness, nightly: Any
) -> None:
    @app.queue("q").task
    async def work() -> None: ...

    await app.schedules.create("extra", "scheduler/nightly", every="1h")
    with pytest.raises(ConfigError, match="exists already, on queue scheduler"):
        await app.schedules.create("extra", work, every="1h")


async def test_one_that_code_declares_cannot_be_removed(
    app: Faena, h: Harness, nightly: Any
) -> None:
    await app.schedules.declare()
    with pytest.raises(InvalidTransition, match="declared in code: pause it"):
        await app.schedules.remove("nightly")


Ask = Callable[[Any], Any]

BAD: list[tuple[Ask, type[Exception], str]] = [
    (lambda one: one.edit("nightly", cron="0 0 31 2 *"), ConfigError, "cron must be"),
    (lambda one: one.edit("nightly", tz="Mars"), ConfigError, "tz must be a time zone"),
    (lambda one: one.edit("nightly", cron="* * * * *", every="1h"), ConfigError, "one of cron"),
    (lambda one: one.edit("nightly"), ConfigError, "must be given an option"),
    (lambda one: one.edit("nightly", by="a b", count=1), ConfigError, "by must be"),
    (lambda one: one.edit("nightly", cron=None), ConfigError, "cron must be set, got None"),
    (lambda one: one.edit("nightly", at="2020-01-01"), ConfigError, "an instant after "),
    (lambda one: one.edit("nightly", crno="x"), ConfigError, "did you mean 'cron'"),
    (lambda one: one.edit("nightly", payload=5), PayloadError, "takes no payload"),
    (lambda one: one.edit("nightli", count=1), ConfigError, "did you mean 'nightly'"),
    (lambda one: one.reset("nightly", "crom"), ConfigError, "did you mean 'cron'"),
    (lambda one: one.next("nightly", 0), ConfigError, "number must be"),
    (lambda one: one.create("A!", "scheduler/nightly", every="1h"), ConfigError, "schedule name"),
    (
        lambda one: one.create("nightly", "scheduler/nightly", every="1h"),
        ConfigError,
        "is declared in code: edit it",
    ),
    (lambda one: one.create("x", "nightly", every="1h"), ConfigError, "such as queue/task"),
    (lambda one: one.create("x", "scheduler/nightly"), ConfigError, "got none"),
    (
        lambda one: one.create("x", "scheduler/nightly", at="2020-01-01"),
        ConfigError,
        "must have an instant after .*, got at 2020-01-01T",
    ),
    (
        lambda one: one.create("x", "scheduler/nightly", every="1h", end="2020-01-01"),
        ConfigError,
        "must have an instant after .*, got every 1h, end 2020-01-01T",
    ),
]


@pytest.mark.parametrize(("ask", "kind", "words"), BAD, ids=[words for *_, words in BAD])
async def test_bad_input_changes_nothing(
    app: Faena, h: Harness, nightly: Any, ask: Ask, kind: type[Exception], words: str
) -> None:
    await app.schedules.declare()
    before = await app.schedules.list()
    with pytest.raises(kind, match=words):
        await ask(app.schedules)
    assert await app.schedules.list() == before


async def test_an_edit_that_leaves_no_instant_is_refused_of_a_paused_one_too(
    app: Faena, h: Harness, nightly: Any
) -> None:
    await app.schedules.pause("nightly")
    with pytest.raises(ConfigError, match=r"an instant after .*, got end 2026-02-01T") as caught:
        await app.schedules.edit("nightly", priority=5, end="2026-02-01")
    assert caught.value.field == "end"
    assert (await app.schedules.edit("nightly", every="1h")).state == "paused"


@pytest.mark.parametrize("by", ["Ana", "ana@example.org", "Ángel"])
async def test_whoever_decides_may_have_any_name(
    app: Faena, h: Harness, nightly: Any, by: str
) -> None:
    assert (await app.schedules.edit("nightly", count=3, by=by)).edits["count"].by == by
    view = await app.schedules.pause("nightly", by=by)
    assert view.paused is not None
    assert view.paused.by == by
    queue = app.queues["scheduler"]
    await queue.pause(by=by)
    assert [hold.by for hold in (await queue.overview()).holds] == [by]


async def test_changes_at_once_all_count(app: Faena, h: Harness, nightly: Any) -> None:
    await app.schedules.declare()
    changes: list[Any] = [{"count": 5}, {"jitter": "1m"}, {"tenant": "b"}, {"priority": 3}]
    await asyncio.gather(*(app.schedules.edit("nightly", **one) for one in changes))
    view = await app.schedules.get("nightly")
    assert set(view.edits) == {"count", "jitter", "tenant", "priority"}


def test_code_without_an_event_loop_has_it_too(valkey: Server) -> None:
    app = Faena("shop", "redis://127.0.0.1:1/0")

    @app.every("1h")
    def tick() -> None: ...

    with app.override(url=valkey.url, namespace="sync-schedules"):
        try:
            app.sync.run(app.schedules.declare())
            view: ScheduleView = app.sync.run(app.schedules.pause("tick"))
            assert view.state == "paused"
        finally:
            app.sync.run(app.queues["scheduler"].obliterate())


async def test_a_harness_of_its_own(valkey: Server) -> None:
    app = Faena("shop", "redis://127.0.0.1:1/0")

    @app.every("1h")
    async def tick() -> None: ...

    async with harness(app, url=valkey.url, start=START) as h:
        await look(app)
        h.clock.advance("1h")
        await look(app)
        assert await ids(h) == ["tick@20260301T010000Z"]
