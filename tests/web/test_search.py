"""Jobs of all queues are found by what is known of them, by those who may know it."""

from __future__ import annotations

import re

import pytest

from faena import Faena, Retry
from faena.task import Task
from faena.web.access.account import Account, Accounts
from faena.web.access.role import Role
from faena.web.application import Dashboard
from faena.web.page import search
from tests.web.conftest import PASSWORD, Browser

Send = Task[dict[str, str], None]


@pytest.fixture
def send(app: Faena) -> Send:
    mail = app.queue("mail", retry=Retry.fixed("1s", attempts=1))

    @mail.task
    async def send_mail(payload: dict[str, str]) -> None:
        if "fails" in payload:
            raise ConnectionError("the printer is on fire")

    return send_mail


@pytest.fixture
def chase(app: Faena) -> Send:
    other = app.queue("debts")

    @other.task
    async def chase_debt(payload: dict[str, str]) -> None:
        return None

    return chase_debt


async def found(browser: Browser, query: str, **more: str) -> list[str]:
    """The ids on the pages of a search, all of them."""
    ids: list[str] = []
    page = await browser.client.get("/search", params={"q": query, **more})
    while True:
        assert page.status_code == 200, page.text
        ids += re.findall(r'class="name mono"[^>]*>([^<]+)<', page.text)
        further = re.search(r'data-more><a class="btn" href="([^"]+)"', page.text)
        if further is None:
            return ids
        page = await browser.client.get("/search" + further[1].replace("&amp;", "&"))


async def test_jobs_of_all_queues_are_found_by_their_terms(
    app: Faena, send: Send, chase: Send, browser: Browser
) -> None:
    dead = (await send.enqueue({"fails": "yes"}, tenant="acme")).id
    await app.run_worker(until_empty=True)
    ready = (await send.enqueue({"invoice": "B-0003"}, tenant="acme")).id
    late = (await chase.enqueue({"n": "1"}, tenant="bolt", delay="1h")).id
    await browser.sign_in("a-viewer")
    for query, wanted in {
        "tenant:acme": [ready, dead],
        "state:dead": [dead],
        "task:chase_*": [late],
        "task:*a*": [late, ready, dead],
        "queue:debts state:delayed": [late],
        "queue:mail state:ready state:dead": [ready, dead],
        'error:"ON FIRE"': [dead],
        "printer": [dead],
        "BOLT": [late],
        "debts": [late],
        f"id:{ready}": [ready],
        ready: [ready, ready],  # first by its id, then as a part of anything
        f"id:{ready[:20]}* state:ready": [ready],
        "within:1h state:dead": [dead],
        "until:2020-01-01": [],
        "tenant:acme state:delayed": [],
    }.items():
        assert await found(browser, query) == wanted, query


async def test_a_payload_is_searched_by_those_who_may_see_it(
    app: Faena, send: Send, browser: Browser, accounts: Accounts
) -> None:
    one = (await send.enqueue({"invoice": "B-0003", "password": "hunter2"})).id
    await send.enqueue({"invoice": "B-0004"})
    await accounts.add_user(Account(name="ana", role=Role.VIEWER, sees_payloads=True), PASSWORD)
    await browser.sign_in("a-viewer")
    assert (await browser.get("/search?q=payload.invoice:B-0003")).status_code == 403
    assert await found(browser, "B-0003") == []
    await browser.sign_in("ana")
    assert await found(browser, "payload.invoice:B-0003") == [one]
    assert await found(browser, "payload.invoice:B-*3") == [one]
    assert (await browser.get("/search?q=payload.password:hunter2")).status_code == 422


async def test_a_page_is_full_at_fifty_and_goes_on(
    app: Faena, send: Send, browser: Browser
) -> None:
    jobs = await send.enqueue_many([{"n": "1"}] * 120)
    await browser.sign_in("a-viewer")
    page = await browser.get("/search?q=queue:mail")
    assert len(re.findall(r'class="name mono"', page.text)) == 50
    assert await found(browser, "queue:mail") == [one.id for one in reversed(jobs)]


async def test_a_search_that_takes_long_says_how_far_it_is_and_goes_on(
    app: Faena, send: Send, chase: Send, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_BUDGET_S", 0.0)
    await chase.enqueue({"n": "1"})
    last = (await send.enqueue({"fails": "yes"})).id
    await app.run_worker(until_empty=True)
    await browser.sign_in("a-viewer")
    page = await browser.get("/search?q=error:printer")
    assert "not everything was looked through yet" in page.text
    assert "of about" in page.text
    assert "Look on" in page.text
    assert await found(browser, "error:printer") == [last]


async def test_one_tenant_finds_its_own_jobs_and_learns_nothing_of_others(
    app: Faena,
    send: Send,
    chase: Send,
    browser: Browser,
    accounts: Accounts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "_BUDGET_S", 0.0)
    await accounts.add_user(Account(name="acme", role=Role.VIEWER, tenant="acme"), PASSWORD)
    own = (await send.enqueue({"n": "1"}, tenant="acme")).id
    other = (await send.enqueue({"n": "2"}, tenant="bolt")).id
    for _ in range(3):
        await chase.enqueue({"n": "3"}, tenant="bolt")
    await browser.sign_in("acme")
    for query in (
        "n:1",
        "bolt",
        "tenant:bolt",
        f"id:{other}",
        other,
        "state:ready",
        "debts",
        "mail",
    ):
        page = await browser.client.get("/search", params={"q": query.removeprefix("n:")})
        for leak in (f"/jobs/{other}", "/queues/debts", ">bolt<", "looked at"):
            assert leak not in page.text.replace("<b>bolt<", ""), query
    assert await found(browser, "state:ready") == [own]
    assert await found(browser, "tenant:bolt") == []
    page = await browser.get("/search?q=state:ready")
    cursor = re.search(r"cursor=([\w-]+)", page.text)
    assert cursor is not None
    await browser.sign_in("a-viewer")
    assert (await browser.get(f"/search?q=state:ready&cursor={cursor[1]}")).status_code == 422


@pytest.mark.parametrize(
    "query",
    [
        "state:gone",
        "within:soon",
        "since:noon",
        "colour:red",
        "a " * 13,
        "x" * 501,
        "task:*****",
        "is:future",
        "is:past",
        "%00",
        "payload.:1",
        "a&cursor=x",
        "a&cursor=AAAA",
        "a&cursor=%F0%9F",
    ],
)
async def test_what_makes_no_sense_is_refused(
    app: Faena, send: Send, browser: Browser, query: str
) -> None:
    await browser.sign_in("a-viewer")
    answer = await browser.get(f"/search?q={query}")
    assert answer.status_code == 422


async def test_an_empty_search_asks_what_is_looked_for(
    app: Faena, send: Send, browser: Browser
) -> None:
    await browser.sign_in("a-viewer")
    assert "What are you looking for?" in (await browser.get("/search")).text
    page = await browser.get("/search?q=state:ready&q=mail")
    assert "state:ready mail" in page.text


async def test_scripts_in_a_query_are_text(app: Faena, send: Send, browser: Browser) -> None:
    await browser.sign_in("a-viewer")
    page = await browser.client.get("/search", params={"q": "<script>alert(1)</script>"})
    assert "<script>alert" not in page.text


async def test_views_are_saved_for_one_or_for_all(
    app: Faena, send: Send, browser: Browser, web: Dashboard
) -> None:
    await browser.sign_in("a-viewer")
    await browser.post("/do/views.save", name="Failed today", q="state:dead within:24h")
    assert (await browser.post("/do/views.share", name="X", q="state:dead")).status_code == 403
    page = await browser.get("/search")
    assert "Failed today" in page.text
    assert "?q=state%3Adead%20within%3A24h" in page.text
    await browser.sign_in("a-operator")
    assert "Failed today" not in (await browser.get("/search")).text
    await browser.post("/do/views.share", name="Waits", q="state:ready")
    await browser.sign_in("a-viewer")
    assert "Waits" in (await browser.get("/search")).text
    assert (await browser.post("/do/views.unshare", name="Waits")).status_code == 403
    await browser.post("/do/views.remove", name="Failed today")
    assert "Failed today" not in (await browser.get("/search")).text


async def test_views_are_bounded_and_make_sense(app: Faena, browser: Browser) -> None:
    await browser.sign_in("a-viewer")
    for number in range(50):
        answer = await browser.post("/do/views.save", name=f"v{number}", q="state:dead")
        assert answer.status_code == 303
    assert (await browser.post("/do/views.save", name="one more", q="x")).status_code == 409
    for name, query in (("", "x"), ("a" * 2000, "x"), ("a", ""), ("a", "colour:red")):
        assert (await browser.post("/do/views.save", name=name, q=query)).status_code == 422
    assert (await browser.post("/do/views.save", name="v1", q="payload.a:1")).status_code == 403
