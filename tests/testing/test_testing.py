"""`faena.testing`, as a user's test suite meets it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from faena import DeadLetters, Discard, Faena, Job, Limit, RateLimited, Retry, Snooze
from faena.errors import ConfigError, PayloadError
from faena.outcomes import Buried, Released
from faena.testing import Clock, attempt, harness, run_inline, shared_url, sync_harness
from faena.testing.report import _WORDS, Ran, Report
from tests._support.valkey import Server, free_port

ELSEWHERE = f"redis://127.0.0.1:{free_port()}"
"""Where the app of these tests would go by itself: nobody listens there."""


class Shop:
    """A small program under test."""

    def __init__(self, **options: object) -> None:
        self.app = Faena("shop", ELSEWHERE)
        self.mail = self.app.queue(
            "mail", retry=Retry.exponential(attempts=3, jitter=0), limits=[Limit("5/min")]
        )
        self.bills = self.app.queue("bills")
        self.sent: list[str] = []
        self.welcome = self.mail.task(name="welcome")(self._welcome)
        self.charge = self.bills.task(name="charge")(self._charge)

    async def _welcome(self, to: str, job: Job) -> str:
        job.log(f"attempt {job.attempt}")
        job.progress(50)
        if to == "nobody":
            raise LookupError("no such address")
        self.sent.append(to)
        return f"sent to {to}"

    def _charge(self, cents: int) -> int:
        if cents < 0:
            raise Discard("a refund is no charge")
        return cents * 2


@pytest.fixture
def shop() -> Shop:
    return Shop()


async def test_the_app_is_pointed_at_a_real_server_and_is_untouched_afterwards(shop: Shop) -> None:
    before = dict(vars(shop.app))
    async with harness(shop.app) as h:
        await shop.welcome.enqueue("ana")
        wire = (await shop.app.runtime()).engine.wire
        assert b"valkey" in await wire.call("INFO", "server")
        assert await shop.mail.counts() == {**dict.fromkeys(_STATES, 0), "ready": 1}
        await h.drain()
    assert dict(vars(shop.app)) == before
    assert shop.sent == ["ana"]


_STATES = ("ready", "delayed", "running", "completed", "dead", "cancelled", "blocked")


async def test_a_test_leaves_no_key_behind_even_when_it_fails(shop: Shop, valkey: Server) -> None:
    async def failing() -> None:
        async with harness(shop.app, url=valkey.url) as h:
            await shop.welcome.enqueue("ana", unique="ana", delay="1h")
            await shop.mail.idempotency.begin("idem_org_user_1_welcome", owner="x")
            await h.drain(through="2h")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await failing()
    with valkey.client() as client:
        assert client.dbsize() == 0


async def test_tests_at_the_same_time_do_not_see_each_other() -> None:
    first, second = Shop(), Shop()
    async with harness(first.app) as one, harness(second.app) as other:
        await first.welcome.enqueue("ana")
        assert len(await one.jobs()) == 1
        assert await other.jobs() == []


async def test_what_was_enqueued_is_found_by_what_is_known_of_it(shop: Shop) -> None:
    async with harness(shop.app) as h:
        await shop.welcome.enqueue("ana", tenant="org-1", key="u-9", headers={"trace": "7"})
        await shop.welcome.enqueue("leo", delay="5m", priority="high", id="leo-1")
        await shop.charge.enqueue(100)
        await h.assert_enqueued(shop.welcome)
        await h.assert_enqueued(shop.welcome, count=2)
        await h.assert_enqueued(shop.welcome, payload="ana", tenant="org-1", key="u-9", count=1)
        await h.assert_enqueued(shop.welcome, headers={"trace": "7"}, state="ready")
        (leo,) = await h.assert_enqueued(shop.welcome, due_in="5m", priority="high", id="leo-1")
        assert leo.state == "delayed"
        await h.assert_enqueued(shop.charge, where=lambda cents: cents > 99)
        await h.assert_not_enqueued(shop.welcome, tenant="org-2")
        await h.assert_enqueued(shop.welcome, tenant=None, count=1)


async def test_a_failing_assertion_shows_what_was_enqueued_instead(shop: Shop) -> None:
    async with harness(shop.app) as h:
        with pytest.raises(AssertionError, match="nothing was enqueued"):
            await h.assert_enqueued(shop.welcome)
        await shop.welcome.enqueue("leo", delay="5m", tenant="org-2")
        with pytest.raises(AssertionError) as failed:
            await h.assert_enqueued(shop.welcome, payload="ana", tenant="org-1", count=1)
    assert str(failed.value) == (
        "expected 1 job of mail/welcome payload='ana' tenant='org-1', found 0; "
        "these were enqueued:\n"
        "  mail/welcome delayed due_in='5m' tenant='org-2' priority=10 payload=\"leo\""
    )


async def test_a_number_of_jobs_means_so_many_and_not_more(shop: Shop) -> None:
    async with harness(shop.app) as h:
        await shop.welcome.enqueue_many(["ana", "leo"])
        for count in (0, 1, 3):
            with pytest.raises(AssertionError, match=rf"expected {count} jobs? of .*, found 2"):
                await h.assert_enqueued(shop.welcome, count=count)


async def test_an_expectation_that_no_job_could_meet_is_refused(shop: Shop) -> None:
    async with harness(shop.app) as h:
        with pytest.raises(PayloadError, match="expected str"):
            await h.assert_enqueued(shop.welcome, payload=7)
        with pytest.raises(ConfigError, match="got 'tennant'; did you mean 'tenant'"):
            await h.assert_enqueued(shop.welcome, tennant="org-1")  # type: ignore[call-arg]
        with pytest.raises(ConfigError, match="got 'raedy'; did you mean 'ready'"):
            await h.assert_enqueued(shop.welcome, state="raedy")


async def test_a_drain_runs_what_is_ready_and_tells_how_it_ended(shop: Shop) -> None:
    async with harness(shop.app) as h:
        await shop.welcome.enqueue("ana")
        await shop.charge.enqueue(7)
        await shop.charge.enqueue(-7)
        report = await h.drain()
        assert report.counts == {"completed": 2, "dead": 1}
        assert [ran.result for ran in report.of("completed")] == ["sent to ana", 14]
        (dead,) = report.of("dead")
        assert isinstance(dead.raised, Discard)
        assert (dead.queue, dead.task, dead.number) == ("bills", "charge", 1)
        assert len(await h.drain()) == 0
        await h.assert_enqueued(shop.welcome, state="completed")
        (kept,) = await h.jobs(shop.mail)
        assert (kept.log, kept.progress) == (("attempt 1",), 50)


async def test_a_report_can_insist_that_everything_completed(shop: Shop) -> None:
    async with harness(shop.app) as h:
        await shop.charge.enqueue(7)
        assert len((await h.drain()).check()) == 1
        await shop.welcome.enqueue("nobody")
        with pytest.raises(AssertionError, match="LookupError: no such address") as failed:
            (await h.drain()).check()
    assert "raise LookupError" in str(failed.value)


@pytest.mark.parametrize("ending", sorted({*_WORDS.values(), "parked"} - {"completed"}))
def test_any_other_ending_is_none_that_a_report_insists_on(ending: str) -> None:
    ran = Ran(queue="q", task="t", id="a", number=1, ending=ending, outcome=Released())
    with pytest.raises(AssertionError, match=f"must all complete, got .*{ending}"):
        Report((ran,)).check()


async def test_time_passes_only_when_the_test_says_so(shop: Shop) -> None:
    async with harness(shop.app, start=datetime(2031, 5, 1, tzinfo=UTC)) as h:
        assert str(h.clock.now) == "2031-05-01 00:00:00+00:00"
        await shop.charge.enqueue(1, delay="5m")
        h.clock.advance("4m59s")
        assert len(await h.drain()) == 0
        h.clock.advance("1s")
        assert (await h.drain()).counts == {"completed": 1}
        h.clock.advance_to(datetime(2031, 5, 2, tzinfo=UTC))
        with pytest.raises(ConfigError, match="must not be before the clock's 2031-05-02"):
            h.clock.advance_to(datetime(2031, 5, 1, tzinfo=UTC))


async def test_a_drain_can_go_through_delays_and_retries(shop: Shop) -> None:
    async with harness(shop.app) as h:
        start = h.clock.now
        await shop.welcome.enqueue("nobody")
        await shop.charge.enqueue(3, delay="10m")
        await shop.charge.enqueue(4, delay="3h")
        report = await h.drain(through="1h")
        assert report.counts == {"retried": 2, "dead": 1, "completed": 1}
        assert [ran.number for ran in report if ran.task == "welcome"] == [1, 2, 3]
        assert (h.clock.now - start).total_seconds() == 3600
        await h.assert_enqueued(shop.charge, payload=4, due_in="2h")


async def test_a_drain_obeys_limits_holds_and_rate_limits(shop: Shop) -> None:
    async with harness(shop.app) as h:
        await shop.welcome.enqueue_many(["ana"] * 7)
        assert (await h.drain()).counts == {"completed": 5}
        h.clock.advance("1m")
        assert (await h.drain()).counts == {"completed": 2}
        await shop.bills.pause()
        await shop.charge.enqueue(1)
        assert len(await h.drain(through="1h")) == 0
        await shop.bills.resume()
        assert (await h.drain()).counts == {"completed": 1}


async def test_endings_of_a_handlers_choice_have_their_own_words() -> None:
    app = Faena("shop", ELSEWHERE)
    queue = app.queue("q")

    @queue.task
    async def choose(word: str) -> None:
        raise {"snooze": Snooze("1m"), "limit": RateLimited(30), "bad": ValueError()}[word]

    async with harness(app) as h:
        for word in ("bad", "snooze", "limit"):
            await choose.enqueue(word)
        report = await h.drain()
    assert report.counts == {"retried": 1, "snoozed": 1, "limited": 1}


async def test_dead_jobs_are_noted_as_the_app_says() -> None:
    options = DeadLetters(errors=(LookupError,), retry_after="5m")
    app = Faena("shop", ELSEWHERE, dead_letters=options)

    @app.queue("mail", retry=Retry.never()).task
    async def welcome(to: str) -> None:
        raise LookupError(to)

    ran = await attempt(welcome, "nobody")
    assert isinstance(ran.outcome, Buried)
    assert ran.outcome.note is not None
    assert ran.outcome.note.retry_us == options.retry_after_us
    async with harness(app) as h:
        await welcome.enqueue("nobody")
        await h.drain()
        assert (await app.dead_letters.stats()).due == 1


async def test_what_a_handler_enqueues_is_drained_too(shop: Shop) -> None:
    @shop.bills.task
    async def invoice(customers: list[str]) -> None:
        await shop.welcome.enqueue_many(customers)

    async with harness(shop.app) as h:
        await invoice.enqueue(["ana", "leo"])
        assert (await h.drain()).counts == {"completed": 3}
        await invoice.enqueue(["eva"])
        assert (await h.drain(shop.bills)).counts == {"completed": 1}
        await h.assert_enqueued(shop.welcome, payload="eva", state="ready")


async def test_a_handler_may_wait_for_another_job_when_several_run_at_once(shop: Shop) -> None:
    @shop.bills.task
    async def total(cents: list[int]) -> int:
        receipts = await shop.charge.enqueue_many(cents)
        return sum([await one.handle.result(timeout="60s") for one in receipts])

    async with harness(shop.app) as h:
        receipt = await total.enqueue([1, 2, 3])
        report = await h.drain(at_once=3)
        assert report.counts == {"completed": 4}
        assert await receipt.handle.result() == 12


async def test_a_job_that_runs_can_be_cancelled_during_a_drain(shop: Shop) -> None:
    begun = asyncio.Event()

    @shop.bills.task
    async def stuck() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with harness(shop.app) as h:
        receipt = await stuck.enqueue()
        draining = asyncio.create_task(h.drain())
        await begun.wait()
        assert await receipt.handle.cancel() == "asked"
        assert (await draining).counts == {"cancelled": 1}


async def test_a_drain_that_never_ends_fails_instead_of_hanging(shop: Shop) -> None:
    @shop.bills.task
    async def again() -> None:
        await again.enqueue()

    async with harness(shop.app) as h:
        await again.enqueue()
        with pytest.raises(AssertionError, match="a drain must end, got 20 attempts"):
            await h.drain(most=20)


async def test_a_drain_that_is_cut_short_hands_its_jobs_back(shop: Shop) -> None:
    begun = asyncio.Event()

    @shop.bills.task
    async def slow() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with harness(shop.app) as h:
        await slow.enqueue()
        draining = asyncio.create_task(h.drain())
        await begun.wait()
        draining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await draining
        (job,) = await h.assert_enqueued(slow, state="ready")
        assert job.attempts_made == 0


async def test_one_attempt_needs_no_broker(shop: Shop) -> None:
    assert await run_inline(shop.welcome, "ana") == "sent to ana"
    assert await run_inline(shop.charge, 4) == 8
    with pytest.raises(LookupError, match="no such address"):
        await run_inline(shop.welcome, "nobody")
    with pytest.raises(PayloadError, match="expected int"):
        await run_inline(shop.charge, "four")


async def test_one_attempt_tells_everything_that_became_of_it(shop: Shop) -> None:
    ran = await attempt(shop.welcome, "nobody", number=2, tenant="org-1")
    assert (ran.ending, ran.number, ran.log, ran.progress) == ("retried", 2, ("attempt 2",), 50)
    assert ran.outcome.delay_us == 2_000_000
    assert isinstance(ran.raised, LookupError)
    assert (await attempt(shop.welcome, "nobody", number=3)).ending == "dead"


async def test_a_result_that_cannot_travel_is_noticed_inline(shop: Shop) -> None:
    @shop.bills.task
    async def leak() -> object:
        return object()

    with pytest.raises(PayloadError, match="result must be JSON"):
        await run_inline(leak)


def test_code_without_an_event_loop_is_tested_the_same_way(shop: Shop) -> None:
    with sync_harness(shop.app) as h:
        receipt = shop.app.sync.enqueue(shop.charge, 4, delay="1m")
        h.assert_enqueued(shop.charge, payload=4, due_in="1m")
        h.assert_not_enqueued(shop.welcome)
        h.clock.advance("1m")
        assert h.drain().counts == {"completed": 1}
        assert shop.app.sync.result(receipt.handle) == 8
        assert h.run_inline(shop.charge, 5) == 10
        assert [job.state for job in h.jobs()] == ["completed"]


def test_a_clock_reads_naive_instants_as_utc() -> None:
    clock = Clock(datetime(2030, 1, 1))  # noqa: DTZ001 - that is what is tested
    assert clock() == 1_893_456_000_000_000


CONFTEST = """
import pytest
from program import app

pytest_plugins = ["faena.testing.plugin"]

@pytest.fixture
def faena_app():
    return app
"""

PROGRAM = """
from faena import Faena

app = Faena("program", "redis://127.0.0.1:1")

@app.queue("mail").task
async def welcome(to: str) -> str:
    return to.upper()
"""

SETTINGS = """
[pytest]
asyncio_mode = strict
asyncio_default_fixture_loop_scope = function
filterwarnings = error
"""

SUITE = """
import pytest
from program import app, welcome

@pytest.mark.asyncio
async def test_async(faena_harness):
    await welcome.enqueue("ana")
    await faena_harness.assert_enqueued(welcome, payload="ana")
    assert [ran.result for ran in await faena_harness.drain()] == ["ANA"]

def test_sync(faena_sync_harness):
    app.sync.enqueue(welcome, "leo")
    assert faena_sync_harness.drain().check().counts == {"completed": 1}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for name, text in (("conftest", CONFTEST), ("program", PROGRAM), ("test_suite", SUITE)):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    return tmp_path


def test_the_fixtures_work_in_a_users_own_suite_and_leave_no_server(suite: Path) -> None:
    options = ["-p", "no:cacheprovider", "-p", "no:xdist", "-v"]
    places = {"TMPDIR": str(suite), "PYTHONPATH": os.pathsep.join([str(suite), *sys.path])}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(suite)],
        cwd=suite,
        env={**os.environ, **places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 passed" in ran.stdout
    assert list(suite.glob("faena-*")) == []


def test_a_process_has_one_server_for_all_its_tests() -> None:
    assert shared_url() == shared_url()
    assert shared_url().startswith("unix://")
