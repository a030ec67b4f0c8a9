"""Workers: who serves what, what they run, and who has gone silent."""

from __future__ import annotations

import asyncio

import pytest

from faena import Faena
from tests._support.eventually import eventually
from tests._support.working import Working
from tests.web.conftest import Browser


@pytest.fixture
def begun(app: Faena) -> tuple[asyncio.Event, asyncio.Event]:
    mail, started, end = app.queue("mail", lease="10m"), asyncio.Event(), asyncio.Event()
    app.queue("idle")
    app.pool("posting", [mail], instances=2)

    @mail.task
    async def send() -> None:
        started.set()
        await end.wait()

    return started, end


async def test_a_worker_is_shown_with_what_it_runs(
    app: Faena, begun: tuple[asyncio.Event, asyncio.Event], working: Working, browser: Browser
) -> None:
    started, end = begun
    receipt = await app.queues["mail"].tasks["send"].enqueue(tenant="acme")
    await browser.sign_in("a-viewer")
    page = await browser.get("/workers")
    assert "1 queue has no worker while 1 job waits" in page.text
    assert "of 2 declared" in page.text
    async with working():
        await started.wait()
        view = await app.queues["mail"].handle(receipt.id, tenant="acme").view()
        worker = (view and view.worker) or "none"

        async def is_listed() -> bool:
            return worker in (await browser.get("/workers")).text

        await eventually(is_listed)
        page = await browser.get("/workers?queue=mail")
        assert worker in page.text
        assert "call as they should" in page.text
        page = await browser.get(f"/workers/{worker}")
        assert receipt.id in page.text
        assert "runs 1 job." in page.text
        assert "?of=acme" in page.text
        now = (await browser.get("/now/workers")).json()
        assert now["idle+mail.used"].startswith("1 / ")
        end.set()


async def test_a_worker_that_has_not_called_is_silent_and_then_gone(
    app: Faena, begun: tuple[asyncio.Event, asyncio.Event], browser: Browser
) -> None:
    engine = (await app.runtime()).engine
    await app.queues["mail"].tasks["send"].enqueue(delay="1h")
    now = (await app.queues["mail"].overview()).at
    await engine.command("ZADD", "mail", "workers", now + 5 * 60_000_000, "silent-1")
    await engine.command("ZADD", "mail", "workers", now + 19 * 60_000_000, "well-1")
    said = f"{now - 3_600_000_000} 4711 0.1.0 lib slots=3 host-a"
    await engine.command("HSET", "mail", "about", "silent-1", said)
    await browser.sign_in("a-viewer")
    page = await browser.get("/workers")
    assert "1 worker has not called for 15 min" in page.text
    assert page.text.index("silent-1") < page.text.index("well-1")
    assert "host-a" in (await browser.get("/workers?host=host-a")).text
    page = await browser.get("/workers/silent-1")
    assert "It has not called for 15 min" in page.text
    assert "It calls as it should" in (await browser.get("/workers/well-1")).text


@pytest.mark.parametrize(
    "path", ["/workers/nobody", "/workers?queue=nail", "/workers?from=x", "/workers?from=-1"]
)
async def test_what_is_not_there_is_said(app: Faena, browser: Browser, path: str) -> None:
    app.queue("mail")
    await browser.sign_in("a-viewer")
    assert (await browser.get(path)).status_code in {404, 422}
