"""Tenants are found, compared, held, limited and moved; each change can be taken back."""

from __future__ import annotations

import html
import re

import pytest

from faena import Faena, Limit
from faena.task import Task
from faena.web.application import Dashboard
from tests.web.conftest import Browser


@pytest.fixture
def send(app: Faena) -> Task[int, None]:
    mail = app.queue("mail", fair=True)
    app.queue("plain", fair=False)

    @mail.task
    async def send(number: int) -> None: ...

    return send


async def _fill(send: Task[int, None], **jobs: int) -> None:
    for tenant, number in jobs.items():
        await send.enqueue_many([*range(number)], tenant=tenant)


def _undo(text: str) -> dict[str, list[str]]:
    """The fields of the form that takes the last change back, its operation under `do`."""
    toast = text[text.index('class="toasts"') :]
    fields: dict[str, list[str]] = {}
    for name, value in re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', toast):
        fields.setdefault(name, []).append(html.unescape(value))
    found = re.search(r'action="[^"]*/do/([^"]+)"', toast)
    assert found, toast
    return {**fields, "do": [found[1]]}


async def _change(browser: Browser, name: str, **fields: str | list[str]) -> str:
    """Send a form as the page of acme does, and return what that then shows."""
    answer = await browser.client.post(
        f"/do/{name}",
        data={"token": browser.token, "tenant": "acme", "back": "/tenants/acme", **fields},
        headers=browser.headers,
    )
    assert answer.status_code == 303, answer.text
    return (await browser.get(answer.headers["location"])).text


async def _take_back(browser: Browser, text: str) -> str:
    fields = _undo(text)
    (name,) = fields.pop("do")
    fields.pop("token")
    return await _change(browser, name, **fields)


async def test_the_busiest_tenant_comes_first(
    app: Faena, send: Task[int, None], browser: Browser
) -> None:
    await _fill(send, acme=2, bolt=5)
    await app.queues["mail"].tenant("zen").hold("unpaid")
    await browser.sign_in("a-viewer")
    page = await browser.get("/tenants")
    names = re.findall(r'class="name" href="/tenants/(\w+)"', page.text)
    assert names == ["bolt", "acme", "zen"]
    assert "1 tenant is held" in page.text
    assert "2 of 3 have work" in page.text
    assert "unpaid" in page.text
    found = await browser.get("/tenants?q=CM")
    assert re.findall(r'class="name" href="/tenants/(\w+)"', found.text) == ["acme"]
    decided = await browser.get("/tenants?order=decided")
    assert re.findall(r'class="name" href="/tenants/(\w+)"', decided.text) == ["zen"]


async def test_what_was_started_is_shared_out(
    app: Faena, send: Task[int, None], browser: Browser
) -> None:
    await _fill(send, acme=1, bolt=3)
    await app.run_worker(until_empty=True)
    await browser.sign_in("a-viewer")
    page = await browser.get("/tenants?window=5m")
    assert "bolt 75.0 %" in page.text
    assert "acme 25.0 %" in page.text


async def test_pages_of_tenants_have_each_of_them_once(
    app: Faena, send: Task[int, None], browser: Browser
) -> None:
    for number in range(120):
        await send.enqueue(number, tenant=f"t{number:03}")
    await browser.sign_in("a-viewer")
    where, found = "/tenants?order=name", list[str]()
    while where:
        page = await browser.get(where)
        found += re.findall(r'class="name" href="/tenants/(\w+)"', page.text)
        more = re.search(r'href="(\?[^"]*cursor=[^"]*)"', page.text)
        where = f"/tenants{html.unescape(more[1])}" if more else ""
    assert found == [f"t{number:03}" for number in range(120)]


@pytest.mark.parametrize(
    "query",
    ["order=best", "window=1y", "cursor=x", f"q={'x' * 200}"],
)
async def test_lists_that_make_no_sense_are_refused(
    send: Task[int, None], browser: Browser, query: str
) -> None:
    await browser.sign_in("a-viewer")
    assert (await browser.get(f"/tenants?{query}")).status_code == 422


async def test_a_tenant_is_held_released_and_held_again(
    app: Faena, send: Task[int, None], browser: Browser
) -> None:
    await _fill(send, acme=3)
    acme = app.queues["mail"].tenant("acme")
    await browser.sign_in("a-operator")
    page = await browser.get("/tenants/acme")
    assert "Hold 3 ready jobs" in page.text
    text = await _change(browser, "tenants.hold", reason="unpaid & late", lasting="2h")
    assert "acme is held: unpaid &amp; late" in text
    view = await acme.view()
    assert (view.reason, view.by) == ("unpaid & late", "a-operator")
    assert "Held in mail: unpaid &amp; late" in text
    text = await _change(browser, "tenants.release", queue="mail")
    assert not (await acme.view()).is_held
    await _take_back(browser, text)
    view = await acme.view()
    assert view.reason == "unpaid & late"
    assert view.held_until
    assert view.at
    assert 0 < view.held_until - view.at <= 7_200_000_000


async def test_a_hold_is_taken_back_where_it_was_set(
    app: Faena, send: Task[int, None], browser: Browser
) -> None:
    calls = app.queue("calls", fair=True)
    await browser.sign_in("a-operator")
    text = await _change(browser, "tenants.hold", reason="unpaid", queue=["mail", "calls"])
    await _take_back(browser, text)
    assert not (await calls.tenant("acme").view()).is_held
    assert not (await app.queues["mail"].tenant("acme").view()).is_held


async def test_settings_are_set_and_taken_back(
    app: Faena, send: Task[int, None], browser: Browser
) -> None:
    await browser.sign_in("a-admin")
    acme = app.queues["mail"].tenant("acme")
    await acme.configure(weight=4, limits=[])
    text = await _change(
        browser, "tenants.configure", queue="mail", limits="5/s, 100/min", weight="2", size="queue"
    )
    view = await acme.view()
    assert view.limits == (Limit("5/s"), Limit("100/min"))
    assert (view.weight, view.size, view.max_running) == (2, None, None)
    assert "5/s, 100/min" in text
    await _take_back(browser, text)
    view = await acme.view()
    assert (view.limits, view.weight) == ((), 4)
    await _change(browser, "tenants.reset", queue="mail")
    assert (await acme.view()).weight is None


async def test_a_tenant_gets_a_shard_and_gives_it_back(
    app: Faena, send: Task[int, None], browser: Browser
) -> None:
    await _fill(send, acme=3, bolt=1)
    acme = app.queues["mail"].tenant("acme")
    await browser.sign_in("a-admin")
    text = await _change(browser, "tenants.dedicate", queue="mail")
    assert (await acme.view()).is_dedicated
    assert "own shard" in text
    await _take_back(browser, text)
    assert not (await acme.view()).is_dedicated
    assert (await acme.view()).live == 3


async def test_ready_jobs_of_one_tenant_are_cancelled(
    app: Faena, web: Dashboard, send: Task[int, None], browser: Browser
) -> None:
    await _fill(send, acme=20, bolt=2)
    later = await send.enqueue(0, tenant="acme", delay="1h")
    await browser.sign_in("a-operator")
    await _change(browser, "tenants.cancel-ready")
    counts = await app.queues["mail"].counts()
    assert (counts["cancelled"], counts["ready"], counts["delayed"]) == (20, 2, 1)
    assert await later.handle.state() == "delayed"
    (record,) = (await (await web.site()).trail.page()).records
    assert (record.before, record.after) == ({"ready": 20}, {"cancelled": 20})


async def test_changes_of_tenants_are_for_those_who_may(
    app: Faena, send: Task[int, None], browser: Browser
) -> None:
    await browser.sign_in("a-viewer")
    page = await browser.get("/tenants/acme")
    assert "tenants.hold" not in page.text
    assert (await browser.post("/do/tenants.hold", tenant="acme")).status_code == 403
    await browser.sign_in("a-operator")
    page = await browser.get("/tenants/acme")
    assert "tenants.hold" in page.text
    assert "tenants.configure" not in page.text
    assert (await browser.post("/do/tenants.dedicate", tenant="acme")).status_code == 403


@pytest.mark.parametrize(
    ("operation", "fields", "status"),
    [
        ("hold", {"queue": "nail"}, 404),
        ("hold", {"queue": "plain"}, 422),
        ("hold", {"lasting": "soon"}, 422),
        ("hold", {"reason": "\x07"}, 422),
        ("configure", {"queue": "mail", "weight": "heavy"}, 422),
        ("configure", {"queue": "mail", "weight": "-1"}, 422),
        ("configure", {"queue": "mail", "limits": "a lot"}, 422),
        ("configure", {"queue": "mail"}, 422),
        ("dedicate", {}, 422),
    ],
)
async def test_what_makes_no_sense_changes_no_tenant(
    app: Faena,
    send: Task[int, None],
    browser: Browser,
    operation: str,
    fields: dict[str, str],
    status: int,
) -> None:
    await browser.sign_in("a-admin")
    answer = await browser.post(f"/do/tenants.{operation}", tenant="acme", **fields)
    assert answer.status_code == status
    assert not await app.queues["mail"].census()


async def test_jobs_of_a_tenant_are_found_in_every_state(
    app: Faena, send: Task[int, None], browser: Browser
) -> None:
    await send.enqueue(0, tenant="acme", id="one")
    await send.enqueue(0, tenant="bolt", id="two")
    await app.run_worker(until_empty=True)
    await send.enqueue(0, tenant="acme", id="three")
    await send.enqueue(0, tenant="acme", id="four", delay="1h")
    await send.enqueue(0, tenant="bolt", id="five")
    await browser.sign_in("a-viewer")
    for state, job in (("ready", "three"), ("delayed", "four"), ("completed", "one")):
        page = await browser.get(f"/tenants/acme?tab=jobs&queue=mail&state={state}")
        assert re.findall(r'name mono" href="[^"]*">(\w+)<', page.text) == [job]
    for query in ("tab=nothing", "tab=jobs&state=lost", "tab=jobs&queue=mail&cursor=x"):
        assert (await browser.get(f"/tenants/acme?{query}")).status_code == 422
    assert (await browser.get("/tenants/acme?tab=jobs&queue=nail")).status_code == 404


async def test_names_of_tenants_are_shown_as_text(
    app: Faena, send: Task[int, None], browser: Browser
) -> None:
    name = "<b>/x?&#%41"
    await send.enqueue(0, tenant=name)
    await browser.sign_in("a-admin")
    page = await browser.get("/tenants")
    (link,) = re.findall(r'class="name" href="([^"]+)"', page.text)
    assert "<b>/x" not in page.text
    own = await browser.get(html.unescape(link))
    assert own.status_code == 200
    assert html.escape(name) in own.text
    (job,) = re.findall(
        r'name mono" href="([^"]+)"', (await browser.get(f"{html.unescape(link)}?tab=jobs")).text
    )
    assert (await browser.get(html.unescape(job))).status_code == 200


async def test_an_open_page_of_tenants_hears_what_changes(
    send: Task[int, None], browser: Browser
) -> None:
    await _fill(send, acme=2)
    await browser.sign_in("a-viewer")
    now = (await browser.get("/now/tenants?window=1m")).json()
    assert now["acme.waiting"] == "2"
    assert (await browser.get("/now/tenant?tenant=acme")).json()["waiting"] == "2"
    assert (await browser.get("/now/tenants?window=1y")).status_code == 422
