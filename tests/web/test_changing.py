"""What is changed through the dashboard is allowed, done and on the record."""

from __future__ import annotations

from faena import Faena
from faena.web.access.account import Account, Accounts
from faena.web.access.role import Role
from faena.web.application import Dashboard
from tests.web.conftest import Browser


async def test_a_form_pauses_a_queue_and_goes_back(app: Faena, browser: Browser) -> None:
    mail = app.queue("mail")
    await browser.sign_in("a-operator")
    answer = await browser.post("/do/queues.pause", queue="mail", reason="deploy", back="/")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/?done=")
    assert [hold.reason for hold in (await mail.overview()).holds] == ["deploy"]
    page = await browser.get("/")
    assert "Held: deploy" in page.text


async def test_a_viewer_changes_nothing(app: Faena, browser: Browser) -> None:
    mail = app.queue("mail")
    await browser.sign_in("a-viewer")
    assert (await browser.post("/do/queues.pause", queue="mail")).status_code == 403
    assert (await mail.overview()).holds == ()
    assert (await browser.get("/audit")).status_code == 403


async def test_who_sees_one_tenant_does_not_see_all_queues(
    web: Dashboard, accounts: Accounts, browser: Browser
) -> None:
    await accounts.add_user(Account(name="acme", role=Role.OWNER, tenant="acme"), "a long word 7")
    await browser.sign_in("acme")
    assert (await browser.get("/queues")).status_code == 403
    assert (await browser.post("/do/queues.pause", queue="mail")).status_code == 403


async def test_a_change_is_on_the_record_with_what_was_before(
    app: Faena, web: Dashboard, browser: Browser
) -> None:
    app.queue("mail")
    await browser.sign_in("a-admin")
    await browser.post("/do/queues.pause", queue="mail", reason="<script>alert(1)</script>")
    page = await browser.get("/audit")
    assert "queues.pause" in page.text
    assert "<script>alert" not in page.text
    (record,) = (await (await web.site()).trail.page()).records
    assert (record.by, record.outcome, record.before) == ("a-admin", "done", [])
    assert record.after == ["<script>alert(1)</script>"]


async def test_a_refused_change_is_on_the_record_too(
    app: Faena, web: Dashboard, browser: Browser
) -> None:
    app.queue("mail")
    await browser.sign_in("a-operator")
    answer = await browser.post("/do/queues.pause", queue="mail", lasting="soon")
    assert answer.status_code == 422
    (record,) = (await (await web.site()).trail.page()).records
    assert "lasting must be" in record.outcome


async def test_what_makes_no_sense_is_said(app: Faena, browser: Browser) -> None:
    app.queue("mail")
    await browser.sign_in("a-admin")
    assert (await browser.post("/do/queues.pause", queue="nail")).status_code == 404
    assert (await browser.post("/do/queues.pause")).status_code == 422
    assert (await browser.post("/do/queues.pause", queue="mail", whose="x")).status_code == 422
    assert (await browser.get("/audit?before=x")).status_code == 422
    assert (await browser.get("/nowhere")).status_code == 404
    way = await browser.post("/do/queues.pause", queue="mail", back="//evil.test")
    assert way.headers["location"].startswith("/?done=")
