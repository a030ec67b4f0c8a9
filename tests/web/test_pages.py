"""Each page shows what is there, to those who may see it."""

from __future__ import annotations

import pytest

from faena import Faena, Retry
from faena.task import Task
from faena.web.access.account import Account, Accounts
from faena.web.access.role import Role
from faena.web.application import Dashboard
from tests.web.conftest import PASSWORD, Browser

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def send(app: Faena) -> Task[dict[str, str], None]:
    mail = app.queue("mail", retry=Retry.fixed("1s", attempts=1))

    @mail.task
    async def send(payload: dict[str, str]) -> None:
        raise ValueError(SCRIPT)

    return send


async def _die(app: Faena, send: Task[dict[str, str], None], **options: str) -> str:
    receipt = await send.enqueue({"to": SCRIPT, "password": "hunter2"}, **options)
    await app.run_worker(until_empty=True)
    return receipt.id


async def test_every_page_of_an_idle_app_is_there(app: Faena, browser: Browser) -> None:
    app.queue("mail")
    await browser.sign_in("a-owner")
    for path in ("/", "/queues", "/queues/mail", "/queues/mail/jobs", "/audit", "/account"):
        answer = await browser.get(path)
        assert answer.status_code == 200, path


async def test_a_queue_shows_its_charts_in_every_window(
    app: Faena, send: Task[dict[str, str], None], browser: Browser
) -> None:
    await _die(app, send)
    await browser.sign_in("a-viewer")
    for window in ("15m", "1h", "6h", "24h", "7d", "30d"):
        assert (await browser.get(f"/queues/mail?window={window}")).status_code == 200
    assert (await browser.get("/queues/mail?window=1y")).status_code == 422


async def test_a_dead_job_shows_its_errors_as_text(
    app: Faena, send: Task[dict[str, str], None], browser: Browser
) -> None:
    job = await _die(app, send)
    await browser.sign_in("a-operator")
    page = await browser.get(f"/queues/mail/jobs/{job}")
    assert "ValueError" in page.text
    assert SCRIPT not in page.text
    assert "hunter2" not in page.text
    assert "Payloads are veiled" in page.text


async def test_who_sees_payloads_does_not_see_passwords_in_them(
    app: Faena, send: Task[dict[str, str], None], browser: Browser, accounts: Accounts
) -> None:
    await accounts.add_user(Account(name="ana", role=Role.VIEWER, sees_payloads=True), PASSWORD)
    job = await _die(app, send)
    await browser.sign_in("ana")
    page = await browser.get(f"/queues/mail/jobs/{job}")
    assert "alert(1)" in page.text
    assert SCRIPT not in page.text
    assert "hunter2" not in page.text


async def test_a_job_is_run_again_from_its_page(
    app: Faena, send: Task[dict[str, str], None], browser: Browser
) -> None:
    job = await _die(app, send)
    await browser.sign_in("a-operator")
    answer = await browser.post("/do/jobs.rerun", queue="mail", job=job, back="/queues/mail")
    assert answer.status_code == 303
    assert (await app.queues["mail"].counts())["ready"] == 1


async def test_one_tenant_sees_its_own_jobs_only(
    app: Faena, send: Task[dict[str, str], None], accounts: Accounts, browser: Browser
) -> None:
    own = await _die(app, send, tenant="acme")
    other = await _die(app, send, tenant="bolt")
    await accounts.add_user(Account(name="acme", role=Role.VIEWER, tenant="acme"), PASSWORD)
    await browser.sign_in("acme")
    assert (await browser.get(f"/queues/mail/jobs/{own}")).status_code == 200
    assert (await browser.get(f"/queues/mail/jobs/{other}")).status_code == 404
    assert (await browser.get("/queues/mail/jobs")).status_code == 403


async def test_an_open_page_hears_what_changes(
    web: Dashboard, app: Faena, send: Task[dict[str, str], None], browser: Browser
) -> None:
    await browser.sign_in("a-viewer")
    await send.enqueue({"to": "ana"})
    now = (await browser.get("/now/overview")).json()
    assert now["mail.depth"] == "1"
    assert (await browser.get("/now/nothing")).status_code == 404
    assert (await web.site()).hub.channels == 0
