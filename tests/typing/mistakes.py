"""Slips that a type checker must find. `test_types` has it read; nothing here is ever run.

A line that must be an error names the rule that finds it.
"""

from __future__ import annotations

import msgspec

from faena import Faena, Job, Middleware
from faena.testing import run_inline

app = Faena("typing")
queue = app.queue("mail")


class Invoice(msgspec.Struct):
    total: int


@queue.task
async def bill(invoice: Invoice, job: Job) -> int:
    return invoice.total


@queue.task
async def ping() -> None: ...


@queue.task
async def tick(job: Job) -> None: ...


@queue.batch(size=5)
async def bill_all(invoices: list[Invoice], jobs: list[Job]) -> list[int]:
    return [invoice.total for invoice in invoices]


async def producer() -> None:
    await bill_all.enqueue([Invoice(1)])  # error: reportArgumentType
    await bill.enqueue("invoice")  # error: reportArgumentType
    await bill.enqueue({"total": 1})  # error: reportArgumentType
    await bill.enqueue()  # error: reportCallIssue
    await ping.enqueue(Invoice(1))  # error: reportArgumentType
    await tick.enqueue(Invoice(1))  # error: reportArgumentType
    await bill.enqueue(Invoice(1), dely="5m")  # error: reportCallIssue
    await bill.enqueue(Invoice(1), delay=5)  # error: reportArgumentType
    await bill.enqueue(Invoice(1), at="5m")  # error: reportArgumentType
    await bill.enqueue(Invoice(1), on_conflict="ignore")  # error: reportArgumentType
    await bill.enqueue(Invoice(1), id=1.5)  # error: reportArgumentType
    await bill.enqueue_many([Invoice(1), 2])  # error: reportArgumentType
    receipt = await bill.enqueue(Invoice(1))
    word: str = await receipt.handle.result()  # error: reportAssignmentType
    await receipt.handle.result(timeout=5)  # error: reportArgumentType
    await run_inline(bill, 7)  # error: reportArgumentType
    print(word)  # noqa: T201 - nothing here is run


def sync_producer() -> None:
    app.sync.enqueue(bill, 7)  # error: reportArgumentType
    app.sync.enqueue(bill)  # error: reportArgumentType
    receipt = app.sync.enqueue(bill, Invoice(1))
    number: str = app.sync.result(receipt.handle)  # error: reportAssignmentType
    print(number)  # noqa: T201 - nothing here is run


app.queue("other", concurency=3)  # error: reportCallIssue
Faena("typing", middleware=[Middleware])  # error: reportArgumentType


@queue.task(timout="5s")  # error: reportCallIssue
async def misspelt(invoice: Invoice) -> None: ...


@queue.task  # error: reportArgumentType
async def three(invoice: Invoice, job: Job, more: int) -> None: ...


@queue.batch(sise=5)  # error: reportCallIssue
async def misspelt_batch(invoices: list[Invoice]) -> None: ...


@queue.batch(size=5)  # error: reportArgumentType
async def no_list(invoice: Invoice) -> None: ...


@queue.batch(size=5)  # error: reportArgumentType
async def no_list_back(invoices: list[Invoice]) -> int:
    return len(invoices)
