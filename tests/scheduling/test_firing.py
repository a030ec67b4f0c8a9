"""Schedules that fire: by a test's clock, and in real workers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from faena import Backpressure, Faena, Job, Middleware
from faena.engine.calls.scheduling import Fired
from faena.errors import ConfigError, PayloadError
from faena.job import Spec
from faena.scheduling import scheduler
from faena.scheduling.due import Mark, Record, Verdict
from faena.scheduling.fire import _wait_of
from faena.testing import Harness, harness
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests._support.working import Working
from tests.scheduling.conftest import ids, look


async def test_a_worker_fires_and_runs_what_code_declares(app: Faena, working: Working) -> None:
    seen: list[Job] = []

    @app.every("1s")
    async def tick(job: Job) -> None:
        seen.append(job)

    async with working():
        await eventually(lambda: len(seen) >= 2)
    assert {job.schedule for job in seen} == {"tick"}
    instants = [job.instant for job in seen]
    assert all(one is not None and one.microsecond == 0 for one in instants)
    assert len(set(instants)) == len(instants)
    view = await app.schedules.get("tick")
    assert view.fired >= len(seen)
    assert view.is_declared


async def test_a_schedule_made_elsewhere_is_heard_of_at_once(
    app: Faena, working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker has looked and would look again only an hour later."""
    monkeypatch.setattr(scheduler, "LOOK_S", 3600.0)
    ran: list[int] = []
    queue = app.queue("q")

    @queue.task
    async def work(number: int) -> None:
        ran.append(number)

    async with working():
        await app.schedules.create("soon", work, 7, every="1s", count=1)
        await eventually(lambda: ran == [7])
    assert (await app.schedules.get("soon")).state == "over"


async def test_ten_schedulers_make_one_job_of_an_instant(app: Faena, h: Harness) -> None:
    for number in range(5):

        @app.every("10s", name=f"s{number}")
        async def tick() -> None:
            pass

        app.queues["scheduler"].tasks.clear()
    schedulers = [await app.schedules.scheduler(["scheduler"]) for _ in range(10)]
    for _ in range(6):
        h.clock.advance("10s")
        await asyncio.gather(*(one.run_once() for one in schedulers))
    # the first look declares, as of then
    assert len(await ids(h)) == 5 * 5


async def test_the_instant_is_nominal_and_the_job_is_put_off_by_its_jitter(
    app: Faena, h: Harness
) -> None:
    @app.every("1h", jitter="30m", name="spread")
    async def spread(job: Job) -> str:
        return f"{job.instant:%H:%M}"

    await look(app)
    h.clock.advance("1h")
    await look(app)
    (job,) = await h.jobs()
    assert job.id == "spread@20260301T010000Z"
    assert job.due_at is not None
    assert 0 < job.due_at - h.clock() < 30 * 60 * 10**6
    report = await h.drain(through="30m")
    assert [ran.result for ran in report] == ["01:00"]


async def test_a_payload_a_tenant_and_a_priority_go_with_the_job(app: Faena, h: Harness) -> None:
    queue = app.queue("q", order="tenant")

    @queue.task
    async def work(payload: dict[str, int]) -> None: ...

    app.schedule("s", work, {"n": 9007199254740993}, every="1m", tenant="acme", priority="low")
    await look(app)
    h.clock.advance("1m")
    await look(app)
    (job,) = await h.assert_enqueued(work, payload={"n": 9007199254740993}, tenant="acme")
    assert job.priority == 20


async def test_time_zones_and_summer_time(app: Faena, h: Harness) -> None:
    @app.cron("30 2 * * *", tz="Europe/Madrid")
    async def nightly() -> None: ...

    await look(app)
    for _ in range(30):
        h.clock.advance("1d")
        await look(app)
    found = await ids(h)
    assert len(found) == 30
    assert "nightly@20260328T013000Z" in found
    assert "nightly@20260329T010000Z" in found  # 02:30 is skipped: at the end of the gap
    assert "nightly@20260330T003000Z" in found


# -- overlap --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("allow", ["completed", "ready", "ready", "ready"]),
        ("skip", ["completed", "ready"]),
        ("queue", ["completed", "ready"]),
    ],
)
async def test_jobs_that_wait_overlap_as_they_may(
    app: Faena, h: Harness, overlap: str, expected: list[str]
) -> None:
    @app.every("1m", overlap=overlap)
    async def tick() -> None: ...

    await look(app)
    h.clock.advance("1m")
    await look(app)
    await h.drain()
    for _ in range(3):
        h.clock.advance("1m")
        await look(app)
    assert sorted(str(job.state) for job in await h.jobs()) == expected


async def told(app: Faena, name: str) -> list[str]:
    """What the events of the queue say of jobs under a name."""
    engine = (await app.runtime()).engine
    events = await engine.command("XRANGE", "scheduler", "events", "-", "+")
    pairs = [zip(event[::2], event[1::2], strict=True) for _, event in events]
    return [ids.decode() for event in pairs for field, ids in event if field == name.encode()]


async def test_the_one_that_waits_keeps_its_place(app: Faena, h: Harness) -> None:
    """Were it replaced, a queue with much to do would put the schedule off for ever."""

    @app.every("1m", overlap="queue")
    async def tick() -> None: ...

    await look(app)
    for _ in range(3):
        h.clock.advance("1m")
        await look(app)
    assert await ids(h) == ["tick@20260301T000100Z"]
    skipped = ["tick@20260301T000200Z", "tick@20260301T000300Z"]
    assert await told(app, "schedule_skipped") == skipped


async def test_one_waits_while_one_runs(app: Faena, h: Harness) -> None:
    states: list[list[str]] = []

    @app.every("1m", overlap="queue")
    async def tick() -> None:
        if not states:
            for _ in range(3):
                h.clock.advance("1m")
                await look(app)
            states.append(sorted(str(job.state) for job in await h.jobs()))

    await look(app)
    h.clock.advance("1m")
    await look(app)
    report = await h.drain()
    assert states == [["blocked", "running"]]
    assert [ran.id for ran in report] == ["tick@20260301T000100Z", "tick@20260301T000400Z"]
    replaced = ["tick@20260301T000200Z", "tick@20260301T000300Z"]
    assert await told(app, "replaced") == replaced


# -- what goes wrong ------------------------------------------------------------------------------


async def test_a_full_queue_puts_an_instant_off_and_loses_none(app: Faena, h: Harness) -> None:
    queue = app.queue("q", backpressure=Backpressure(soft=1, hard=2))

    @queue.task
    async def work() -> None: ...

    app.schedule("s", work, every="1h", missed="all")
    await look(app)
    for _ in range(2):
        await work.enqueue()
    h.clock.advance("1h")
    await look(app)
    assert not any(job.startswith("s@") for job in await ids(h))
    assert (await app.schedules.get("s")).fired == 0
    await h.drain()
    h.clock.advance("10s")
    await look(app)
    assert "s@20260301T010000Z" in await ids(h)


async def test_a_schedule_that_cannot_be_fired_keeps_no_other_back(app: Faena, h: Harness) -> None:
    @app.every("1m", name="bad")
    @app.every("1m", name="good")
    async def tick() -> None: ...

    await look(app)
    engine = (await app.runtime()).engine
    await engine.command("HSET", "scheduler", "schedules", "bad", "v\n{not json")
    h.clock.advance("1m")
    await look(app)
    assert await ids(h) == ["good@20260301T000100Z"]


async def test_what_the_server_has_lost_is_declared_again(app: Faena, working: Working) -> None:
    ran: list[Job] = []

    @app.every("1s")
    async def tick(job: Job) -> None:
        ran.append(job)

    async with working():
        await eventually(lambda: ran)
        engine = (await app.runtime()).engine
        await engine.command("DEL", "scheduler", "schedules")
        await engine.command("DEL", "scheduler", "schedule_due")
        number = len(ran)
        await eventually(lambda: len(ran) > number + 1)


async def test_schedules_go_on_after_the_broker_was_away() -> None:
    ran: list[Job] = []
    with Server(unix=True) as server:
        app = Faena("shop", server.url)

        @app.every("1s")
        async def tick(job: Job) -> None:
            ran.append(job)

        async with app:
            worker = await app.worker()
            running = asyncio.create_task(worker.run())
            await eventually(lambda: ran)
            server.kill()
            await asyncio.to_thread(server.start)
            number = len(ran)
            await eventually(lambda: len(ran) > number + 1)
            worker.stop()
            await running
    # what the crash rolled back is run again, but every instant has one job
    assert len({job.id for job in ran}) > number


class Stamp(Middleware):
    async def enqueue(self, queue: str, spec: Spec, call_next: Any) -> Any:
        if spec.task == "secret":
            return None
        if spec.task == "broken":
            raise RuntimeError("no")
        spec.headers["stamp"] = "1"
        return await call_next(queue, spec)


async def test_middleware_is_around_schedules_too(valkey: Server) -> None:
    app = Faena("shop", "redis://127.0.0.1:1/0", middleware=[Stamp()])

    @app.every("1m")
    async def open_() -> None: ...

    @app.every("1m")
    async def secret() -> None: ...

    @app.every("1m")
    async def broken() -> None: ...

    async with harness(app, url=valkey.url) as h:
        await look(app)
        h.clock.advance("1m")
        await look(app)
        (job,) = await h.jobs()
        assert (job.task, job.headers["stamp"]) == ("open_", "1")
        assert (await app.schedules.get("secret")).fired == 1
        assert (await app.schedules.get("broken")).fired == 0


# -- declaring ------------------------------------------------------------------------------------


def test_two_of_one_name_are_refused() -> None:
    app = Faena("x", "redis://127.0.0.1:1/0")

    @app.every("1m")
    async def tick() -> None: ...

    with pytest.raises(ConfigError, match="schedule 'tick' is declared twice"):
        app.schedule("tick", tick, cron="* * * * *")


def test_a_function_goes_to_a_queue_of_its_choice() -> None:
    app = Faena("x", "redis://127.0.0.1:1/0")
    app.queue("own")

    @app.cron("* * * * *", queue="own")
    async def tick() -> None: ...

    assert (tick.queue, set(app.queues)) == ("own", {"own"})
    with pytest.raises(ConfigError, match="no queue 'owm' in app x; did you mean 'own'"):
        app.cron("* * * * *", queue="owm")(lambda: None)
    with pytest.raises(ConfigError, match="queue must be left out if a task is given"):
        app.cron("* * * * *", queue="own", name="other")(tick)


def test_a_function_goes_to_a_queue_that_is_given_as_itself() -> None:
    app, other = Faena("x", "redis://127.0.0.1:1/0"), Faena("y", "redis://127.0.0.1:1/0")
    own = app.queue("own")

    @app.cron("* * * * *", queue=own)
    async def tick() -> None: ...

    @app.every("1m", queue=own)
    async def tock() -> None: ...

    assert (tick.queue, tock.queue, set(app.queues)) == ("own", "own", {"own"})
    assert set(app.schedules.declared) == {"tick", "tock"}
    with pytest.raises(ConfigError, match="no queue 'own' in app x"):
        app.cron("* * * * *", queue=other.queue("own"))(lambda: None)


@pytest.mark.parametrize(
    ("timing", "options"),
    [
        ("61 * * * *", {}),
        ("* * * * *", {"tz": "Mars/Olympus"}),
        ("* * * * *", {"overlap": "maybe"}),
        ("* * * * *", {"missed": "all(0)"}),
        ("* * * * *", {"name": "a b"}),
        ("* * * * *", {"payload": 7}),
        ("* * * * *", {"jiter": "5s"}),
        ("* * * * *", {"priority": "soon"}),
        ("* * * * *", {"queue": "own", "tz": "Mars/Olympus"}),
        ("* * * * *", {"queue": "other"}),
    ],
    ids=str,
)
def test_nothing_is_registered_when_a_schedule_is_refused(timing: str, options: Any) -> None:
    app = Faena("x", "redis://127.0.0.1:1/0")
    own = app.queue("own")

    async def tick() -> None: ...

    with pytest.raises((ConfigError, PayloadError)):
        app.cron(timing, **options)(tick)
    assert (set(app.queues), own.tasks, app.schedules.declared) == ({"own"}, {}, {})

    app.cron("* * * * *")(tick)  # and the corrected decorator finds the name free
    assert set(app.queues["scheduler"].tasks) == set(app.schedules.declared) == {"tick"}


def test_a_function_that_is_refused_leaves_no_queue_behind() -> None:
    app = Faena("x", "redis://127.0.0.1:1/0")

    async def tick(_a: int, _b: int, _c: int) -> None: ...

    with pytest.raises(ConfigError):
        app.cron("* * * * *")(tick)
    assert app.queues == {}


def test_a_pool_takes_queues_and_names_but_no_bare_word() -> None:
    app = Faena("x", "redis://127.0.0.1:1/0")
    own, mail = app.queue("own"), app.queue("mail")
    assert app.pool("both", [own, "mail"]).queues == ("own", "mail")
    words: Any = "mail"
    for given in (words, mail, 7):
        with pytest.raises(ConfigError, match="queues must be a list of queues or their names"):
            app.pool("bare", given)
    assert set(app.pools) == {"both"}


def test_a_decorator_without_its_timing_is_refused() -> None:
    app = Faena("x", "redis://127.0.0.1:1/0")
    bare: Any = app
    with pytest.raises(ConfigError, match=r'such as @app\.cron\("0 2 \* \* \*"\), got <function'):
        bare.cron(lambda: None)
    with pytest.raises(ConfigError, match=r'such as @app\.every\("6h"\), got <function'):
        bare.every(lambda: None)
    assert app.schedules.declared == {}


def test_decorators_in_the_wrong_order_are_refused() -> None:
    app = Faena("x", "redis://127.0.0.1:1/0")
    queue = app.queue("q", concurrency=50)

    @app.every("1m")
    def tick() -> None: ...

    register: Any
    for register in (queue.task, queue.task(timeout="5s"), queue.batch(size=5)):
        with pytest.raises(ConfigError, match=r"write @app\.cron\(…\) or .* above @queue\.task"):
            register(tick)
    assert queue.tasks == {}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cron": "99 * * * *"}, "bad minute"),
        ({"every": "1h", "tz": "Mars/Olympus"}, "tz must be a time zone"),
        ({}, "must have one of cron, every and at"),
        ({"every": "1h", "end": "2020-01-01", "start": "2021-01-01"}, "end must not be before"),
        ({"every": "1h"}, "keeps the order of each tenant: its jobs must have a tenant"),
    ],
)
def test_bad_declarations_are_refused_when_they_are_made(given: Any, words: str) -> None:
    app = Faena("x", "redis://127.0.0.1:1/0")
    queue = app.queue("q", order="tenant")

    @queue.task
    async def work() -> None: ...

    with pytest.raises(ConfigError, match=words):
        app.schedule("s", work, **given)
    assert app.schedules.declared == {}


@pytest.mark.parametrize(("outcome", "told"), [("CREATED", 1), ("STALE", 0)])
def test_only_whoever_moves_a_schedule_on_tells_what_was_missed(
    outcome: str, told: int, caplog: pytest.LogCaptureFixture
) -> None:
    record = Record(base={}, since=Mark("code", 0))
    assert _wait_of("s", Fired(outcome), Verdict(2, (1,), 1, None, record)) == 0
    assert len(caplog.records) == told
