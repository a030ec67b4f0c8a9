"""What one enqueue call can say of its job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from faena import Faena, IdempotencyKey, Job, Retry, Unique, WebhookKey
from faena.errors import ConfigError, JobCancelled, JobConflict, PayloadError
from faena.testing import Harness


def now_of(h: Harness, later: timedelta = timedelta(0)) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=h.clock()) + later


async def test_at_names_the_instant_on_the_server_s_clock(app: Faena, h: Harness) -> None:
    @app.queue("mail").task
    async def remind(name: str) -> str:
        return name

    await remind.enqueue("soon", at=now_of(h, timedelta(minutes=5)))
    await remind.enqueue("past", at=now_of(h, timedelta(days=-1)))
    assert [ran.result for ran in await h.drain()] == ["past"]
    h.clock.advance("5m")
    assert [ran.result for ran in await h.drain()] == ["soon"]


async def test_a_job_that_is_not_started_in_time_never_runs(app: Faena, h: Harness) -> None:
    @app.queue("codes").task
    async def send_code(code: int) -> int:
        return code

    lasts = await send_code.enqueue(1, expires="5m")
    until = await send_code.enqueue(2, expires=now_of(h, timedelta(minutes=5)))
    in_time = await send_code.enqueue(3, expires="6m")
    h.clock.advance("5m")
    assert (await h.drain()).counts == {"expired": 2, "completed": 1}
    assert await in_time.handle.result() == 3
    for late in (lasts, until):
        with pytest.raises(JobCancelled, match="expired before it could run") as caught:
            await late.handle.result()
        assert caught.value.error is not None
        assert caught.value.error.code == "EXPIRED"
        view = await late.handle.view()
        assert view is not None
        assert (view.state, view.attempts_made) == ("cancelled", 0)


async def test_an_instant_that_is_past_is_taken_in_and_expires(app: Faena, h: Harness) -> None:
    @app.queue("codes").task
    async def send_code(code: int) -> int:
        return code

    late = await send_code.enqueue(1, expires=now_of(h, timedelta(days=-1)))
    assert late.status == "created"
    assert (await h.drain()).counts == {"expired": 1}
    with pytest.raises(JobCancelled, match="expired before it could run"):
        await late.handle.result()


async def test_a_word_on_conflicts_counts_for_those_of_many_that_have_an_id(
    app: Faena, h: Harness
) -> None:
    @app.queue("mail").task
    async def greet(name: str) -> str:
        return name

    await greet.enqueue("ana", id="greeting")
    items = [greet.draft("leo", id="greeting"), "eva"]
    receipts = await greet.enqueue_many(items, on_conflict="keep")
    assert [(one.status, one.is_different) for one in receipts] == [
        ("duplicate", True),
        ("created", False),
    ]


async def test_a_retry_that_would_come_too_late_is_not_waited_for(app: Faena, h: Harness) -> None:
    @app.queue("codes", retry=Retry.fixed("10m", attempts=5)).task
    async def send_code() -> None:
        raise ConnectionError("busy")

    receipt = await send_code.enqueue(expires="15m")
    await h.drain(through="20m")
    view = await receipt.handle.view()
    assert view is not None
    assert (view.state, view.attempts_made) == ("cancelled", 2)
    assert [error.code for error in view.errors][-1] == "EXPIRED"


async def test_an_operator_s_retry_runs_a_job_that_has_expired(app: Faena, h: Harness) -> None:
    @app.queue("codes").task
    async def send_code() -> str:
        return "sent"

    receipt = await send_code.enqueue(expires="1m")
    h.clock.advance("1m")
    await h.drain()
    await receipt.handle.rerun()
    await h.drain()
    assert await receipt.handle.result() == "sent"


async def test_a_call_decides_how_often_its_job_is_tried(app: Faena, h: Harness) -> None:
    seen: list[tuple[int, int, bool]] = []

    @app.queue("calls", retry=Retry.fixed("1s", attempts=5, give_up_on=(KeyError,))).task
    async def call(bad_key: bool, job: Job) -> None:
        seen.append((job.attempt, job.max_attempts, job.is_last_attempt))
        raise KeyError if bad_key else ConnectionError

    await call.enqueue(False, attempts=2)
    assert (await h.drain(through="5m")).counts == {"retried": 1, "dead": 1}
    assert seen == [(1, 2, False), (2, 2, True)]

    await call.enqueue(False, retry=Retry.steps("7s", attempts=2, jitter=0))
    (ran,) = await h.drain()
    assert ran.outcome.delay_us == 7_000_000
    await h.drain(through="5m")

    await call.enqueue(True, retry=Retry.exponential(attempts=9))
    assert (await h.drain(through="5m")).counts == {"dead": 1}, "what the task gives up on"


async def test_a_dead_job_s_own_attempts_come_with_its_retry(app: Faena, h: Harness) -> None:
    @app.queue("calls", retry=Retry.fixed("1s", attempts=5)).task
    async def call() -> None:
        raise ConnectionError

    receipt = await call.enqueue(attempts=2)
    await h.drain(through="5m")
    await app.dead_letters.retry_as_new("calls", receipt.id, by="ana", reason="again")
    assert (await h.drain(through="5m")).counts == {"retried": 1, "dead": 1}


async def test_replace_keeps_the_newest_waiting_job(app: Faena, h: Harness) -> None:
    @app.queue("index").task
    async def index(version: int) -> int:
        return version

    first = await index.enqueue(1, replace="page-9")
    second = await index.enqueue(2, replace="page-9", delay="1m")
    third = await index.enqueue(3, replace="page-9")
    assert (second.replaced, third.replaced) == (first.id, second.id)
    assert [ran.result for ran in await h.drain(through="5m")] == [3]
    assert (await index.enqueue(4, replace="page-9")).replaced is None


async def test_a_taken_id_can_be_kept(app: Faena, h: Harness) -> None:
    @app.queue("bills").task
    async def bill(cents: int) -> None: ...

    first = await bill.enqueue(100, id="invoice-9", tenant="acme")
    with pytest.raises(JobConflict, match="another task, payload, tenant or key; it is ready"):
        await bill.enqueue(100, id="invoice-9", tenant="umbrella")
    kept = await bill.enqueue(200, id="invoice-9", on_conflict="keep")
    assert (kept.id, kept.status, kept.state) == (first.id, "duplicate", "ready")
    assert kept.is_different
    (many,) = await bill.enqueue_many([bill.draft(300, id="invoice-9")], on_conflict="keep")
    assert (many.status, many.is_different) == ("duplicate", True)
    await h.assert_enqueued(bill, count=1)


async def test_work_that_nobody_will_do_is_not_accepted(app: Faena, h: Harness) -> None:
    @app.queue("bills", retry=Retry.never()).task
    async def bill(cents: int) -> None:
        if cents < 0:
            raise ValueError

    for cents, word, is_accepted in ((1, "completed", True), (-1, "dead", False)):
        await bill.enqueue(cents, id=f"bill-{cents}")
        await h.drain()
        again = await bill.enqueue(cents, id=f"bill-{cents}")
        assert (again.status, again.state, again.is_accepted) == ("duplicate", word, is_accepted)
    stopped = await bill.enqueue(2, id="bill-2")
    assert stopped.is_accepted
    await stopped.handle.cancel()
    assert not (await bill.enqueue(2, id="bill-2")).is_accepted


async def test_ids_keys_and_tenants_may_be_what_a_program_has(app: Faena, h: Harness) -> None:
    seen: list[Job] = []

    @app.queue("bills").task
    async def bill(job: Job) -> None:
        seen.append(job)

    built = IdempotencyKey("org_1", "invoice", "9", "cae")
    number = UUID("12345678-1234-5678-1234-567812345678")
    receipt = await bill.enqueue(id=built, tenant=7, key=number, unique=WebhookKey("mp", "98"))
    again = await bill.enqueue(id=built, tenant=7, key=number)
    await h.drain()
    (job,) = seen
    assert (job.tenant, job.key) == ("7", str(number))
    assert again.id == receipt.id == job.id == str(built)
    assert IdempotencyKey.parse(job.id) == built
    assert await bill.handle(built).state() == "completed"
    with pytest.raises(ConfigError, match="key must have the form webhook_<source>_<id>"):
        WebhookKey.parse(job.id)
    for name in ("id", "key", "tenant", "unique", "replace"):
        with pytest.raises(ConfigError, match="got True"):
            await bill.enqueue(**{name: True})  # pyright: ignore[reportArgumentType] - that is the test


async def test_a_draft_is_only_for_its_own_task(app: Faena, h: Harness) -> None:
    queue = app.queue("shop")

    @queue.task
    async def greet(number: int) -> None: ...

    @queue.task
    async def refund(number: int) -> None: ...

    with pytest.raises(ConfigError, match=r"item 1 of the list: .* use greet\.enqueue_many"):
        await refund.enqueue_many([refund.draft(1), greet.draft(1)])
    with pytest.raises(PayloadError, match="item 2 of the list: "):
        await refund.enqueue_many([1, 2, "three"])  # pyright: ignore[reportArgumentType] - the slip
    await h.assert_enqueued(refund, count=0)


async def test_a_draft_s_options_count_before_those_of_the_call(app: Faena, h: Harness) -> None:
    seen: list[tuple[str | None, dict[str, str]]] = []

    @app.queue("shop").task
    async def greet(number: int, job: Job) -> None:
        seen.append((job.tenant, dict(job.headers)))

    drafts = [greet.draft(1), greet.draft(2, tenant="b", headers={"x": "own"}, delay="1m")]
    later = now_of(h, timedelta(hours=1))
    await greet.enqueue_many(drafts, tenant="a", headers={"x": "1", "y": "2"}, at=later)
    await h.drain(through="2h")
    assert seen == [("b", {"x": "own", "y": "2"}), ("a", {"x": "1", "y": "2"})]


async def test_a_flow_takes_instants_and_policies_of_its_drafts(app: Faena, h: Harness) -> None:
    @app.queue("shop").task
    async def greet(number: int, job: Job) -> int:
        return job.max_attempts

    flow = app.flow()
    flow.add(greet.draft(1, attempts=7, at=now_of(h, timedelta(minutes=1)), expires="1h"))
    running = await flow.start()
    await h.drain()
    h.clock.advance("1m")
    (ran,) = await h.drain()
    assert ran.result == 7
    del running
    with pytest.raises(ConfigError, match="replace must not be given to a job of a flow"):
        app.flow().add(greet.draft(1, replace="x"))
    with pytest.raises(
        ConfigError, match=r"unique must not .*: the flow or group enqueues it once"
    ):
        app.flow().add(greet.draft(1, unique="x"))
    with pytest.raises(ConfigError, match="unique and replace must not both be given"):
        greet.draft(1, unique=Unique.while_live("x"), replace="x")


async def test_a_handler_knows_when_its_attempt_began(app: Faena, h: Harness) -> None:
    seen: list[datetime] = []

    @app.queue("calls").task
    async def call(job: Job) -> None:
        seen.append(job.started_at)

    receipt = await call.enqueue(attempts=4)
    h.clock.advance("10s")
    began = now_of(h)
    await h.drain()
    view = await receipt.handle.view()
    assert view is not None
    assert (seen, view.max_attempts, view.schedule, view.instant) == ([began], 4, None, None)


async def test_a_job_knows_when_it_was_enqueued_and_started(app: Faena, h: Harness) -> None:
    seen: list[Job] = []

    @app.queue("calls", retry=Retry.fixed("1m", attempts=2, jitter=0)).task
    async def call(job: Job) -> None:
        seen.append(job)
        raise ConnectionError

    before = now_of(h)
    receipt = await call.enqueue(priority=3)
    waiting = await receipt.handle.view()
    assert waiting is not None
    h.clock.advance("10s")
    await h.drain(through="2m")
    first, second = seen
    near = timedelta(milliseconds=1)
    assert before <= first.enqueued_at <= before + near
    assert second.enqueued_at == first.enqueued_at
    assert first.started_at == before + timedelta(seconds=10)
    assert second.started_at >= first.started_at + timedelta(minutes=1)
    view = await receipt.handle.view()
    assert view is not None
    assert view.enqueued_at == waiting.enqueued_at == first.enqueued_us
    assert view.started_at == second.started_us
    assert view.finished_at is not None
