"""`idempotency.once`: who does the work, who waits, and what is left behind by each ending."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from faena import Faena, Job, Queue, Snooze
from faena.errors import (
    ConfigError,
    InvalidTransition,
    JobCancelled,
    PayloadError,
    StoreUnavailable,
)
from faena.idempotency import Once
from faena.job import Spec
from faena.worker.worker import Worker
from tests._support.eventually import eventually
from tests._support.valkey import Server

KEY = "charge-of-order-4711"


class Receipt(msgspec.Struct):
    number: int


@pytest.fixture
async def till(valkey: Server, namespace: str) -> AsyncIterator[Queue]:
    app = Faena("shop", valkey.url, namespace=namespace)
    till = app.queue("till")
    yield till
    await till.obliterate(force=True)
    await app.close()


def job_of(job_id: str, *, origin: str | None = None) -> Job:
    job = Job("till", job_id, Spec(task="charge"))
    job.origin = origin or job_id
    return job


async def status_of(till: Queue, owner: str = "somebody") -> str:
    """What another job would find; beginning a record, where nobody is at it, ends it again."""
    found = await till.idempotency.begin(KEY, owner=owner)
    if found.is_mine:
        await till.idempotency.clear(KEY, owner=owner)
    return found.status


async def test_the_result_of_the_first_answers_whoever_comes_later(till: Queue) -> None:
    async with till.idempotency.once(KEY, job_of("a"), result=Receipt) as record:
        assert not record.is_done
        record.result = Receipt(7)
    async with till.idempotency.once(KEY, job_of("b"), result=Receipt) as again:
        assert again.is_done
        assert again.result == Receipt(7)
        with pytest.raises(InvalidTransition, match="is already done"):
            again.result = Receipt(8)


async def test_work_without_a_result_is_done_at_the_end_of_the_block(till: Queue) -> None:
    async with till.idempotency.once(KEY, job_of("a")):
        pass
    async with till.idempotency.once(KEY, job_of("b")) as again:
        assert (again.is_done, again.result) == (True, None)


async def test_work_that_failed_may_be_begun_by_anybody(till: Queue) -> None:
    with pytest.raises(ConnectionResetError):
        async with till.idempotency.once(KEY, job_of("a")):
            raise ConnectionResetError
    async with till.idempotency.once(KEY, job_of("b")) as again:
        assert not again.is_done


async def test_what_fails_after_the_result_does_not_undo_the_work(till: Queue) -> None:
    async def work() -> None:
        async with till.idempotency.once(KEY, job_of("a")) as record:
            record.result = "paid"
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await work()
    async with till.idempotency.once(KEY, job_of("a")) as again:
        assert (again.is_done, again.result) == (True, "paid")


async def test_a_result_that_cannot_be_kept_is_refused_where_it_is_set(till: Queue) -> None:
    with pytest.raises(PayloadError):
        async with till.idempotency.once(KEY, job_of("a"), result=Receipt) as record:
            record.result = Receipt("seven")  # pyright: ignore[reportArgumentType] - the mistake
    assert await status_of(till) == "began"


async def test_a_job_of_another_line_waits_while_one_is_at_it(till: Queue) -> None:
    async with till.idempotency.once(KEY, job_of("a")):
        with pytest.raises(Snooze) as put_off:
            async with till.idempotency.once(KEY, job_of("b"), wait="3s"):
                raise AssertionError("two at once")
        assert put_off.value.delay_us == 3_000_000
        assert await status_of(till) == "pending"
    assert await status_of(till) == "completed"


async def test_the_line_of_a_job_goes_on_with_what_its_dead_one_had_begun(till: Queue) -> None:
    first = till.idempotency.once(KEY, job_of("a"))
    await first.__aenter__()  # and its process is gone
    stop_extending(first)
    async with till.idempotency.once(KEY, job_of("b", origin="a")) as record:
        assert not record.is_done
        record.result = "paid"
    assert await status_of(till) == "completed"


async def test_an_attempt_that_was_succeeded_cannot_give_up_its_successors_work(
    till: Queue,
) -> None:
    lost = till.idempotency.once(KEY, job_of("a"))
    await lost.__aenter__()
    async with till.idempotency.once(KEY, job_of("a")):
        await lost.__aexit__(asyncio.CancelledError, asyncio.CancelledError(), None)
        assert await status_of(till) == "pending"
    await lost.__aexit__(ValueError, ValueError(), None)  # nor what its successor has done
    assert await status_of(till) == "completed"


async def test_work_that_takes_long_keeps_its_record(
    till: Queue, valkey: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("faena.idempotency._EXTEND_S", 0.01)
    with valkey.client() as client:
        async with till.idempotency.once(KEY, job_of("a")):
            (record,) = client.scan_iter("*:idem:*")
            client.pexpire(record, 30_000)
            await eventually(lambda: client.pttl(record) > 30_000)


async def test_work_whose_process_says_nothing_more_may_be_begun_by_others_after_a_while(
    till: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("faena.idempotency._HELD", timedelta(milliseconds=200))
    gone = till.idempotency.once(KEY, job_of("a"))
    await gone.__aenter__()
    stop_extending(gone)

    async def is_free() -> bool:
        return await status_of(till) == "began"

    await eventually(is_free)


def stop_extending(once: Once[Any]) -> None:
    """As the end of its process would."""
    extending: asyncio.Task[None] = vars(once)["_extending"]
    extending.cancel()


@pytest.mark.parametrize("ending", ["timeout", "cancel", "shutdown"])
async def test_an_attempt_that_is_stopped_gives_its_work_up(till: Queue, ending: str) -> None:
    begun = asyncio.Event()

    @till.task(timeout="200ms" if ending == "timeout" else "30s")
    async def charge(job: Job) -> None:
        async with till.idempotency.once(KEY, job):
            begun.set()
            await asyncio.sleep(30)

    app = charge.app
    receipt = await charge.enqueue()
    worker: Worker = await app.worker()
    running = asyncio.create_task(worker.run())
    await begun.wait()
    assert ending == "timeout" or await status_of(till) == "pending"
    if ending == "cancel":
        await receipt.handle.cancel()
        with pytest.raises(JobCancelled):
            await receipt.handle.result("60s")
    elif ending == "timeout":

        async def has_failed() -> bool:
            view = await receipt.handle.view()
            return view is not None and bool(view.errors)

        await eventually(has_failed)
    else:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def is_free() -> bool:
        return await status_of(till) == "began"

    await eventually(is_free)
    worker.stop()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_result_reaches_the_record_though_the_attempt_is_told_to_stop(till: Queue) -> None:
    async def work() -> None:
        async with till.idempotency.once(KEY, job_of("a")) as record:
            record.result = "paid"
            task = asyncio.current_task()
            assert task is not None
            asyncio.get_running_loop().call_soon(task.cancel)

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(work())
    async with till.idempotency.once(KEY, job_of("b")) as again:
        assert again.result == "paid"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"key": "short"}, "idempotency key must be an IdempotencyKey, .* at least 16"),
        ({"job": "a"}, "job must be a Job, got 'a'"),
        ({"wait": "0s"}, "wait must be"),
        ({"wait": 5}, "wait must be"),
        ({"keep": "0s"}, "keep must be"),
        ({"result": object()}, "payload type must be"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(till: Queue, given: Any, words: str) -> None:
    options = {"key": KEY, "job": job_of("a")} | given
    with pytest.raises(ConfigError, match=words):
        till.idempotency.once(options.pop("key"), options.pop("job"), **options)


async def test_work_that_is_done_is_put_on_record_through_an_outage() -> None:
    with Server("appendonly yes", "appendfsync always") as server:
        app = Faena("shop", server.url, patience="2s")
        till = app.queue("till")
        await till.idempotency.begin("another-key-of-the-till", owner="o")
        async with till.idempotency.once(KEY, job_of("a"), result=int) as record:
            record.result = 7
            server.kill()
            ending = asyncio.create_task(return_late(till, server))
        await ending
        assert await status_of(till) == "completed"
        await app.close()


async def return_late(till: Queue, server: Server) -> None:
    """Start the broker again when others have lost their patience."""
    with pytest.raises(StoreUnavailable):
        await till.idempotency.begin("another-key-of-the-till", owner="o")
    await asyncio.to_thread(server.start)


async def test_a_result_is_kept_as_long_as_was_asked_for(till: Queue) -> None:
    async with till.idempotency.once(KEY, job_of("a"), keep="90d") as record:
        record.result = 7
    digest = hashlib.blake2b(KEY.encode(), digest_size=16).hexdigest()
    engine = (await till.app.runtime()).engine
    left_ms = await engine.command("PTTL", "till", f"idem:{digest}")
    assert left_ms > 89 * 24 * 3_600_000
