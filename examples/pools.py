"""Worker pools: which queues share processes, how many, how large.

    faena worker examples.pools:app --pool fast
    WORKER_POOL=heavy faena worker examples.pools:app

Without a command line, `python -m examples.pools` runs one worker of each pool in this process.
"""

import asyncio

from faena import Faena, Priority, Retry, WorkerOptions

app = Faena("pools")

WHATSAPP = Retry.steps("5s", "15s", "60s", attempts=3)

webhooks = app.queue("payment.webhook", priority=Priority.HIGH, concurrency=20)
messages = app.queue("whatsapp.outbound", priority=Priority.HIGH, retry=WHATSAPP)
reports = app.queue("analytics", priority=Priority.BULK, concurrency=2, timeout="10m")

fast = app.pool("fast", [webhooks, messages], instances=2, concurrency=24)
heavy = app.pool("heavy", [reports], memory="512Mi")


@webhooks.task
async def take_payment(payment: str) -> str:
    return f"payment {payment} is booked"


@messages.task
async def send(to: str) -> str:
    return f"message to {to} is sent"


@reports.task
def count(month: str) -> str:
    """A plain function: it runs in a thread and holds nobody up."""
    return f"{month}: {sum(range(1_000_000)):,} visits"


async def main() -> None:
    async with app:
        receipts = [
            await take_payment.enqueue("mp-98765"),
            await send.enqueue("ana"),
            await count.enqueue("2024-11"),
        ]
        workers = [
            await app.worker(pool.queues, WorkerOptions(name=name, concurrency=pool.concurrency))
            for name, pool in app.pools.items()
        ]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        for receipt in receipts:
            print(await receipt.handle.result(timeout="10s"))
        for worker in workers:
            worker.stop()
        await asyncio.gather(*running)


if __name__ == "__main__":
    asyncio.run(main())
