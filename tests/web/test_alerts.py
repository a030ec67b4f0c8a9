"""Alerts: what fires is said, silences are made and ended, channels are tried."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from faena import Alerts, Faena, Log, Thresholds, Webhook
from faena.web.application import Dashboard
from tests._support.valkey import Server
from tests._support.working import obliterate
from tests.web.conftest import Browser

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
async def app(valkey: Server, namespace: str) -> AsyncIterator[Faena]:
    """The usual one, watched."""
    watched = Faena(
        "shop",
        valkey.url,
        namespace=namespace,
        alerts=Alerts(channels=[Log(), Webhook(name="ops", url="https://127.0.0.1:9/x")]),
    )
    bounds = Thresholds(depth=(1, 3), wait=(None, None), silent=(None, None))
    mail = watched.queue("mail", alerts=bounds)
    watched.queue("idle")

    @mail.task
    async def work() -> None: ...

    yield watched
    await obliterate(watched)


async def _judge(app: Faena, jobs: int = 1) -> None:
    for _ in range(jobs):
        await app.queues["mail"].tasks["work"].enqueue()
    await (await app.evaluator()).run_once()


async def test_what_fires_is_said_first(app: Faena, web: Dashboard, browser: Browser) -> None:
    await browser.sign_in("a-viewer")
    assert "Nothing fires." in (await browser.get("/alerts")).text
    await _judge(app, 3)
    (await web.site()).standings.forget()
    page = await browser.get("/alerts")
    assert "1 alert fires. The worst: depth of mail" in page.text
    assert "3 jobs wait (warning from 1, critical from 3)" in page.text
    assert 'href="/queues/mail"' in page.text
    assert "Silence…" not in page.text
    now = (await browser.get("/now/alerts")).json()
    assert now["depth mail.text"].startswith("3 jobs wait")
    assert now["nav.alert"] == "1"


async def test_an_alert_is_silenced_and_told_again(
    app: Faena, web: Dashboard, browser: Browser
) -> None:
    await _judge(app)
    await browser.sign_in("a-operator")
    fields = {"rule": "depth", "subject": "mail", "lasting": "2h", "reason": SCRIPT}
    answer = await browser.post("/do/alerts.silence", back="/alerts", **fields)
    (silence,) = (await app.alerts()).silences
    assert (silence.by, silence.reason) == ("a-operator", SCRIPT)
    page = await browser.get(answer.headers["location"])
    assert SCRIPT not in page.text
    assert "keeps 1 alert quiet" in page.text
    assert "All that fires is silenced." in page.text
    assert f'name="silence" value="{silence.id}"' in page.text
    answer = await browser.post("/do/alerts.unsilence", silence=silence.id, back="/alerts")
    assert (await app.alerts()).silences == ()
    page = await browser.get(answer.headers["location"])
    assert 'name="lasting" value="7' in page.text  # nearly two hours are left
    assert (await browser.get("/now/alerts")).json()["nav.alert"] == "1"


async def test_the_history_is_filtered_by_the_address(app: Faena, browser: Browser) -> None:
    await _judge(app)
    await browser.sign_in("a-viewer")
    assert '<td data-label="When">' in (await browser.get("/alerts")).text
    page = await browser.get("/alerts?rule=depth&subject=mail")
    assert "1 jobs wait" in page.text
    assert "No change matches." in (await browser.get("/alerts?rule=memory")).text
    assert "No alert has changed." in (await browser.get("/alerts?from=50")).text


async def test_a_channel_is_tried_and_a_failure_is_said(
    app: Faena, web: Dashboard, browser: Browser
) -> None:
    await browser.sign_in("a-operator")
    answer = await browser.post("/do/alerts.test", channel="log", back="/alerts")
    assert answer.status_code == 303
    page = await browser.get(answer.headers["location"])
    assert "log has accepted a trial notice" in page.text
    answer = await browser.post("/do/alerts.test", channel="ops", back="/alerts")
    assert answer.status_code in {422, 502}
    assert (await browser.post("/do/alerts.test", channel="nope")).status_code == 404
    records = (await (await web.site()).trail.page()).records
    assert [one.outcome == "done" for one in records] == [False, False, True]
    assert all(one.outcome for one in records)


async def test_what_makes_no_sense_is_refused(app: Faena, browser: Browser) -> None:
    await browser.sign_in("a-operator")
    for path in ("/alerts?rule=nope", "/alerts?from=x", "/alerts?from=-1"):
        assert (await browser.get(path)).status_code == 422, path
    silence = {"lasting": "1h", "reason": "x"}
    refused = [
        ({**silence, "rule": "nope"}, 422),
        ({**silence, "rule": "depth", "subject": "nail"}, 422),
        ({**silence, "lasting": "soon"}, 422),
        ({"lasting": "1h"}, 422),
    ]
    for fields, status in refused:
        answer = await browser.post("/do/alerts.silence", **fields)
        assert answer.status_code == status, fields
    assert (await browser.post("/do/alerts.unsilence", silence="00000000")).status_code == 404
    assert (await app.alerts()).silences == ()


async def test_a_viewer_silences_nothing(app: Faena, browser: Browser) -> None:
    await browser.sign_in("a-viewer")
    answer = await browser.post("/do/alerts.silence", lasting="1h", reason="x")
    assert answer.status_code == 403
