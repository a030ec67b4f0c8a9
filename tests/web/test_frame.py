"""What every page has around it: what is limited, what fires, and what was just done."""

from __future__ import annotations

from faena import Faena
from faena.web.access.account import Account, Accounts
from faena.web.access.role import Role
from faena.web.application import Dashboard
from tests.web.conftest import PASSWORD, Browser


async def test_what_is_limited_is_told_on_every_page(
    app: Faena, web: Dashboard, browser: Browser
) -> None:
    app.queue("mail")
    voice = app.feature("ai.voice", critical=True)
    app.feature("maps")
    await browser.sign_in("a-viewer")
    assert 'data-if="banner.head" hidden' in (await browser.get("/queues")).text
    await voice.set("offline", message="Voice notes <wait>", by="ana")
    await app.features["maps"].set("degraded")
    (await web.site()).standings.forget()
    for path in ("/", "/queues", "/queues/mail", "/account"):
        page = await browser.get(path)
        assert 'data-if="banner.head" hidden' not in page.text, path
        assert "ai.voice has been offline since" in page.text
        assert "Voice notes &lt;wait&gt; Also limited: maps." in page.text
    now = (await browser.get("/now/overview")).json()
    assert now["banner.link"] == "2 features"


async def test_the_banner_of_an_open_page_ends_with_the_trouble(
    app: Faena, browser: Browser
) -> None:
    voice = app.feature("ai.voice")
    await voice.set("degraded")
    await browser.sign_in("a-operator")
    assert (await browser.get("/now/overview")).json()["banner.head"].startswith("ai.voice")
    await browser.post("/do/features.clear", feature="ai.voice")
    assert (await browser.get("/now/overview")).json()["banner.head"] == ""


async def test_one_tenant_is_told_what_is_limited_and_no_numbers(
    app: Faena, browser: Browser, accounts: Accounts
) -> None:
    await app.feature("ai.voice").set("offline")
    await accounts.add_user(Account(name="acme", role=Role.VIEWER, tenant="acme"), PASSWORD)
    await browser.sign_in("acme")
    page = await browser.get("/account")
    assert "ai.voice has been offline" in page.text
    assert 'data-figure="nav.' not in page.text
    assert "/upstreams#features" not in page.text


async def test_what_is_done_is_said_once_with_a_way_back(app: Faena, browser: Browser) -> None:
    mail = app.queue("mail")
    await browser.sign_in("a-operator")
    answer = await browser.post("/do/queues.pause", queue="mail", reason="deploy", back="/queues")
    page = await browser.get(answer.headers["location"])
    assert "mail is held: deploy" in page.text
    assert 'action="/do/queues.resume"' in page.text
    assert 'name="back" value="/queues"' in page.text
    answer = await browser.post("/do/queues.resume", queue="mail", reason="deploy", back="/queues")
    assert (await mail.overview()).holds == ()
    page = await browser.get(answer.headers["location"])
    assert 'action="/do/queues.pause"' in page.text
    assert "is held" not in (await browser.get("/queues")).text


async def test_what_others_have_done_is_not_said(app: Faena, browser: Browser) -> None:
    app.queue("mail")
    await browser.sign_in("a-operator")
    answer = await browser.post("/do/queues.pause", queue="mail", back="/queues")
    await browser.sign_in("a-admin")
    page = await browser.get(answer.headers["location"])
    assert 'class="toast' not in page.text
    assert 'class="toast' not in (await browser.get("/queues?done=x")).text
