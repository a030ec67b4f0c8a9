"""One call for many jobs: mails that go out by the dozen, each with an ending of its own.

python -m examples.batches
"""

import asyncio
from dataclasses import dataclass

from faena import Faena, Job, Retry

app = Faena("batches")

outbox = app.queue(
    "outbox", concurrency=20, retry=Retry.fixed("100ms", attempts=3, floor="0s", jitter=0)
)


@dataclass
class Mail:
    to: str


class Bounced(Exception):
    """The provider took the batch, but not this mail."""


@outbox.batch(size=10, wait="200ms", per_tenant=True)
async def send(mails: list[Mail], jobs: list[Job]) -> list[str | Exception]:
    print(f"one call for {jobs[0].tenant}: {len(mails)}")
    return [
        Bounced("mailbox full") if mail.to == "leo" and job.attempt == 1 else f"{mail.to}: sent"
        for mail, job in zip(mails, jobs, strict=True)
    ]


async def main() -> None:
    async with app:
        acme = await send.enqueue_many([Mail(f"ana-{n}") for n in range(12)], tenant="acme")
        bolt = await send.enqueue_many([Mail("leo"), Mail("eva")], tenant="bolt")
        worker = asyncio.create_task(app.run_worker(until_empty=True))
        for receipt in (acme[0], acme[-1], *bolt):
            print(await receipt.handle.result(timeout="10s"))
        await worker


if __name__ == "__main__":
    asyncio.run(main())
