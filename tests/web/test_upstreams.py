"""Outside services and features: what is wrong is said, and what operators decide is done."""

from __future__ import annotations

import pytest

from faena import Breaker, Budget, Faena, Price
from faena.resilience.upstream import Upstream
from faena.web.application import Dashboard
from tests._support.valkey import Server
from tests.web.conftest import Browser

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def afip(app: Faena) -> Upstream:
    return app.upstream(
        "afip",
        limits=["2/h"],
        breaker=Breaker(volume=3, open="10m"),
        prices=[Price("call", "0.50 USD")],
        budgets=[Budget("100 USD", per="month", thresholds=(50, 80))],
    )


async def _fail(upstream: Upstream, times: int, tenant: str | None = None) -> None:
    for _ in range(times):
        with pytest.raises(ConnectionError):
            async with upstream.call(tenant=tenant):
                raise ConnectionError


async def test_upstreams_are_shown_worst_first_with_what_is_left(
    app: Faena, afip: Upstream, browser: Browser
) -> None:
    app.upstream("maps")

    async with afip.call():
        pass
    await app.upstream_control.panic("maps", reason=SCRIPT, by="ana", lasting="2h")
    await browser.sign_in("a-viewer")
    page = await browser.get("/upstreams")
    assert page.text.index(">maps</a>") < page.text.index(">afip</a>")
    assert "&lt;script&gt;alert(1)&lt;/script&gt; (ana)" in page.text
    assert SCRIPT not in page.text
    assert ">1 / 2</span>" in page.text
    assert "of 100.00 USD" in page.text
    assert "Panic…" not in page.text


async def test_one_upstream_tells_why_it_is_open(
    app: Faena, afip: Upstream, browser: Browser
) -> None:
    broken = app.upstream("broken", breaker=Breaker(volume=3, open="10m"))
    await _fail(broken, 3)
    await browser.sign_in("a-viewer")
    page = await browser.get("/upstreams/broken")
    assert "3 of 3 calls failed" in page.text
    assert '<li aria-current="step"><span>open</span>' in page.text
    assert "The next probe goes in " in page.text
    now = (await browser.get("/now/upstream?upstream=broken")).json()
    assert now["broken.word"] == "Open"
    assert now["nav.upstream"] == "1"
    assert "It takes calls as usual." in (await browser.get("/upstreams/afip")).text


async def test_an_upstream_is_shown_as_a_tenant_has_it(app: Faena, browser: Browser) -> None:
    own = app.upstream("mp", breaker=Breaker(volume=3, open="10m", per="tenant"))

    await _fail(own, 3, tenant="acme")
    await browser.sign_in("a-viewer")
    assert 'href="?tenant=acme"' in (await browser.get("/upstreams/mp")).text
    page = await browser.get("/upstreams/mp?tenant=acme")
    assert "of tenant acme" in page.text
    assert "3 of 3 calls failed" in page.text


async def test_a_panic_is_begun_changed_ended_and_taken_back(
    app: Faena, afip: Upstream, browser: Browser
) -> None:
    await browser.sign_in("a-admin")
    back = "/upstreams/afip"
    answer = await browser.post(
        "/do/upstreams.panic", upstream="afip", reason="certificates", lasting="1h", back=back
    )
    assert answer.status_code == 303
    panic = (await app.upstream_control.view("afip")).panic
    assert panic is not None
    assert (panic.reason, panic.by) == ("certificates", "a-admin")
    page = await browser.get(answer.headers["location"])
    assert 'action="/do/upstreams.end-panic"' in page.text
    answer = await browser.post("/do/upstreams.end-panic", upstream="afip", back=back)
    assert (await app.upstream_control.view("afip")).panic is None
    page = await browser.get(answer.headers["location"])
    assert 'name="reason" value="certificates"' in page.text
    assert 'name="lasting" value="35' in page.text  # nearly an hour is left


async def test_stopping_all_calls_is_for_administrators(
    app: Faena, afip: Upstream, browser: Browser
) -> None:
    await browser.sign_in("a-operator")
    answer = await browser.post("/do/upstreams.panic", upstream="afip", reason="x")
    assert answer.status_code == 403
    assert (await app.upstream_control.view("afip")).panic is None


async def test_an_upstream_is_forgotten_when_no_program_declares_it(
    app: Faena, afip: Upstream, browser: Browser, valkey: Server, namespace: str
) -> None:
    await app.upstream_views()
    await browser.sign_in("a-admin")
    assert (await browser.post("/do/upstreams.forget", upstream="afip")).status_code == 422
    assert "Forget…" not in (await browser.get("/upstreams/afip")).text
    other = Faena("other", valkey.url, namespace=namespace)
    other.upstream("gone")
    await other.upstream_views()
    await other.close()
    assert "Forget…" in (await browser.get("/upstreams/gone")).text
    assert (await browser.post("/do/upstreams.forget", upstream="gone")).status_code == 303
    assert (await browser.get("/upstreams/gone")).status_code == 404


async def test_features_are_limited_by_hand_and_back(
    app: Faena, web: Dashboard, browser: Browser
) -> None:
    voice = app.feature("ai.voice", fallback="manual", message="Type your report")
    app.feature("maps")
    app.level("sale", {"ai.voice": "degraded", "maps": "offline"})
    await browser.sign_in("a-operator")
    back = "/upstreams"
    answer = await browser.post(
        "/do/features.set", feature="ai.voice", state="offline", lasting="1h", back=back
    )
    page = await browser.get(answer.headers["location"])
    assert "ai.voice is offline by hand" in page.text
    assert 'action="/do/features.clear"' in page.text
    await browser.post("/do/features.clear", feature="ai.voice")
    assert (await voice.view()).is_healthy
    (record, *_) = (await (await web.site()).trail.page()).records
    assert (record.before["state"], record.after) == ("offline", None)

    await browser.post("/do/levels.on", level="sale", message="Big sale")
    page = await browser.get("/upstreams")
    assert "2 of 2 are limited" in page.text
    answer = await browser.post("/do/levels.off", level="sale", back=back)
    assert 'action="/do/levels.on"' in (await browser.get(answer.headers["location"])).text
    assert "all are healthy" in (await browser.get("/upstreams")).text


async def test_what_makes_no_sense_is_refused_and_on_the_record(
    app: Faena, afip: Upstream, web: Dashboard, browser: Browser
) -> None:
    app.feature("maps")
    await browser.sign_in("a-admin")
    refused = {
        "upstreams.panic": ({"upstream": "nope", "reason": "x"}, 404),
        "features.set": ({"feature": "maps", "state": "healthy"}, 422),
        "features.clear": ({"feature": "nope"}, 404),
        "features.forget": ({"feature": "maps"}, 422),
        "levels.on": ({"level": "nope"}, 404),
        "levels.off": ({}, 422),
    }
    for name, (fields, status) in refused.items():
        answer = await browser.post(f"/do/{name}", **fields)
        assert answer.status_code == status, name
    late = await browser.post("/do/upstreams.panic", upstream="afip", reason="x", lasting="soon")
    assert late.status_code == 422
    for path in ("/upstreams/nope", "/upstreams/%00", "/now/upstream?upstream=%0a"):
        assert (await browser.get(path)).status_code in {404, 422}, path
    assert (await browser.get("/upstreams/afip?tenant=%00")).status_code == 422
    records = (await (await web.site()).trail.page()).records
    assert all(one.outcome not in {"", "done"} for one in records)
    assert any("no such upstream nope" in one.outcome for one in records)
