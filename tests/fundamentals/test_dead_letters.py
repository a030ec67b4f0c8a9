"""What becomes of jobs that died."""

from __future__ import annotations

import pytest

from faena import DeadLetters, Discard, Faena, Job, RedriveView, Retry
from faena.deadletter.upkeep import Upkeep
from faena.errors import ConfigError, InvalidTransition, JobNotFound
from faena.queue import Queue
from faena.task import Task
from faena.testing import Harness


class Provider:
    """Something that handlers need, and that is down for a while."""

    def __init__(self) -> None:
        self.is_up = False
        self.served: list[tuple[int, int]] = []

    def call(self, number: int, job: Job) -> None:
        if not self.is_up:
            raise ConnectionRefusedError(f"[Errno 111] cannot reach 10.0.0.{number}")
        self.served.append((number, job.attempt))


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
def send(app: Faena, provider: Provider) -> Task[int, None]:
    mail = app.queue("mail", retry=Retry.never())

    @mail.task
    async def send(number: int, job: Job) -> None:
        provider.call(number, job)

    return send


async def test_a_dead_job_is_at_the_desk_with_what_it_died_of(
    app: Faena, h: Harness, send: Task[int, None]
) -> None:
    receipt = await send.enqueue(7, tenant="acme")
    await h.drain()
    letter = await app.dead_letters.get("mail", receipt.id)
    assert letter is not None
    assert (letter.task, letter.tenant, letter.status) == ("send", "acme", "pending")
    assert (letter.error.name, letter.error.code) == ("ConnectionRefusedError", "ECONNREFUSED")
    assert "10.0.0.7" in letter.error.message
    assert "provider.call" in (letter.error.stack or "")
    assert (letter.attempts_made, letter.resolution, bytes(letter.payload or b"")) == (
        1,
        None,
        b"7",
    )
    assert await app.dead_letters.get("mail", "never") is None


async def test_a_retry_makes_a_new_job_that_knows_where_it_comes_from(
    app: Faena, h: Harness, send: Task[int, None], provider: Provider
) -> None:
    receipt = await send.enqueue(7, tenant="acme")
    await h.drain()
    provider.is_up = True
    new_id = await app.dead_letters.retry_as_new("mail", receipt.id, by="ana", reason="it is back")
    await h.drain()
    assert provider.served == [(7, 1)]  # with fresh attempts
    made = await app.queues["mail"].handle(new_id).view()
    assert made is not None
    assert (made.state, made.priority, made.retry_of) == ("completed", 5, receipt.id)
    letter = await app.dead_letters.get("mail", receipt.id)
    assert letter is not None
    assert (letter.status, letter.retried_as) == ("retried", new_id)
    assert letter.resolution is not None
    assert (letter.resolution.action, letter.resolution.by) == ("retry", "ana")


async def test_a_handler_knows_the_first_job_of_its_line(app: Faena, h: Harness) -> None:
    seen: list[tuple[str, str]] = []

    @app.queue("mail", retry=Retry.never()).task
    async def send(_number: int, job: Job) -> None:
        seen.append((job.id, job.origin))
        raise ConnectionRefusedError

    first = (await send.enqueue(7)).id
    await h.drain()
    second = await app.dead_letters.retry_as_new("mail", first)
    await h.drain()
    third = await app.dead_letters.retry_as_new("mail", second)
    await h.drain()
    assert seen == [(first, first), (second, first), (third, first)]
    for job_id in (first, third):
        view = await app.queues["mail"].handle(job_id).view()
        letter = await app.dead_letters.get("mail", job_id)
        assert view is not None
        assert letter is not None
        assert (view.origin, letter.origin) == (first, first)


async def test_what_is_decided_is_decided_once(
    app: Faena, h: Harness, send: Task[int, None]
) -> None:
    first, second = await send.enqueue_many([1, 2])
    await h.drain()
    desk = app.dead_letters
    await desk.resolve("mail", first.id, by="ana", reason="sent by hand")
    await desk.discard("mail", second.id, by="ana", reason="nobody needs it")
    with pytest.raises(InvalidTransition, match="it is already resolved"):
        await desk.retry_as_new("mail", first.id)
    with pytest.raises(InvalidTransition, match="it is already discarded"):
        await desk.resolve("mail", second.id)
    with pytest.raises(JobNotFound):
        await desk.discard("mail", "never")
    letter = await desk.get("mail", first.id)
    assert letter is not None
    assert letter.resolution is not None
    assert letter.resolution.reason == "sent by hand"


async def test_a_job_that_was_dealt_with_is_not_run_again(
    app: Faena, h: Harness, send: Task[int, None]
) -> None:
    jobs = [receipt.id for receipt in await send.enqueue_many([1, 2, 3])]
    await h.drain()
    desk = app.dead_letters
    await desk.resolve("mail", jobs[0], by="ana", reason="sent by hand")
    await desk.discard("mail", jobs[1], by="ana", reason="nobody needs it")
    new_id = await desk.retry_as_new("mail", jobs[2], by="ana")
    before = [await desk.get("mail", job) for job in jobs]
    for job, words in zip(
        jobs,
        (
            "it is resolved at the dead-letter desk; enqueue a new job",
            "it is discarded at the dead-letter desk; enqueue a new job",
            f"it was retried as {new_id}; rerun that one",
        ),
        strict=True,
    ):
        with pytest.raises(InvalidTransition, match=f"cannot rerun job {job}: {words}"):
            await send.handle(job).rerun()
    assert [await desk.get("mail", job) for job in jobs] == before


async def test_the_desk_is_listed_by_filter_and_page(
    app: Faena, h: Harness, send: Task[int, None]
) -> None:
    @app.queue("other", retry=Retry.never()).task
    async def fail(_number: int) -> None:
        raise ValueError("no")

    for number in range(6):
        await send.enqueue(number, tenant="acme" if number % 2 else "globex")
        await h.drain(through="1m")
    await fail.enqueue(9, tenant="acme")
    await h.drain(through="1m")
    desk = app.dead_letters
    newest, *_ = (await desk.list()).items
    assert newest.queue == "other"
    page = await desk.list(queues="mail", tenant="acme", limit=2)
    rest = await desk.list(queues="mail", tenant="acme", limit=2, cursor=page.cursor)
    numbers = [bytes(one.payload or b"") for one in (*page.items, *rest.items)]
    assert (numbers, rest.cursor) == ([b"5", b"3", b"1"], None)
    assert len((await desk.list(error="ECONNREFUSED", older_than="3m")).items) == 5
    assert [one.task for one in (await desk.list(error="ValueError")).items] == ["fail"]
    with pytest.raises(ConfigError, match="cursor must come from a page of the same filter"):
        await desk.list(queues="mail", tenant="globex", limit=2, cursor=page.cursor)


async def test_failures_of_a_kind_are_one_group(
    app: Faena, h: Harness, send: Task[int, None]
) -> None:
    await send.enqueue_many([1, 2, 3])
    await h.drain()
    (group,) = await app.dead_letters.groups()
    assert (group.queue, group.pending, group.code) == ("mail", 3, "ECONNREFUSED")
    assert group.sample == "[Errno #] cannot reach #"
    page = await app.dead_letters.list(fingerprint=group.fingerprint)
    assert len(page.items) == 3


async def test_a_redrive_retries_all_that_a_filter_asks_for(
    app: Faena, h: Harness, send: Task[int, None], provider: Provider
) -> None:
    await send.enqueue_many(range(60))
    await h.drain()
    provider.is_up = True
    seen: list[RedriveView] = []

    view = await app.dead_letters.redrive("mail", task="send", report=seen.append)
    assert (view.state, view.moved) == ("done", 60)
    assert [one.moved for one in seen] == list(range(0, 61, 10))
    await h.drain()
    assert len(provider.served) == 60
    stats = await app.dead_letters.stats()
    assert stats.by_status == {"pending": 0, "retried": 60, "discarded": 0, "resolved": 0}


async def test_passing_errors_are_retried_by_themselves_twice(
    app: Faena, h: Harness, send: Task[int, None]
) -> None:
    await send.enqueue(7)
    await h.drain()
    upkeep = Upkeep(app._desk_queues, DeadLetters().settled({}), ["mail"])
    assert await upkeep.look_after("mail") == []  # an hour must pass
    lives = 0
    for _ in range(5):
        h.clock.advance("1h")
        lives += len(await upkeep.look_after("mail"))
        await h.drain()
    assert lives == 2
    letters = (await app.dead_letters.list(is_newest_first=False)).items
    assert [one.status for one in letters] == ["retried", "retried", "pending"]
    assert letters[2].origin == letters[0].id
    assert letters[1].resolution is not None
    assert letters[1].resolution.action == "auto"


async def test_operators_are_told_of_all_queues_together_once_an_hour(
    app: Faena, h: Harness, send: Task[int, None]
) -> None:
    @app.queue("bills", retry=Retry.never()).task
    async def charge(_cents: int) -> None:
        raise ValueError("no")

    first, *_ = await send.enqueue_many(range(6))
    await h.drain(through="1s")
    await charge.enqueue_many(range(6))
    await h.drain()
    options = DeadLetters().settled({})
    mail, bills = (Upkeep(app._desk_queues, options, [queue]) for queue in ("mail", "bills"))
    assert await mail.send_alerts() == ["dead_surge"]  # twelve, where ten may be
    assert await bills.send_alerts() == []
    h.clock.advance("24h")
    assert await bills.send_alerts() == ["dead_old"]
    engine = (await app.runtime()).engine
    events = await engine.command("XRANGE", "bills", "events", "-", "+")
    told = {
        name: value for _, flat in events for name, value in zip(flat[::2], flat[1::2], strict=True)
    }
    assert told[b"dead_surge"] == b"12"
    assert told[b"dead_old"] == f"mail/{first.id}".encode()


async def test_a_discarded_job_is_not_retried_by_itself(app: Faena, h: Harness) -> None:
    @app.queue("mail").task
    async def send(_to: str) -> None:
        raise Discard("no such address") from TimeoutError()

    receipt = await send.enqueue("nobody")
    await h.drain()
    letter = await app.dead_letters.get("mail", receipt.id)
    assert letter is not None
    assert (letter.error.name, letter.error.code) == ("Discard", None)
    assert (await app.dead_letters.stats()).due == 0


async def test_the_desk_is_asked_for_any_code_that_it_shows(app: Faena, h: Harness) -> None:
    class Declined(Exception):
        code = "card declined"

    @app.queue("bills", retry=Retry.never()).task
    async def charge(_cents: int) -> None:
        raise Declined("no")

    receipt = await charge.enqueue(5)
    await h.drain()
    (letter,) = (await app.dead_letters.list(error="card declined")).items
    assert (letter.id, letter.error.code) == (receipt.id, "card declined")
    with pytest.raises(ConfigError, match="error must be 1 to 128 printable characters"):
        await app.dead_letters.list(error="x" * 129)


async def test_code_without_an_event_loop_reads_the_desk_too(
    app: Faena, h: Harness, send: Task[int, None]
) -> None:
    import asyncio

    await send.enqueue(7)
    await h.drain()

    def look() -> int:
        return app.sync.run(app.dead_letters.stats()).total

    assert await asyncio.to_thread(look) == 1


async def test_a_queue_that_the_app_does_not_have_is_refused(app: Faena, h: Harness) -> None:
    app.queue("mail")
    with pytest.raises(ConfigError, match="did you mean 'mail'"):
        await app.dead_letters.list(queues="mial")
    assert isinstance(app.queues["mail"], Queue)
