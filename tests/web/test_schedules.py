"""Schedules are said in plain words, changed, paused and run; what code says can be had again."""

from __future__ import annotations

import re

import pytest

from faena import Faena
from faena.scheduling.options import Terms
from faena.task import Task
from faena.testing import Harness
from faena.web.application import Dashboard
from faena.web.page.recurrence import recurrence
from faena.web.words import Speaker
from tests.web.conftest import Browser


@pytest.fixture
def report(app: Faena) -> Task[dict[str, str], None]:
    reports = app.queue("reports")

    @reports.task
    async def report(payload: dict[str, str]) -> None: ...

    app.schedule("nightly", report, {"password": "hunter2"}, cron="0 2 * * *")
    return report


def _says(**terms: object) -> str:
    when = {name: value for name, value in terms.items() if name != "tz"}
    return recurrence({"when": when, "tz": terms.get("tz", "UTC")}, Speaker("en"))


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("0 2 * * *", "every day at 02:00 UTC"),
        ("0 0 2 * * *", "every day at 02:00 UTC"),
        ("@daily", "every day at 00:00 UTC"),
        ("* * * * *", "every minute UTC"),
        ("*/15 * * * *", "every 15 minutes UTC"),
        ("7 * * * *", "every hour, at minute 07 UTC"),
        ("5 */6 * * *", "every 6 hours, at minute 05 UTC"),
        ("30 9 * * MON", "every Monday at 09:30 UTC"),
        ("30 9 * * 1,7", "every Monday, Sunday at 09:30 UTC"),
        ("0 9 * * 1-5", "from Monday to Friday at 09:00 UTC"),
        ("0 9 1 * *", "on day 1 of every month at 09:00 UTC"),
        ("0 9 L * *", "on the last day of every month at 09:00 UTC"),
        ("0 9 1 6 *", "by the expression 0 9 1 6 * UTC"),
        ("*/7 * * * *", "by the expression */7 * * * * UTC"),
        ("30 0 9 * * MON#2", "by the expression 30 0 9 * * MON#2 UTC"),
        ("0 5 */5 * *", "by the expression 0 5 */5 * * UTC"),
    ],
)
def test_expressions_are_said_in_plain_words(cron: str, words: str) -> None:
    Terms(task="t", when={"cron": cron})
    assert _says(cron=cron) == words


def test_intervals_and_instants_are_said_in_plain_words() -> None:
    assert _says(every=21_600_000_000) == "every 6 h"
    assert _says(at=[0, 60_000_000]) == "once, at 1970-01-01T00:00:00Z, 1970-01-01T00:01:00Z"


async def test_the_list_says_when_each_fires(
    app: Faena, report: Task[dict[str, str], None], browser: Browser
) -> None:
    app.schedule("hourly", report, {}, every="1h", tenant="acme")
    await app.schedules.declare()
    await app.schedules.pause("nightly", by="ana")
    await browser.sign_in("a-viewer")
    page = await browser.get("/schedules")
    assert "1 of 2 schedules paused" in page.text
    assert "every day at 02:00 UTC" in page.text
    assert "every 1 h" in page.text
    assert re.findall(r'class="name" href="/schedules/(\w+)"', page.text) == ["nightly", "hourly"]
    assert "schedules.create" not in page.text


async def test_a_page_shows_what_comes_and_what_was(
    app: Faena, h: Harness, report: Task[dict[str, str], None], browser: Browser
) -> None:
    app.schedule("often", report, {}, every="10m")
    await app.schedules.declare()
    h.clock.advance("30m")
    past = await app.schedules.past("often")
    assert len(past) == 3
    assert not any(one.is_fired for one in past)
    scheduler = await app.schedules.scheduler(["reports"])
    await scheduler.run_once()
    (first, *_) = await app.schedules.past("often")
    assert first.is_fired
    await browser.sign_in("a-viewer")
    page = await browser.get("/schedules/often")
    assert first.job in page.text
    coming = await app.schedules.next("often", 5)
    assert all(f"{one:%Y-%m-%d %H:%M:%S}" in page.text for one in coming)
    page = await browser.get("/schedules/nightly")
    assert "hunter2" not in page.text
    assert (await browser.get("/schedules/no-such")).status_code == 404
    assert (await browser.get("/schedules/%00")).status_code == 404


async def test_a_schedule_is_paused_resumed_and_run(
    app: Faena, report: Task[dict[str, str], None], browser: Browser
) -> None:
    await app.schedules.declare()
    await browser.sign_in("a-operator")
    back = "/schedules/nightly"
    answer = await browser.post("/do/schedules.pause", schedule="nightly", back=back)
    page = await browser.get(answer.headers["location"])
    assert "Schedule nightly is paused" in page.text
    assert 'action="/do/schedules.resume"' in page.text[page.text.index("toasts") :]
    assert (await app.schedules.get("nightly")).state == "paused"
    await browser.post("/do/schedules.resume", schedule="nightly", back=back)
    assert (await app.schedules.get("nightly")).state == "active"
    await browser.post("/do/schedules.run", schedule="nightly", back=back)
    assert (await app.queues["reports"].counts())["ready"] == 1


async def test_a_form_changes_only_what_was_changed_in_it(
    app: Faena, web: Dashboard, report: Task[dict[str, str], None], browser: Browser
) -> None:
    await app.schedules.declare()
    await browser.sign_in("a-admin")
    form = {"schedule": "nightly", "if_changed": "true", "cron": "0 2 * * *", "missed": "latest"}
    form |= {"tz": "Europe/Madrid", "overlap": "allow", "payload_json": '{"password": "other"}'}
    answer = await browser.post("/do/schedules.edit", **form, back="/schedules/nightly")
    assert answer.status_code == 303
    view = await app.schedules.get("nightly")
    assert [*view.edits] == ["tz", "payload"]
    assert view.when == "0 2 * * * Europe/Madrid"
    page = await browser.get(answer.headers["location"])
    toast = page.text[page.text.index("toasts") :]
    assert re.findall(r'name="term" value="(\w+)"', toast) == ["tz", "payload"]
    (record,) = (await (await web.site()).trail.page()).records
    assert "other" not in str((record.before, record.after))
    answer = await browser.client.post(
        "/do/schedules.reset",
        data={"token": browser.token, "schedule": "nightly", "term": ["tz", "payload"]},
        headers=browser.headers,
    )
    assert answer.status_code == 303
    assert not (await app.schedules.get("nightly")).edits
    answer = await browser.post(
        "/do/schedules.edit", schedule="nightly", if_changed="true", cron="0 2 * * *"
    )
    assert answer.status_code == 422


async def test_a_schedule_is_created_and_removed(
    app: Faena, report: Task[dict[str, str], None], browser: Browser
) -> None:
    await browser.sign_in("a-admin")
    form = {"schedule": "late", "task": "reports/report", "at": "2036-05-01T09:00"}
    answer = await browser.post("/do/schedules.create", **form, payload_json="{}")
    assert answer.status_code == 303
    assert (await app.schedules.get("late")).since.by == "a-admin"
    assert "Remove late" in (await browser.get("/schedules/late")).text
    assert (await browser.post("/do/schedules.remove", schedule="nightly")).status_code == 409
    assert (await browser.post("/do/schedules.remove", schedule="late")).status_code == 303
    assert [one.name for one in await app.schedules.list()] == ["nightly"]


@pytest.mark.parametrize(
    ("name", "fields", "status"),
    [
        ("edit", {"cron": "at noon"}, 422),
        ("edit", {"cron": "0 3 * * *", "every": "5m"}, 422),
        ("edit", {"tz": "Mars/Base"}, 422),
        ("edit", {"count": "many"}, 422),
        ("edit", {"payload_json": "{"}, 422),
        ("edit", {}, 422),
        ("edit", {"schedule": "no-such", "tz": "UTC"}, 404),
        ("pause", {"schedule": "no-such"}, 404),
        ("pause", {"schedule": "../x"}, 404),
        ("reset", {"term": "nonsense"}, 422),
        ("create", {"schedule": "new", "task": "reports/none", "every": "5m"}, 422),
        ("create", {"schedule": "new", "task": "reports/report"}, 422),
    ],
)
async def test_what_makes_no_sense_changes_no_schedule(
    app: Faena,
    report: Task[dict[str, str], None],
    browser: Browser,
    name: str,
    fields: dict[str, str],
    status: int,
) -> None:
    await app.schedules.declare()
    await browser.sign_in("a-admin")
    answer = await browser.post(f"/do/schedules.{name}", **{"schedule": "nightly", **fields})
    assert answer.status_code == status, answer.text
    (view,) = await app.schedules.list()
    assert not view.edits
    assert view.paused is None


async def test_a_list_of_instants_is_judged_like_any_option(app: Faena, browser: Browser) -> None:
    @app.cron("0 2 * * *")
    async def nightly() -> None: ...

    await browser.sign_in("a-owner")
    answer = await browser.client.post(
        "/api/schedules/nightly/edit",
        json={"at": ["no instant"]},
        headers={**browser.headers, "x-faena-token": browser.token},
    )
    assert answer.status_code == 422
