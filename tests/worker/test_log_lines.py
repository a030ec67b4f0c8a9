"""What a worker's log says of failures and deaths."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from faena import Discard, Faena, Retry
from faena.options import EnqueueOptions
from faena.testing import harness
from faena.worker.execute.log_lines import log_losses
from tests._support.deployment import deployed
from tests._support.rig import LEASE, SECOND, Rig


@pytest.fixture
def app() -> Faena:
    return Faena("words")


def lines(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "faena.worker"]


async def test_a_failed_attempt_is_a_warning_with_the_traceback_and_what_follows(
    app: Faena, caplog: pytest.LogCaptureFixture
) -> None:
    queue = app.queue("mail", retry=Retry.fixed("30s", attempts=2, jitter=0))

    @queue.task
    async def send(secret: str) -> None:
        raise LookupError("no such address")

    async with harness(app) as h:
        receipt = await send.enqueue("confidential", tenant="acme")
        await h.drain(through="1m")
    warning, death = lines(caplog)
    assert (warning.levelname, death.levelname) == ("WARNING", "ERROR")
    text = warning.getMessage()
    assert text.startswith(
        f"queue mail: job {receipt.id} (send) of tenant acme: attempt 1 of 2 failed; "
        "the next attempt is in 30s: LookupError: no such address\nTraceback"
    )
    assert 'raise LookupError("no such address")' in text
    assert "executor.py" not in text
    assert "confidential" not in text
    facts: dict[str, Any] = vars(warning)
    assert (facts["queue"], facts["task"], facts["job_id"], facts["tenant"]) == (
        *("mail", "send"),
        receipt.id,
        "acme",
    )
    assert "attempt 2 of 2 failed, and the job is dead: LookupError" in death.getMessage()


async def test_what_ends_well_is_no_news_and_what_cannot_be_read_is(
    app: Faena, caplog: pytest.LogCaptureFixture
) -> None:
    queue = app.queue("mail")

    @queue.task
    async def send(number: int) -> None:
        if number > 1:
            raise Discard("nobody to send to")

    async with harness(app) as h:
        await send.enqueue(1)
        await h.drain()
        assert not lines(caplog)
        await send.enqueue(2)
        await h.drain()
        (discarded,) = lines(caplog)
        assert "and the job is dead: Discard: nobody to send to" in discarded.getMessage()


async def test_a_payload_that_cannot_be_read_is_told_with_its_task_and_tenant(
    caplog: pytest.LogCaptureFixture,
) -> None:
    old, new = Faena("old"), Faena("new")

    @old.queue("mail").task(name="send")
    async def send_text(to: str) -> None: ...

    @new.queue("mail").task(name="send")
    async def send_number(to: int) -> None: ...

    async with harness(new) as h, deployed(old, h):
        receipt = await send_text.enqueue("confidential", tenant="acme")
        assert (await h.drain()).counts == {"dead": 1}
    (death,) = lines(caplog)
    text = death.getMessage()
    assert text.startswith(
        f"queue mail: job {receipt.id} (send) of tenant acme: reading it failed, and the job is "
        "dead: PayloadError [PAYLOAD]: "
    )
    assert "confidential" not in text
    assert "Traceback" not in text
    facts: dict[str, Any] = vars(death)
    assert (facts["task"], facts["tenant"]) == ("send", "acme")


async def test_a_worker_tells_of_jobs_that_the_server_buried(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.declare_as(max_deliveries=1)
    await rig.add("j", body=b'{"task":"noop","tenant":"acme"}')
    await rig.claim()
    rig.clock.go(LEASE / SECOND)
    log_losses("q", await rig.turn(worker="other"))
    (death,) = lines(caplog)
    assert death.getMessage() == (
        "queue q: job j (noop) of tenant acme is dead: "
        "it was delivered 1 times, and each time its worker died or froze"
    )


async def test_a_worker_tells_of_each_job_that_the_server_buried(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.declare_as(max_deliveries=1)
    await rig.add("a", "b", "c", body=b'{"task":"noop"}')
    await rig.claim(3)
    rig.clock.go(LEASE / SECOND)
    log_losses("q", await rig.turn(worker="other"))
    told = sorted(vars(record)["job_id"] for record in caplog.records)
    assert told == ["a", "b", "c"]


async def test_a_payload_that_is_nested_too_deeply_stops_no_worker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = Faena("deep")

    @app.queue("mail").task
    async def send(to: Any) -> None: ...

    async with harness(app) as h:
        job = send.frame(EnqueueOptions()).fill_given("deep", b"[" * 2000 + b"]" * 2000)
        await send.put_sealed([job])
        await send.enqueue("ana")
        assert (await h.drain()).counts == {"dead": 1, "completed": 1}
    (death,) = lines(caplog)
    assert "job deep: reading it failed, and the job is dead: RecursionError" in death.getMessage()
