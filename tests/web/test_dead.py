"""Dead jobs are found by their error and decided about, one, some, or all that match."""

from __future__ import annotations

import pytest

from faena import Faena, Retry
from tests._support.eventually import eventually
from tests.web.conftest import Browser


@pytest.fixture
async def dead(app: Faena) -> list[str]:
    mail = app.queue("mail", retry=Retry.fixed("1s", attempts=1))

    @mail.task
    async def send(number: int) -> None:
        raise ConnectionError("the printer is on fire")

    receipts = await send.enqueue_many([1, 2, 3])
    await app.run_worker(until_empty=True)
    return [one.id for one in receipts]


async def test_dead_jobs_are_grouped_by_error(dead: list[str], browser: Browser) -> None:
    await browser.sign_in("a-viewer")
    page = await browser.get("/dead")
    assert "the printer is on fire" in page.text
    assert all(job in page.text for job in dead)
    assert "Redrive" not in page.text


async def test_chosen_jobs_are_resolved(app: Faena, dead: list[str], browser: Browser) -> None:
    await browser.sign_in("a-operator")
    page = await browser.get("/dead?queue=mail")
    assert "Resolve the chosen" in page.text
    answer = await browser.client.post(
        "/do/dead.resolve",
        data={"token": browser.token, "queue": "mail", "job": dead[:2], "reason": "by hand"},
        headers=browser.headers,
    )
    assert answer.status_code == 303
    stats = await app.dead_letters.stats()
    assert (stats.by_status["resolved"], stats.by_status["pending"]) == (2, 1)


async def test_discarding_is_for_administrators(dead: list[str], browser: Browser) -> None:
    await browser.sign_in("a-operator")
    answer = await browser.post("/do/dead.discard", queue="mail", job=dead[0])
    assert answer.status_code == 403


async def test_a_redrive_is_started_and_stopped(
    app: Faena, dead: list[str], browser: Browser
) -> None:
    await browser.sign_in("a-operator")
    answer = await browser.post("/do/dead.redrive", queue="mail", canary="1", rate="10/s")
    assert answer.status_code == 303
    (redrive,) = await app.dead_letters.redrives("mail")
    page = await browser.get("/dead")
    assert "Stop the redrive" in page.text
    await browser.post("/do/dead.stop-redrive", queue="mail", redrive=redrive.id)

    async def is_stopped() -> bool:
        return (await app.dead_letters.redrive_state("mail", redrive.id)).state == "stopped"

    await eventually(is_stopped)


@pytest.mark.parametrize(
    "query", ["status=gone", "cursor=x", "older_than=soon", "queue=nail", "fingerprint=%00"]
)
async def test_filters_that_make_no_sense_are_refused(
    dead: list[str], browser: Browser, query: str
) -> None:
    await browser.sign_in("a-viewer")
    answer = await browser.get(f"/dead?{query}")
    assert answer.status_code in {404, 422}
