"""What a type checker knows of tasks. `test_types` has it read; nothing here is ever run."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict, assert_type

import msgspec

from faena import Draft, Faena, Handle, Job, Receipt, Snooze, Task
from faena.testing import harness, run_inline, sync_harness

app = Faena("typing")
queue = app.queue("mail")


class Invoice(msgspec.Struct):
    total: int


class Cae(TypedDict):
    number: str


@queue.task
async def only_payload(invoice: Invoice) -> Cae:
    return {"number": str(invoice.total)}


@queue.task
async def payload_and_job(invoice: Invoice, job: Job) -> int:
    return invoice.total


@queue.task
async def job_and_payload(job: Job, invoice: Invoice) -> int:
    return invoice.total


@queue.task
async def only_job(job: Job) -> str:
    return job.id


@queue.task
async def nothing() -> None: ...


@queue.task
def plain_function(invoice: Invoice) -> list[int]:
    return [invoice.total]


@queue.task
def plain_job(job: Job) -> bool:
    return job.cancelled


@app.cron("0 2 * * *", tz="Europe/Madrid", overlap="skip")
async def nightly(job: Job) -> int:
    return job.attempt


@app.every("6h", payload=Invoice(7))
@queue.task
async def regular(invoice: Invoice) -> Cae:
    return {"number": str(invoice.total)}


app.schedule("late", regular, Invoice(8), at="2026-12-24T18:00", missed="all(3)")
assert_type(nightly, Task[None, Any])
assert_type(regular, Task[Invoice, Cae])


@queue.task(timeout="5s", run="process")
def with_options(invoice: Invoice, job: Job) -> Cae:
    return {"number": str(invoice.total)}


@queue.task(name="optional")
async def optional_payload(words: list[str] | None = None) -> int:
    return len(words or ())


@queue.task
async def anything(payload: Any) -> int:
    return len(payload)


@queue.task
async def any_mapping(payload: dict[str, Any], job: Job) -> Any:
    return payload


@queue.batch(size=5, wait="1s")
async def batch_of_nothing(invoices: list[Invoice]) -> None: ...


@queue.batch(5, per_tenant=True, timeout="5s")
async def batch_with_jobs(invoices: list[Invoice], jobs: list[Job]) -> list[Cae]:
    return [{"number": job.id} for job in jobs]


@queue.batch(size=5)
async def batch_of_endings(invoices: list[Invoice]) -> list[int | Exception | Snooze]:
    return [invoice.total or ValueError("nothing to bill") for invoice in invoices]


@queue.batch(size=5)
async def batch_gathered(invoices: list[Invoice]) -> list[int | BaseException]:
    calls = [payload_and_job(invoice) for invoice in invoices]
    return await asyncio.gather(*calls, return_exceptions=True)


@queue.batch(size=5, run="process")
def plain_batch(numbers: list[int], jobs: list[Job]) -> list[Exception | None] | None: ...


assert_type(batch_of_nothing, Task[Invoice, None])
assert_type(batch_with_jobs, Task[Invoice, Cae])
assert_type(batch_of_endings, Task[Invoice, int])
assert_type(batch_gathered, Task[Invoice, int])
assert_type(plain_batch, Task[int, None])
assert_type(only_payload, Task[Invoice, Cae])
assert_type(payload_and_job, Task[Invoice, int])
assert_type(job_and_payload, Task[Invoice, int])
assert_type(only_job, Task[Job, str])
assert_type(nothing, Task[None, None])
assert_type(plain_function, Task[Invoice, list[int]])
assert_type(plain_job, Task[Job, bool])
assert_type(with_options, Task[Invoice, Cae])
assert_type(optional_payload, Task[list[str] | None, int])
assert_type(anything, Task[Any, int])
assert_type(any_mapping, Task[dict[str, Any], Any])


async def producer() -> None:
    receipt = await only_payload.enqueue(Invoice(1), tenant="org-1", delay="5m")
    assert_type(receipt, Receipt[Cae])
    assert_type(receipt.handle, Handle[Cae])
    assert_type(await receipt.handle.result(timeout="30s"), Cae)
    assert_type(await (await only_job.enqueue(delay="1m")).handle.result(), str)
    assert_type(await (await nothing.enqueue()).handle.result(), None)
    assert_type(only_payload.draft(Invoice(2), key="k"), Draft[Invoice])
    many = await only_payload.enqueue_many([Invoice(1), only_payload.draft(Invoice(2))])
    assert_type(many, list[Receipt[Cae]])
    await anything.enqueue("abc")
    assert_type(await batch_with_jobs.enqueue(Invoice(1)), Receipt[Cae])
    assert_type(await plain_batch.enqueue_many([1, 2]), list[Receipt[None]])


def sync_producer() -> None:
    receipt = app.sync.enqueue(only_payload, Invoice(1), priority="high")
    assert_type(receipt, Receipt[Cae])
    assert_type(app.sync.result(receipt.handle, timeout="30s"), Cae)
    assert_type(app.sync.enqueue(nothing), Receipt[None])
    assert_type(app.sync.enqueue(only_job), Receipt[str])
    assert_type(app.sync.enqueue_many(plain_function, [Invoice(1)]), list[Receipt[list[int]]])
    assert_type(app.sync.run(queue.counts()), dict[str, int])


async def tester() -> None:
    assert_type(await run_inline(payload_and_job, Invoice(1)), int)
    assert_type(await run_inline(only_job), str)
    async with harness(app) as h:
        assert_type(await h.run_inline(only_payload, Invoice(1)), Cae)
        await h.assert_enqueued(only_payload, payload=Invoice(1), count=1)
    with sync_harness(app) as s:
        assert_type(s.run_inline(only_payload, Invoice(1)), Cae)


remote = app.remote_queue("elsewhere")
typed_stub = remote.stub("typed", payload=Invoice, result=Invoice)
bare_stub = remote.stub("bare")
idle_stub = remote.stub("idle", payload=None)


async def stubs() -> None:
    assert_type(await typed_stub.enqueue(Invoice(1), tenant="acme"), Receipt[Invoice])
    assert_type(await typed_stub.handle("j").result(), Invoice)
    assert_type(await bare_stub.enqueue({"any": "json"}), Receipt[Any])
    assert_type(await idle_stub.enqueue(), Receipt[Any])


async def once(job: Job) -> Invoice:
    async with queue.idempotency.once("charge-of-order-1", job, result=Invoice) as record:
        if not record.is_done:
            record.result = Invoice(1)
    assert_type(record.result, Invoice)
    return record.result
