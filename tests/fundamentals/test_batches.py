"""One call of a handler for many jobs, and an ending for each."""

from __future__ import annotations

from faena import Discard, Faena, Job, State
from faena.testing import Harness
from tests._support.working import Working


async def test_a_handler_is_called_once_for_many_jobs(app: Faena, working: Working) -> None:
    calls: list[list[str]] = []

    @app.queue("mail", concurrency=20).batch(size=10, wait="10m")
    async def send(addresses: list[str]) -> list[str]:
        calls.append(addresses)
        return [f"sent to {address}" for address in addresses]

    receipts = await send.enqueue_many([f"user-{number}" for number in range(10)])
    async with working():
        assert await receipts[7].handle.result(timeout="60s") == "sent to user-7"
    assert [len(call) for call in calls] == [10]


async def test_each_job_of_a_batch_has_its_own_ending(app: Faena, h: Harness) -> None:
    @app.queue("mail", concurrency=20).batch(size=10, wait="1s")
    async def send(addresses: list[str], jobs: list[Job]) -> list[str | Exception]:
        ends: dict[str, Exception] = {"full": ConnectionError(), "nobody": Discard("unknown")}
        return [ends.get(address, f"sent to {address}") for address in addresses]

    receipts = await send.enqueue_many(["ana", "full", "nobody"])
    assert (await h.drain()).counts == {"completed": 1, "retried": 1, "dead": 1}
    states = [await receipt.handle.state() for receipt in receipts]
    assert states == [State.COMPLETED, State.DELAYED, State.DEAD]
