"""Jobs are chosen on a page, what is done to them is confirmed, and followed to its end."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from faena import Faena, Retry
from faena.inspection.job_query import JobQuery
from faena.task import Task
from faena.web.application import Dashboard
from faena.web.page import bulk
from tests._support.eventually import eventually
from tests.web.conftest import Browser

Send = Task[int, None]


@pytest.fixture
def send(app: Faena) -> Send:
    mail = app.queue("mail", retry=Retry.fixed("1s", attempts=1))

    @mail.task
    async def send(number: int) -> None:
        if number < 0:
            raise ConnectionError("the printer is on fire")

    return send


async def over(app: Faena, location: str) -> str:
    """Wait for the end of the bulk action that a form went to; returns its id."""
    found = re.match(r"/bulk/([^?]+)\?done=", location)
    assert found is not None, location

    async def is_over() -> bool:
        return (await app.bulk.get(found[1])).state == "done"

    await eventually(is_over)
    return found[1]


async def test_chosen_jobs_are_confirmed_and_changed(
    app: Faena, send: Send, browser: Browser
) -> None:
    jobs = [one.id for one in await send.enqueue_many([1, 2, 3])]
    await browser.sign_in("a-operator")
    page = await browser.get("/queues/mail/jobs?state=ready")
    assert all(f'value="mail {job}"' in page.text for job in jobs)
    chosen = [f"mail {job}" for job in jobs[:2]]
    page = await browser.get(
        "/bulk/new?action=cancel&" + "&".join(f"job={quote(one)}" for one in chosen)
    )
    assert "Cancel 2 jobs?" in page.text
    assert "Cancel: 2 jobs" in page.text
    assert (await app.queues["mail"].counts())["ready"] == 3
    answer = await browser.client.post(
        "/do/bulk.cancel",
        data={"token": browser.token, "job": chosen, "reason": "by mistake"},
        headers=browser.headers,
    )
    ident = await over(app, answer.headers["location"])
    assert (await app.queues["mail"].counts())["cancelled"] == 2
    page = await browser.get(f"/bulk/{ident}")
    assert "It is over." in page.text
    assert "by mistake" in page.text
    assert "a-operator" in (await browser.get("/bulk")).text


async def test_all_that_match_are_counted_first(
    app: Faena, send: Send, browser: Browser, web: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send.enqueue_many(range(70), tenant="acme")
    await send.enqueue_many(range(5), tenant="bolt")
    await browser.sign_in("a-operator")
    page = await browser.get("/search?q=tenant:acme")
    assert "all that match, on all pages" in page.text
    confirming = "/bulk/new?action=cancel&all=1&q=tenant:acme"
    assert "Cancel all 70 jobs that match?" in (await browser.get(confirming)).text
    monkeypatch.setattr(bulk, "_BUDGET_S", 0.0)
    page = await browser.get(confirming)
    assert "Cancel all 50 or more jobs that match?" in page.text
    assert "of about 75 jobs were looked at" in page.text
    answer = await browser.post("/do/bulk.cancel", q="tenant:acme")
    ident = await over(app, answer.headers["location"])
    assert (await app.queues["mail"].counts())["cancelled"] == 70
    now = (await browser.get(f"/now/bulk?id={ident}")).json()
    assert (now["done"], now["state"], now["part"]) == ("70", "done", "100 %")
    (record,) = (await (await web.site()).trail.page()).records
    assert (record.operation, record.outcome, record.by) == ("bulk.cancel", "done", "a-operator")


async def test_what_was_left_alone_is_said(app: Faena, send: Send, browser: Browser) -> None:
    dead, _ = [one.id for one in await send.enqueue_many([-1, -2])]
    await app.run_worker(until_empty=True)
    await app.dead_letters.resolve("mail", dead)
    await browser.sign_in("a-operator")
    answer = await browser.post("/do/bulk.retry", q="state:dead")
    ident = await over(app, answer.headers["location"])
    page = await browser.get(f"/bulk/{ident}")
    assert "1 job was left alone" in page.text
    assert "resolved already" in page.text
    assert dead in page.text


async def test_one_is_stopped_and_goes_on(app: Faena, send: Send, browser: Browser) -> None:
    await send.enqueue_many(range(3))
    ident = await app.bulk.begin("discard", query=JobQuery.parse("task:send", 0))
    await browser.sign_in("a-operator")
    assert (await browser.post("/do/bulk.stop", bulk=ident)).status_code == 303
    assert "It was stopped" in (await browser.get(f"/bulk/{ident}")).text
    assert (await browser.post("/do/bulk.resume", bulk=ident)).status_code == 403
    await browser.sign_in("a-admin")
    assert (await browser.post("/do/bulk.resume", bulk=ident)).status_code == 303
    await over(app, f"/bulk/{ident}?done=1")


async def test_removing_and_discarding_are_for_administrators(
    app: Faena, send: Send, browser: Browser
) -> None:
    await browser.sign_in("a-operator")
    for action in ("remove", "discard"):
        assert (await browser.get(f"/bulk/new?action={action}&job=mail+x")).status_code == 403
        assert (await browser.post(f"/do/bulk.{action}", q="mail")).status_code == 403
    await browser.sign_in("a-viewer")
    assert (await browser.get("/bulk/new?action=cancel&job=mail+x")).status_code == 403
    assert 'name="job"' not in (await browser.get("/search?q=mail")).text


async def test_what_makes_no_sense_is_refused(app: Faena, send: Send, browser: Browser) -> None:
    await browser.sign_in("a-admin")
    for query in (
        "action=explode&job=mail+x",
        "action=cancel",
        "action=cancel&job=mail",
        "action=cancel&all=1",
    ):
        assert (await browser.get(f"/bulk/new?{query}")).status_code in {404, 422}, query
    for fields in (
        {},
        {"job": "mail"},
        {"q": ""},
        {"q": "colour:red"},
        {"q": "mail", "job": "mail x"},
    ):
        assert (await browser.post("/do/bulk.cancel", **fields)).status_code == 422, fields
    assert (await browser.post("/do/bulk.cancel", q="payload.a:1")).status_code == 403
    assert (await browser.post("/do/bulk.cancel", job="nail x")).status_code == 422
    assert (await browser.get("/bulk/none")).status_code == 404
    assert (await browser.get("/bulk/%00")).status_code in {404, 422}
    assert (await browser.get("/now/bulk?id=none")).status_code == 404
    assert (await browser.post("/do/bulk.stop", bulk="none")).status_code == 404


async def test_the_api_begins_one(app: Faena, send: Send, browser: Browser) -> None:
    job = (await send.enqueue(1, delay="1h")).id
    await browser.sign_in("a-operator")
    answer = await browser.client.post(
        "/api/bulk/promote",
        json={"job": [f"mail {job}"]},
        headers={**browser.headers, "x-faena-token": browser.token},
    )
    assert answer.status_code == 200
    await over(app, f"/bulk/{answer.json()['id']}?done=1")
    assert (await app.queues["mail"].counts())["ready"] == 1
