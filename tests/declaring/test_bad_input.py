"""Whatever is wrong is said at once, with the value and what would be valid, before any write."""

from __future__ import annotations

import asyncio
import math
import re
import socket
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from faena import (
    Backpressure,
    Death,
    Durability,
    Faena,
    FaenaError,
    IdempotencyKey,
    Job,
    Limit,
    Middleware,
    RateLimited,
    Retain,
    Retry,
    Snooze,
    WorkerOptions,
)
from faena.errors import ArgumentError, ConfigError, PayloadError, UnknownQueue
from faena.testing import harness
from tests._support.valkey import Server

URL = "redis://localhost"  # nothing here is ever dialled
DURATION = r"must be a timedelta, or a string such as '90s', '5m'"
NAME = r"must be 1 to 64 of a-z, 0-9, '\.', '_', '-' and start with a letter or digit"
LABEL = r"must be 1 to 128 printable characters without spaces"


def app() -> Faena:
    return Faena("shop", URL)


def queue(**options: Any) -> Any:
    return app().queue("mail", **options)


async def coroutine(payload: Any) -> None: ...


def function(payload: Any) -> None: ...


def splat(*payloads: int) -> None: ...


def named(*, payload: int) -> None: ...


def two(first: int, second: int) -> None: ...


def two_jobs(job: Job, other: Job) -> None: ...


def lost(payload: Nowhere) -> None: ...  # type: ignore[name-defined] # noqa: F821


def open_socket(payload: socket.socket) -> None: ...


def gives_socket() -> socket.socket: ...  # type: ignore[empty-body]


def generator(payload: int) -> Any:
    yield payload


def batch(payloads: list[int]) -> None: ...


def mourn(death: Death) -> None: ...


def hooked_task() -> Any:
    mail = queue()
    return mail.task(coroutine).on_dead(mail.task(mourn))


def task_of_hook() -> Any:
    mail = queue()
    return mail.task(mail.task(coroutine).on_dead(mourn))


def pool(**options: Any) -> Any:
    shop = app()
    return shop.pool("high", [shop.queue("mail")], **options)


class Thing:
    """No function, but it has one."""

    def method(self, payload: int) -> None: ...


DECLARATIONS: dict[str, tuple[Callable[[], Any], str]] = {
    # apps and URLs
    "app name": (lambda: Faena("My Shop", URL), f"app {NAME}, got 'My Shop'"),
    "namespace": (lambda: Faena("shop", URL, namespace="a:b"), f"namespace {NAME}, got 'a:b'"),
    "url without a scheme": (
        lambda: Faena("shop", "localhost:6379"),
        "url must start with a scheme such as valkey://, got 'localhost:6379'; valid: valkey://",
    ),
    "url of another kind": (lambda: Faena("shop", "http://h"), "url must have a known scheme"),
    "url with a bad port": (
        lambda: Faena("shop", "redis://:secret@h:99999"),
        r"url must have a port from 1 to 65535, got 'redis://\*\*\*@h:99999'",
    ),
    "url with an unknown option": (
        lambda: Faena("shop", "redis://h?databse=3"),
        r"url must not have option 'databse' \(valid: db\)",
    ),
    "url that is no text": (lambda: Faena("shop", 6379), "url must be a string such as valkey://"),
    "middleware that is a class": (
        lambda: Faena("shop", URL, middleware=[Middleware]),
        "middleware must be a list of Middleware objects, got",
    ),
    # queues
    "queue name": (lambda: app().queue("afip:invoice"), f"queue {NAME}, got 'afip:invoice'"),
    "queue option": (
        lambda: queue(concurency=3),
        "queue option must be a known name, got 'concurency'; did you mean 'concurrency'",
    ),
    "queue timeout": (lambda: queue(timeout=30), f"timeout {DURATION}.*, got 30"),
    "queue concurrency": (lambda: queue(concurrency=0), "from 1 to 10000, got 0"),
    "queue order": (lambda: queue(order="tennant"), "got 'tennant'; did you mean 'tenant'"),
    "queue priority": (lambda: queue(priority="hgih"), "got 'hgih'; did you mean 'high'"),
    "queue retry": (lambda: queue(retry=3), "retry must be a Retry, got 3"),
    "queue lease": (lambda: queue(lease="1ms"), "lease must be .* from 100ms to 1h, got '1ms'"),
    "limits that are texts": (
        lambda: queue(limits=["10/min"]),
        r"limits must be a list of limits such as \[Limit\('10/min'\)\], got \['10/min'\]",
    ),
    "limits that contradict": (
        lambda: queue(limits=[Limit("10/s"), Limit("5/min")]),
        "got 10/s and 5/min: 10/s can never be reached",
    ),
    "limit": (lambda: Limit("ten a minute"), "limit must be .* '10/min'.*, got 'ten a minute'"),
    "limit of nothing": (lambda: Limit("0/min"), "limit max must be .*, got 0"),
    "back-pressure": (
        lambda: Backpressure(soft=500, hard=100),
        r"soft must be less than hard \(100\), got 500",
    ),
    "back-pressure without a bound": (Backpressure, "must be given a bound, .*, got none"),
    "retention": (lambda: Retain(completed="forever"), f"retain completed {DURATION}.*'forever'"),
    "retry attempts": (lambda: Retry.exponential(attempts=0), "attempts must be .*, got 0"),
    "retry option": (
        lambda: Retry.fixed(max_attempts=2),  # type: ignore[call-arg]
        "retry option must be a known name, got 'max_attempts'; did you mean 'attempts'",
    ),
    "retry steps": (lambda: Retry.steps("5x"), f"{DURATION}.*, got '5x'"),
    "idempotency key": (lambda: IdempotencyKey("a b", "c", "d", "e"), f"{LABEL}, got 'a b'"),
    # tasks and handlers
    "task name": (
        lambda: queue().task(name="Send Mail")(coroutine),
        f"task name {NAME}, got 'Send Mail'",
    ),
    "task option": (
        lambda: queue().task(timout="3s")(coroutine),
        "task option must be a known name, got 'timout'; did you mean 'timeout'",
    ),
    "place to run": (
        lambda: queue().task(run="fiber")(function),
        "run must be 'async' or .*, got 'fiber'",
    ),
    "place for a coroutine": (
        lambda: queue().task(run="thread")(coroutine),
        "run must fit the handler of task coroutine, which is an async def, got 'thread'",
    ),
    "place for a function": (lambda: queue().task(run="async")(function), "which is a def"),
    "a process for a method": (
        lambda: queue().task(run="process")(Thing().method),
        "process task method must be a top-level function of its module, .*, got Thing.method",
    ),
    "no function": (lambda: queue().task("send"), "a task must be a function, got 'send'"),
    "a class": (lambda: queue().task(Thing), "a task must be a function, got <class"),
    "a generator": (
        lambda: queue().task(generator),
        "handler generator must return its result, got a generator function",
    ),
    "variable arguments": (lambda: queue().task(splat), "got a parameter [*]payloads: 'int'"),
    "keyword arguments": (lambda: queue().task(named), "got a parameter payload: 'int'"),
    "two payloads": (
        lambda: queue().task(two),
        "handler of task two must take a payload, a job, both or none, got a parameter second",
    ),
    "two jobs": (lambda: queue().task(two_jobs), "got a parameter other: 'Job'"),
    "an annotation that leads nowhere": (
        lambda: queue().task(lost),
        "annotations of handler lost must be defined names: name 'Nowhere'",
    ),
    "a payload that cannot travel": (
        lambda: queue().task(open_socket),
        "payload of task open_socket cannot be stored: .*got socket",
    ),
    "a result that cannot travel": (
        lambda: queue().task(gives_socket),
        "result of task gives_socket cannot be stored: .*got socket",
    ),
    # hooks and schedules
    "a hook of something else": (
        lambda: queue().task(coroutine).on_dead(batch),
        "hook batch must take a Death, a Job, both or none, got list",
    ),
    "a hook of deaths for failures": (
        lambda: queue().task(coroutine).on_failure(mourn),
        (
            "hook mourn must take a Failure, a Job, both or none, got "
            "<class 'faena.declaring.hooks.Death'>"
        ),
    ),
    "a hook that is a task": (
        hooked_task,
        "a hook must be a function, got <Task mail/mourn>; write only @coroutine.on_dead above",
    ),
    "a task that is a hook": (
        task_of_hook,
        "which is a task already; .* a hook such as @task.on_dead needs no @queue.task",
    ),
    "a schedule of a function": (
        lambda: app().schedule("nightly", function, every="1h"),  # type: ignore[arg-type]
        "task of schedule 'nightly' must be a task, got <function .*: write @queue.task above",
    ),
    # pools, workers and signals
    "memory without a unit": (lambda: pool(memory="512"), "size with a unit, .*, got '512'"),
    "memory of no process": (lambda: pool(memory="15Mi"), "at least \"16Mi\", .*, got '15Mi'"),
    "memory as a number": (lambda: pool(memory=1 << 30), "memory must be a size .*, got 1073"),
    "pool without queues": (lambda: app().pool("p", []), "must have at least one queue, got none"),
    "pool of unknown queues": (lambda: app().pool("p", ["mail"]), "no queue 'mail' in app shop"),
    "worker concurrency": (lambda: WorkerOptions(concurrency=0), "concurrency must be .*, got 0"),
    "worker grace": (lambda: WorkerOptions(grace="2d"), "grace must be .* 0s to 1d, got '2d'"),
    "worker seconds": (lambda: WorkerOptions(stuck=5), "stuck must be a timedelta, .*, got 5"),
    "worker rate": (
        lambda: WorkerOptions(rate="100"),
        "rate must be .* such as '50/s'.*, got '100'",
    ),
    "worker rate by cost": (
        lambda: WorkerOptions(rate=Limit("9/s", cost="eur")),
        "rate must be a limit on claims, got 9/s",
    ),
    "worker keyword": (
        lambda: WorkerOptions(grace_s=5),  # type: ignore[call-arg]
        "worker option must be a known name, got 'grace_s'; did you mean 'grace'",
    ),
    "app keyword": (
        lambda: Faena("shop", namspace="x"),  # type: ignore[call-arg]
        "app option must be a known name, got 'namspace'; did you mean 'namespace'",
    ),
    "retain keyword": (lambda: Retain(complete="1d"), "got 'complete'; did you mean 'completed'"),  # type: ignore[call-arg]
    "backpressure keyword": (lambda: Backpressure(sofd=1), "got 'sofd'; did you mean 'soft'"),  # type: ignore[call-arg]
    "group keyword": (lambda: app().group(on_done=1), "group option .*, got 'on_done'; valid:"),  # type: ignore[call-arg]
    "stub keyword": (
        lambda: app().remote_queue("q").stub("t", paylod=int),  # type: ignore[call-overload]
        "stub option .*, got 'paylod'; did you mean 'payload'",
    ),
    "pool keyword": (lambda: pool(instance=2), "got 'instance'; did you mean 'instances'"),
    "pause keyword": (lambda: queue().pause(for_="5m"), "pause option .*, got 'for_'"),  # type: ignore[call-arg]
    "directory": (
        lambda: Faena("shop", directory=5),
        "directory must be a string or a Path, got 5",
    ),  # type: ignore[arg-type]
    "learning nothing": (lambda: queue(learning=True), "learning must be given with limits"),
    "attempts of a task": (lambda: queue().task(attempts=0)(function), "attempts .* 1 to 1000"),
    "attempts beside retry": (
        lambda: queue().task(attempts=5, retry=Retry.never())(function),
        r"attempts and retry .*: use retry=Retry.exponential\(attempts=5\)",
    ),
    "a lambda in a process": (
        lambda: queue().task(name="x", run="process")(lambda x: x),
        "must be a top-level function of its module, .*, got .*<lambda>",
    ),
    "jitter beyond the interval": (
        lambda: app().every("1m", jitter="5m", payload=1)(function),
        "jitter must be at most the interval of 1m, got 5m",
    ),
    "a name of no cron": (
        lambda: app().cron("@dayly")(function),
        "cron must have 5 fields, .* or be one of @hourly, @daily, .*, got '@dayly'",
    ),
    "worker name": (lambda: WorkerOptions(name="a b"), f"worker name {LABEL}, got 'a b'"),
    "snooze": (lambda: Snooze("soon"), f"delay {DURATION}.*, got 'soon'"),
    "rate limit": (lambda: RateLimited(math.nan), "must be a finite number of seconds, got nan"),
    "scope": (lambda: RateLimited(1, scope="all"), "got 'all'; valid: queue, tenant"),
    "shards in an order": (lambda: queue(order="queue", shards=3), "shards must be 1 .*, got 3"),
    "durability level": (lambda: Durability("fsynced"), "DurabilityLevel, got 'fsynced': use"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", DECLARATIONS)
def test_a_declaration_that_is_wrong_raises_where_it_stands(case: str) -> None:
    declare, expected = DECLARATIONS[case]
    with pytest.raises(ConfigError, match=expected) as raised:
        declare()
    check_sentence(raised.value)


def check_sentence(error: FaenaError) -> None:
    """Lower case, one sentence, no dot at the end."""
    text = str(error)
    assert text[0].islower()
    assert not re.search(r"\.\s|\.$|\n", text)


def test_a_queue_that_is_not_there_is_a_missing_key_and_the_nearest_one_is_named() -> None:
    shop = app()
    shop.queue("mail")
    for unknown in (KeyError, ConfigError, UnknownQueue):
        with pytest.raises(unknown) as refused:
            shop.queues["mial"]
        assert "no queue 'mial' in app" in str(refused.value)
        assert str(refused.value).endswith("did you mean 'mail'? valid: mail")
    assert (shop.queues.get("mial"), "mial" in shop.queues) == (None, False)


def test_names_that_are_taken_are_refused() -> None:
    shop = app()
    mail = shop.queue("mail")
    mail.task(coroutine)
    with pytest.raises(ConfigError, match="queue 'mail' is declared twice"):
        shop.queue("mail")
    with pytest.raises(ConfigError, match="task 'coroutine' is registered twice on queue mail"):
        mail.task(name="coroutine")(function)
    shop.pool("fast", [mail])
    with pytest.raises(ConfigError, match="pool 'fast' is declared twice"):
        shop.pool("fast", [mail])
    assert list(mail.tasks) == ["coroutine"]
    assert mail.tasks["coroutine"].handler.function is coroutine


class Shop:
    """A correct program to be used wrongly."""

    def __init__(self) -> None:
        self.app = app()
        self.mail = self.app.queue("mail", payload_limit=1000)
        self.send = self.mail.task(name="send")(coroutine)
        self.ping = self.mail.task(name="ping")(self._ping)

    async def _ping(self) -> None: ...


Call = Callable[[Shop], Awaitable[Any]]

OPTIONS: dict[str, tuple[Call, str]] = {
    "tenant": (lambda s: s.send.enqueue(1, tenant="a b"), f"tenant {LABEL}, got 'a b'"),
    "empty tenant": (lambda s: s.send.enqueue(1, tenant=""), f"tenant {LABEL}, got ''"),
    "key": (lambda s: s.send.enqueue(1, key="k" * 129), f"key {LABEL}, got 'kkk"),
    "id": (lambda s: s.send.enqueue(1, id="a\n"), rf"id {LABEL}, got 'a\\n'"),
    "delay": (lambda s: s.send.enqueue(1, delay="5 minutes"), f"delay {DURATION}.*'5 minutes'"),
    "delay as a number": (lambda s: s.send.enqueue(1, delay=5), f"delay {DURATION}.*, got 5"),
    "delay into the past": (
        lambda s: s.send.enqueue(1, delay=timedelta(seconds=-5)),
        "delay must be a duration from 0s to 3650d, got",
    ),
    "priority": (lambda s: s.send.enqueue(1, priority=0), "from 1 to 100, got 0"),
    "option": (
        lambda s: s.send.enqueue(1, dely="5m"),
        "enqueue option must be a known name, got 'dely'; did you mean 'delay'",
    ),
    "durability": (
        lambda s: s.send.enqueue(1, durability="disk"),
        r"durability must be .*, got 'disk'; valid: fsynced, memory, replicated\(n\)$",
    ),
    "unique": (lambda s: s.send.enqueue(1, unique=7.5), r"unique must be .*throttle.*, got 7.5"),
    "headers": (lambda s: s.send.enqueue(1, headers=["x"]), "headers must be a mapping"),
    "timeout": (lambda s: s.send.enqueue(1, timeout="0s"), "from 1ms to 3650d, got '0s'"),
    "a word on conflicts without an id": (
        lambda s: s.send.enqueue(1, on_conflict="keep"),
        "on_conflict must be given together with id=, got 'keep' alone",
    ),
    "a word on conflicts of many without an id": (
        lambda s: s.send.enqueue_many([1, 2], on_conflict="keep"),
        "on_conflict must be given together with id=",
    ),
    "one id for many": (
        lambda s: s.send.enqueue_many([1, 2], id="x"),
        r"id must be given for each job, got 'x' for a whole list: use task.draft\(payload, id=…\)",
    ),
    "one id for many of a group": (
        lambda s: s.app.group().enqueue_many(s.send, [1, 2], id="x"),
        "id must be given for each job, got 'x' for a whole list",
    ),
    "option of many": (lambda s: s.send.enqueue_many([1], dely="5m"), "did you mean 'delay'"),
    "many that are a number": (lambda s: s.send.enqueue_many(5), "must be a list, .*, got int"),
    "many that are a text": (lambda s: s.send.enqueue_many("ana"), "got str: .* send.enqueue"),
    "many that are one": (lambda s: s.send.enqueue_many({"to": "ana"}), "got dict: .*send.enqueue"),
    "a change of nothing": (
        lambda s: s.send.handle("x").change(),
        "change must be given a delay or a priority, got neither",
    ),
    "id of a handle": (lambda s: s.send.handle("a b").state(), f"id {LABEL}, got 'a b'"),
    "patience for a result": (
        lambda s: s.send.handle("x").result(timeout=5),
        f"timeout {DURATION}.*, got 5",
    ),
    "new delay": (lambda s: s.send.handle("x").change(delay="x"), f"delay {DURATION}.*'x'"),
    "new priority": (lambda s: s.send.handle("x").change(priority=101), "got 101"),
    "state": (
        lambda s: s.mail.jobs("deed"),
        "state must be the name of a state, got 'deed'; did you mean 'dead'",
    ),
    "page size": (lambda s: s.mail.jobs("dead", limit=0), "limit must be .* 1 to 1000, got 0"),
    "cursor": (lambda s: s.mail.jobs("dead", cursor="zz"), "cursor must come from a page of dead"),
    "state to clean": (
        lambda s: s.mail.clean("running"),
        "state must be one that this call accepts, got 'running'; valid: cancelled",
    ),
    "state not to clean": (lambda s: s.mail.clean("ready"), "got 'ready'; valid: cancelled"),
    "age to clean": (lambda s: s.mail.clean("dead", age=7), f"age {DURATION}.*, got 7"),
    "hold reason": (
        lambda s: s.mail.pause(reason=" "),
        "reason must be 1 to 200 printable characters, got ' '",
    ),
    "hold duration": (lambda s: s.mail.pause(lasting="soon"), f"lasting {DURATION}.*'soon'"),
    "setting": (lambda s: s.mail.configure(max_runing=3), "did you mean 'max_running'"),
    "value of a setting": (lambda s: s.mail.configure(max_running=-1), "from 1 to .*, got -1"),
    "setting that must be": (lambda s: s.mail.configure(lease=None), "lease .*, got None"),
    "idempotency key": (
        lambda s: s.mail.idempotency.begin("short", owner="x"),
        "idempotency key must be an IdempotencyKey, .* at least 16 characters, got 'short'",
    ),
    "worker without queues": (lambda s: s.app.worker([]), "a worker must have at least one queue"),
    "worker of an app without queues": (lambda s: app().worker(), "must have at least one queue"),
    "worker for an unknown queue": (
        lambda s: s.app.worker(["mial"]),
        "no queue 'mial' in app shop; did you mean 'mail'",
    ),
    "worker option": (
        lambda s: s.app.run_worker(concurency=3),
        "worker option must be a known name, got 'concurency'; did you mean 'concurrency'",
    ),
}

CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)

PAYLOADS: dict[str, tuple[Call, str]] = {
    "oversized": (
        lambda s: s.send.enqueue("x" * 2000),
        "payload of task send must be at most 1000 bytes, got 2002",
    ),
    "not a number": (
        lambda s: s.send.enqueue({"a": [math.nan]}),
        r"payload must be JSON, got 1 bad field: a\[0\] is nan, which is not a JSON number",
    ),
    "a set": (
        lambda s: s.send.enqueue({"a": {1}}),
        "a is of type set, which JSON cannot represent",
    ),
    "an object": (lambda s: s.send.enqueue(object()), r"\$ is of type object"),
    "bytes": (lambda s: s.send.enqueue(b"x"), r"\$ is of type bytes"),
    "a circle": (lambda s: s.send.enqueue(CIRCLE), r"\$ is nested too deeply"),
    "half a character": (lambda s: s.send.enqueue("\ud800"), "has an unpaired surrogate"),
    "a key that is no text": (lambda s: s.send.enqueue({1: 2}), "has a key of type int"),
    "missing": (lambda s: s.send.enqueue(), "task send needs a payload"),
    "too much": (lambda s: s.ping.enqueue(3), "task ping takes no payload, got int"),
    "one of many": (lambda s: s.send.enqueue_many([1, object(), 3]), r"\$ is of type object"),
}


@pytest.mark.parametrize("case", OPTIONS)
async def test_a_call_with_a_wrong_option_writes_nothing(case: str, valkey: Server) -> None:
    call, expected = OPTIONS[case]
    await check_refused(call, ConfigError, expected, valkey)


@pytest.mark.parametrize(
    "case", ["patience for a result", "state", "page size", "state to clean", "delay", "id"]
)
async def test_what_one_call_is_given_is_an_argument(case: str, valkey: Server) -> None:
    call, expected = OPTIONS[case]
    await check_refused(call, ArgumentError, expected, valkey)


@pytest.mark.parametrize("case", PAYLOADS)
async def test_a_payload_that_cannot_travel_writes_nothing(case: str, valkey: Server) -> None:
    call, expected = PAYLOADS[case]
    await check_refused(call, PayloadError, expected, valkey)


async def check_refused(call: Call, kind: type[FaenaError], expected: str, valkey: Server) -> None:
    shop = Shop()
    async with harness(shop.app, url=valkey.url):
        with pytest.raises(kind, match=expected) as raised:
            async with asyncio.timeout(60):
                await call(shop)
        check_sentence(raised.value)
        with valkey.client() as client:
            assert client.keys("*") == []
