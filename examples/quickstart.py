"""The example of the README: three invoices, one of which fails once."""

import asyncio
from dataclasses import dataclass

from faena import Faena, Job, Limit, Retry

app = Faena("shop")  # no URL: a Valkey of its own, with its data under .faena/

invoices = app.queue(
    "invoice.pdf",
    limits=[Limit("50/s")],
    retry=Retry.exponential(base="100ms", floor="0s", attempts=3),
)


@dataclass
class Invoice:
    number: int
    customer: str


@invoices.task
async def render(invoice: Invoice, job: Job) -> str:
    if invoice.number == 2 and job.attempt == 1:
        raise ConnectionError("the printer is warming up")
    return f"{invoice.customer}-{invoice.number}.pdf, attempt {job.attempt}"


async def main() -> None:
    async with app:
        receipts = await render.enqueue_many([Invoice(number, "ana") for number in (1, 2, 3)])
        worker = asyncio.create_task(app.run_worker(until_empty=True))
        for receipt in receipts:
            print(await receipt.handle.result(timeout="10s"))
        await worker


if __name__ == "__main__":
    asyncio.run(main())
