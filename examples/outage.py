"""A service is down for two seconds: few calls are wasted, no job is lost, nobody storms it.

python -m examples.outage
"""

import asyncio
import logging
from collections import Counter
from contextlib import suppress

import httpx

from faena import Breaker, Faena, Retry

logging.getLogger("faena.worker").setLevel(logging.CRITICAL)  # it would tell of each failure

app = Faena("outage")

afip = app.upstream(
    "afip",
    limits=["5000/min"],
    breaker=Breaker(volume=5, open="500ms", longest="1s", ramp="1s"),
)
invoices = app.queue("invoices", concurrency=4, retry=Retry.fixed("50ms", attempts=10, jitter=0))
client = httpx.AsyncClient()


class StandIn:
    """Stands in for AFIP: answers 503 while it is down, and counts."""

    def __init__(self) -> None:
        self.is_down = True
        self.answers: Counter[int] = Counter()
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                status = 503 if self.is_down else 200
                self.answers[status] += 1
                writer.write(b"HTTP/1.1 %d -\r\ncontent-length: 0\r\n\r\n" % status)
        writer.close()


service = StandIn()


@invoices.task(upstreams=[afip])
async def request_cae(_number: int) -> None:
    """Where the handler makes no call of its own to afip, it is the call itself."""
    response = await client.get(service.url)
    response.raise_for_status()


async def watch() -> None:
    """Say how it stands, whenever that has changed."""
    said = ""
    while True:
        view = await afip.view()
        if view.state != said:
            said = view.state
            print(f"{service.answers[200]:4} good {service.answers[503]:3} bad calls   {view}")
        await asyncio.sleep(0.02)


async def main() -> None:
    server = await asyncio.start_server(service.answer, "127.0.0.1", 0)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with app, client:
        receipts = await request_cae.enqueue_many(list(range(300)))
        watching = asyncio.create_task(watch())
        worker = asyncio.create_task(app.run_worker(until_empty=True))
        await asyncio.sleep(2)
        print("afip is back")
        service.is_down = False
        await worker
        watching.cancel()
        used = [(await one.handle.view()).attempts_made for one in receipts]
    server.close()
    print(f"{service.answers[200]} of {len(receipts)} invoices have their CAE")
    print(f"at most {max(used)} of 10 attempts were used, {service.answers[503]} calls were wasted")


if __name__ == "__main__":
    asyncio.run(main())
