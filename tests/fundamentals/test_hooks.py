"""Hooks: what runs when a job has died, or has failed an attempt."""

from __future__ import annotations

import pytest

from faena import Backpressure, Death, Discard, Faena, Failure, Job, Retain, Retry
from faena.errors import ConfigError, JobNotFound
from faena.testing import Harness


async def test_a_hook_runs_once_for_each_death(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", retry=Retry.fixed("10s", attempts=2, jitter=0))
    deaths: list[Death] = []

    @queue.task
    async def send(address: str) -> None:
        raise LookupError(f"no such address: {address}")

    @send.on_dead
    async def tell(death: Death, job: Job) -> str:
        deaths.append(death)
        return f"{job.tenant}/{await death.payload()}"

    receipt = await send.enqueue("ana", tenant="acme", key="k-1")
    report = await h.drain(through="1m")
    assert [ran.task for ran in report] == ["send", "send", "send.on_dead"]
    assert report.runs[-1].result == "acme/ana"
    (death,) = deaths
    assert (death.job_id, death.task) == (receipt.id, "send")
    assert (death.tenant, death.key) == ("acme", "k-1")
    assert (death.attempts_made, death.losses) == (2, 0)
    assert death.error is not None
    assert (death.error.name, death.error.message) == ("LookupError", "no such address: ana")
    await death.handle.rerun()
    assert [ran.task for ran in await h.drain(through="1m")] == ["send", "send", "send.on_dead"]
    assert deaths[1].at > death.at


async def test_a_hook_may_run_for_each_failed_attempt(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", retry=Retry.fixed("10s", attempts=3, jitter=0))
    seen: list[int] = []

    @queue.task
    async def send(job: Job) -> None:
        if job.attempt < 3:
            raise LookupError("not yet")

    @send.on_failure
    async def note(failure: Failure) -> None:
        seen.append(failure.attempts_made)

    await send.enqueue()
    await h.drain(through="1m")
    assert seen == [1, 2]


async def test_a_discard_and_a_payload_that_cannot_be_read_are_deaths_as_well(
    app: Faena, h: Harness
) -> None:
    queue = app.queue("mail")
    seen: list[str] = []

    @queue.task
    async def send(number: int) -> None:
        raise Discard("not wanted")

    @send.on_dead(name="bell", retry=Retry.never())
    def ring(death: Death) -> None:
        seen.append(death.error.name if death.error else "")
        raise RuntimeError("and this one has no hook")

    await send.enqueue(1)
    await h.drain()
    second = await send.enqueue(2)
    engine = (await app.runtime()).engine
    spoilt = b'010\n{"task":"send","payload":"two"}'
    await engine.command("HSET", "mail", "specs", second.id, spoilt)
    await h.drain()
    assert seen == ["Discard", "PayloadError"]


async def test_neither_retention_nor_back_pressure_keeps_a_hook_away(
    app: Faena, h: Harness
) -> None:
    queue = app.queue(
        "mail",
        retry=Retry.never(),
        retain=Retain(dead_count=0),
        backpressure=Backpressure(soft=1, hard=2),
    )
    seen: list[str] = []

    @queue.task
    async def send(number: int) -> None:
        raise LookupError(str(number))

    @send.on_dead
    async def tell(death: Death) -> None:
        seen.append(death.job_id)
        with pytest.raises(JobNotFound):
            await death.payload()

    ids = [(await send.enqueue(number)).id for number in range(2)]
    await h.drain(at_once=2)
    assert sorted(seen) == sorted(ids)


def test_a_hook_of_a_hook_and_a_second_one_are_refused(app: Faena) -> None:
    queue = app.queue("mail")

    @queue.task
    async def send() -> None: ...

    @send.on_dead
    async def tell(death: Death) -> None: ...

    with pytest.raises(
        ConfigError, match=r"a hook must not have hooks of its own, got one for 'send\.on_dead'"
    ):
        tell.on_dead(tell.handler.function)
    with pytest.raises(ConfigError, match="task 'send' already has an on_dead hook"):
        send.on_dead(tell.handler.function)
