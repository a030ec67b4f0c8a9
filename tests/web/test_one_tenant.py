"""Who may see one tenant is shown nothing of another: no name, id, count, title or payload."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit

import httpx
import pytest

from faena import Faena, Retry
from faena.web.access.account import Account, Accounts
from faena.web.access.role import Role
from faena.web.route import Route
from faena.web.routes import ROUTES
from tests.web.conftest import PASSWORD, Browser

CANARY = "kanarie"
"""In all that belongs to the other tenant."""
READY = 1979
"""How many jobs it has ready: a figure that is found nowhere else."""
NAME = "bolt-kanarie"


@dataclass(frozen=True)
class Planted:
    """Ids of the other tenant, by what a route calls them."""

    job: str
    dead: str
    flow: str
    own: str
    shared: str
    """An id that both tenants have a job of."""


@pytest.fixture
async def planted(app: Faena, accounts: Accounts) -> Planted:
    mail = app.queue("mail", fair=True, retry=Retry.fixed("1s", attempts=1))

    @mail.task
    async def send(payload: dict[str, str]) -> None:
        raise ValueError(f"it failed for {payload['to']}")

    @mail.task(name="kanarie-task")
    async def other(payload: dict[str, str]) -> str:
        return payload["to"]

    await mail.tenant(NAME).dedicate()  # so that both may have a job of the same id
    theirs = {"to": "kanarie-payload"}
    dead = await send.enqueue(theirs, tenant=NAME, id="kanarie-dead")
    await send.enqueue({"to": "own payload"}, tenant="acme", id="own-dead")
    done = await other.enqueue(theirs, tenant=NAME, id="kanarie-done")
    await app.run_worker(until_empty=True)
    await other.enqueue_many([theirs] * READY, tenant=NAME)
    own = await send.enqueue({"to": "own payload"}, tenant="acme", id="own-ready")
    await send.enqueue({"to": "own payload"}, tenant="acme", id="shared", delay="1h")
    await other.enqueue(theirs, tenant=NAME, id="shared", delay="1h", headers={"x-kanarie": "1"})
    await other.enqueue_many(
        [
            other.draft(theirs, tenant=NAME, id=f"kanarie-late-{number}", delay="30m")
            for number in range(1_100)
        ]
    )
    await mail.tenant(NAME).hold("kanarie-reason", by="ana")
    await mail.pause(reason="because of kanarie")
    app.schedule("kanarie-schedule", other, theirs, cron="0 2 * * *", tenant=NAME)
    plan = app.flow("kanarie-flow")
    plan.add(other.draft(theirs, tenant=NAME), name="kanarie-node")
    flow = await plan.start()
    await accounts.add_user(
        Account(name="acme", role=Role.OWNER, tenant="acme", sees_payloads=True), PASSWORD
    )
    return Planted(done.id, dead.id, flow.id, own.id, "shared")


def _leaks(asked: str, answer: httpx.Response) -> list[str]:
    """What an answer has of the other tenant, beside what it was asked for."""
    told = f"{answer.text} {dict(answer.headers)}"
    for part in {asked, quote(asked), html.escape(asked)} - {""}:
        told = told.replace(part, "")
    told += " ".join(_unpacked(told))
    found = [word for word in (CANARY, f"{READY:,}", str(READY)) if word in told]
    return [f"{word}: …{told[max(0, told.index(word) - 80) :][:160]}…" for word in found]


def _unpacked(text: str) -> Iterable[str]:
    """What words that look like cursors have inside."""
    for word in re.findall(r"[\w-]{20,}", text):
        try:
            yield base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)).decode("latin-1")
        except ValueError:
            continue


def _links(base: str, text: str) -> set[str]:
    found = re.findall(r'(?:href|action)="([^"]+)"', text)
    absolute = (urljoin(base, html.unescape(one)) for one in found)
    return {one for one in absolute if urlsplit(one).netloc == urlsplit(base).netloc}


async def test_every_link_shows_the_own_tenant_only(planted: Planted, browser: Browser) -> None:
    await browser.sign_in("acme")
    todo, seen, own = ["http://faena.test/"], set[str](), 0
    while todo:
        where = todo.pop()
        if where in seen or "/static/" in where or "/do/" in where or "sign-out" in where:
            continue
        seen.add(where)
        answer = await browser.get(where)
        assert not _leaks("", answer), where
        assert answer.status_code in {200, 303, 404, 405}, (where, answer.status_code)
        own += "own-ready" in answer.text
        found = _links(where, answer.text)
        if answer.is_redirect:
            found.add(urljoin(where, answer.headers["location"]))
        todo += sorted(found)
    assert own >= 2
    assert any("tab=jobs" in one for one in seen)
    assert any("tab=dead" in one for one in seen)
    assert any("/jobs/own-dead" in one for one in seen)


def _paths(route: Route, planted: Planted) -> Iterable[tuple[str, str]]:
    """A route's path with ids of the other tenant, and what of these it repeats."""
    ids = {
        "tenant": [NAME],
        "job": [planted.own, planted.job, planted.dead, "kanarie-late-1", planted.shared],
        "queue": ["mail"],
        "flow": [planted.flow, planted.flow.partition("/")[2]],
        "schedule": ["kanarie-schedule"],
        "name": ["kanarie-schedule"],
        "page": ["tenants", "tenant", "queue", "overview", "jobs"],
    }
    names = re.findall(r"\{(\w+)(?::path)?\}", route.path)
    chosen = [ids.get(name, [planted.job]) for name in names]
    rows = [[]]
    for options in chosen:
        rows = [[*row, one] for row in rows for one in options]
    for row in rows:
        path = route.path
        for one in row:
            path = re.sub(r"\{\w+(?::path)?\}", quote(one), path, count=1)
        repeated = next((one for one in row if CANARY in one), "")
        yield path, repeated


QUERIES = (
    "",
    "queue=mail",
    f"of={NAME}",
    f"tenant={NAME}",
    f"tab=jobs&queue=mail&state=delayed&of={NAME}",
    f"q={CANARY}&tenant={NAME}&state=all",
)


async def test_every_route_refuses_or_hides_the_other_tenant(
    planted: Planted, browser: Browser
) -> None:
    await browser.sign_in("acme")
    asked = 0
    for route in ROUTES:
        if route.method != "GET" or route.path.startswith(("/static", "/live", "/link")):
            continue
        for path, repeated in _paths(route, planted):
            for query in QUERIES:
                answer = await browser.get(f"{path}?{query}")
                asked += 1
                assert answer.status_code < 500, (path, query)
                if path == "/search" and CANARY in query:  # a page that repeats what is searched
                    nobody = await browser.get(f"{path}?{query.replace(CANARY, 'nobody')}")
                    assert answer.text.replace(CANARY, "nobody") == nobody.text
                    continue
                leaks = [
                    one
                    for one in _leaks(repeated, answer)
                    if f"tenant={NAME}" not in one and f"of={NAME}" not in one
                ]
                assert not leaks, (path, query)
    assert asked > 50


async def test_what_is_another_tenant_s_is_answered_like_what_is_not_there(
    planted: Planted, browser: Browser
) -> None:
    await browser.sign_in("acme")
    for path, other in (
        ("/queues/mail/jobs/{}", planted.job),
        ("/queues/mail/jobs/{}", planted.dead),
        ("/tenants/{}", NAME),
        ("/tenants/{}?tab=dead", NAME),
        ("/now/tenant?tenant={}", NAME),
    ):
        theirs = await browser.get(path.format(other))
        nobody = await browser.get(path.format("nobody"))
        assert theirs.status_code == nobody.status_code == 404
        assert theirs.text.replace(other, "nobody") == nobody.text


async def test_an_id_that_both_have_shows_the_own_job(planted: Planted, browser: Browser) -> None:
    await browser.sign_in("acme")
    for query in ("", f"?of={NAME}"):
        page = await browser.get(f"/queues/mail/jobs/{planted.shared}{query}")
        assert page.status_code == 200
        assert "own payload" in page.text
        assert CANARY not in page.text.replace(f"of={NAME}", "")


async def test_why_an_own_job_waits_tells_nothing_of_others(
    planted: Planted, browser: Browser
) -> None:
    await browser.sign_in("acme")
    page = await browser.get(f"/queues/mail/jobs/{planted.own}")
    assert "its queue is held" in page.text
    assert not _leaks("", page)
    await browser.sign_in("a-viewer")
    page = await browser.get(f"/queues/mail/jobs/{planted.own}")
    assert "because of kanarie" in page.text


async def test_pages_among_jobs_of_others_name_none_of_them(
    planted: Planted, accounts: Accounts, browser: Browser
) -> None:
    await browser.sign_in("acme")
    page = await browser.get("/tenants/acme?tab=jobs&queue=mail&state=delayed")
    words = list[str]()
    while more := re.search(r'href="(\?[^"]*cursor=([^"]*))"', page.text):
        assert not _leaks("", page)
        words.append(more[2])
        page = await browser.get(f"/tenants/acme{html.unescape(more[1])}")
    assert words
    assert not _leaks("", page)
    assert "shared" in page.text
    await accounts.add_user(Account(name="zen", role=Role.VIEWER, tenant="zen"), PASSWORD)
    await browser.sign_in("zen")
    for cursor in (words[0], "x"):
        page = await browser.get(f"/tenants/zen?tab=jobs&queue=mail&state=delayed&cursor={cursor}")
        assert page.status_code == 422


async def test_the_navigation_has_what_one_may_open(planted: Planted, browser: Browser) -> None:
    await browser.sign_in("acme")
    start = await browser.get("/")
    assert start.headers["location"] == "/tenants/acme"
    page = await browser.get("/tenants/acme")
    nav = page.text[page.text.index("<nav") : page.text.index("</nav>")]
    links = re.findall(r'href="([^"#]+)"', nav)
    assert links == [
        "/",
        "/tenants/acme",
        "/tenants/acme?tab=jobs",
        "/tenants/acme?tab=dead",
        "/search",
    ]
    assert "/do/tenants" not in page.text
    for one in links:
        assert (await browser.get(html.unescape(one))).status_code in {200, 303}
    await browser.sign_in("a-viewer")
    page = await browser.get("/account")
    nav = page.text[page.text.index("<nav") : page.text.index("</nav>")]
    assert "/audit" not in nav
    for one in re.findall(r'href="([^"#]+)"', nav):
        assert (await browser.get(html.unescape(one))).status_code == 200, one


async def test_it_follows_its_own_page_only(planted: Planted, browser: Browser) -> None:
    await browser.sign_in("acme")
    own = await browser.get("/now/tenant?tenant=acme")
    assert own.json()["waiting"] == "2"
    assert not _leaks("", own)
    for name in ("tenants", "overview", f"tenant?tenant={NAME}", "queue?queue=mail"):
        assert (await browser.get(f"/now/{name}")).status_code == 404
