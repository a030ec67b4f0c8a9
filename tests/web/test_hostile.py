"""Hostile requests: guesses all at once, fields twice, JSON too deep, users that are others now."""

from __future__ import annotations

import asyncio
import time
from urllib.parse import urlencode

import httpx
import msgspec
import pytest

from faena import Faena, Job
from faena.engine.calls.access import AccessCalls
from faena.web.access.access import Access
from faena.web.access.account import Account, Accounts, digest_of
from faena.web.access.caller import Caller
from faena.web.access.invitation import Invitations
from faena.web.access.role import Role
from faena.web.application import Dashboard, dashboard
from faena.web.page.job import pretty
from tests.web.conftest import BASE, PASSWORD, Browser

DEEP = b"[" * 50_000 + b"]" * 50_000


async def _form(browser: Browser, path: str, *fields: tuple[str, str]) -> httpx.Response:
    headers = browser.headers | {"content-type": "application/x-www-form-urlencoded"}
    body = urlencode([("token", browser.token), *fields])
    return await browser.client.post(path, content=body, headers=headers)


async def test_guesses_that_come_at_once_are_counted_like_others(browser: Browser) -> None:
    async with asyncio.TaskGroup() as group:
        tries = [
            group.create_task(
                browser.post("/sign-in", user="a-owner", password=f"guess {n} of all")
            )
            for n in range(30)
        ]
    refused = [one.result().status_code for one in tries].count(429)
    assert refused >= 30 - 12  # two are looked at while the tenth is counted


async def test_a_session_is_not_that_of_a_later_user_of_its_name(
    web: Dashboard, accounts: Accounts, browser: Browser
) -> None:
    await accounts.add_user(Account(name="ana", role=Role.VIEWER), PASSWORD)
    await browser.sign_in("ana")
    assert (await browser.get("/account")).status_code == 200
    await accounts.remove("user", "ana")
    now = time.time_ns() // 1000
    await accounts.add_user(Account(name="ana", role=Role.OWNER, made_at=now), "another word 8")
    assert (await browser.get("/account")).status_code == 303


async def test_an_invitation_is_not_for_a_later_user_of_its_name(
    app: Faena, web: Dashboard, accounts: Accounts
) -> None:
    invitations = Invitations((await app.runtime()).engine, accounts)
    ana = Account(name="ana", role=Role.OWNER, made_at=time.time_ns() // 1000)
    await accounts.add_invited(ana)
    former = await invitations.make("ana")
    assert await invitations.whose(former) == "ana"
    await accounts.remove("user", "ana")
    assert await invitations.whose(former) is None
    ana = msgspec.structs.replace(ana, made_at=time.time_ns() // 1000)
    await accounts.add_invited(ana)
    assert await invitations.accept(former, PASSWORD) is None


async def test_a_second_invitation_is_void_when_a_password_is_set(
    app: Faena, web: Dashboard, accounts: Accounts
) -> None:
    invitations = Invitations((await app.runtime()).engine, accounts)
    await accounts.add_invited(Account(name="ana", role=Role.VIEWER))
    first, second = await invitations.make("ana"), await invitations.make("ana")
    assert await invitations.accept(second, PASSWORD) == "ana"
    assert await invitations.accept(first, "another word 8") is None


@pytest.mark.parametrize("name", ["queue", "back"])
async def test_a_field_that_is_there_twice_is_refused(
    app: Faena, browser: Browser, name: str
) -> None:
    mail = app.queue("mail")
    await browser.sign_in("a-operator")
    fields = [("queue", "mail"), ("back", "/"), (name, "mail")]
    answer = await _form(browser, "/do/queues.pause", *fields)
    assert answer.status_code == 422
    assert f"must say {name} once" in answer.text
    assert (await mail.overview()).holds == ()


async def test_json_that_is_too_deep_is_refused(app: Faena, browser: Browser) -> None:
    app.queue("mail")
    await browser.sign_in("a-admin")
    headers = browser.headers | {"x-faena-token": browser.token}
    body = b'{"task": "mail/send", "every": "1h", "payload": ' + DEEP + b"}"
    answer = await browser.client.post("/api/schedules/x/create", content=body, headers=headers)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_payload_that_is_too_deep_is_said_to_be_no_json() -> None:
    assert "no JSON" in pretty(DEEP)


async def test_progress_is_shown_to_those_who_see_payloads(
    app: Faena, accounts: Accounts, browser: Browser
) -> None:
    mail = app.queue("mail")

    @mail.task
    async def send(job: Job) -> None:
        job.progress("card 4242 is read")

    job = await send.enqueue()
    await app.run_worker(until_empty=True)
    await browser.sign_in("a-viewer")
    page = await browser.get(f"/queues/mail/jobs/{job.id}")
    assert page.status_code == 200
    assert "4242" not in page.text
    seeing = Account(name="seeing", role=Role.VIEWER, sees_payloads=True)
    await accounts.add_user(seeing, PASSWORD)
    await browser.sign_in("seeing")
    assert "4242" in (await browser.get(f"/queues/mail/jobs/{job.id}")).text


@pytest.mark.parametrize("site", ["same-site", "none", "cross-site"])
async def test_only_our_own_pages_change_something(browser: Browser, site: str) -> None:
    await browser.sign_in("a-operator")
    browser.headers = {"sec-fetch-site": site}
    assert (await browser.post("/theme")).status_code == 403


async def test_an_origin_that_is_no_address_is_foreign(browser: Browser) -> None:
    await browser.sign_in("a-operator")
    for headers in ({"origin": "http://["}, {"origin": "null"}):
        browser.headers = headers
        assert (await browser.post("/theme")).status_code == 403
        assert (await browser.post("/sign-in", user="a", password="b")).status_code == 403


async def test_who_signs_out_is_out_with_the_same_cookie_too(browser: Browser) -> None:
    answer = await browser.sign_in("a-viewer")
    given = answer.headers["set-cookie"]
    assert "httponly" in given.lower()
    assert "samesite=lax" in given.lower()
    cookie = given.partition(";")[0]
    await browser.post("/sign-out")
    answer = await browser.client.get("/account", headers={"cookie": cookie})
    assert answer.status_code == 303


async def test_a_token_that_has_expired_opens_nothing(accounts: Accounts, browser: Browser) -> None:
    for until, status in ((1, 401), (time.time_ns() // 1000 + 60_000_000, 200)):
        account = Account(name="ci", role=Role.VIEWER, expires_at=until)
        _, token = await accounts.add_token(account)
        headers = {"authorization": f"Bearer {token}"}
        assert (await browser.client.get("/api/me", headers=headers)).status_code == status


async def test_a_session_that_is_used_ends_after_a_day(app: Faena, web: Dashboard) -> None:
    sessions = (await web.site()).gate.sessions
    caller = Caller(name="a-viewer", role=Role.VIEWER, via="link")
    secret = await sessions.begin(caller)
    engine = (await app.runtime()).engine
    calls, key = AccessCalls(engine), digest_of(secret)
    packed = await calls.session(key)
    assert packed is not None
    now = time.time()
    old = msgspec.msgpack.decode(packed) | {"began_at": now - 86_000, "seen_at": now - 1_000}
    await calls.keep_session(key, msgspec.msgpack.encode(old), 60_000)
    assert await sessions.known(secret) is not None
    assert await engine.command("PTTL", "@access", f"session:{key}") <= 400_000


async def test_a_link_opens_nothing_where_links_are_no_way_in(
    app: Faena, web: Dashboard, browser: Browser
) -> None:
    sessions = (await web.site()).gate.sessions
    secret = await sessions.make_link(Caller(name="dev", role=Role.OWNER, via="link"))
    closed = dashboard(app, access=Access())
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(closed), base_url=BASE, headers=browser.headers
    ) as client:
        assert (await client.post("/link", data={"secret": secret})).status_code == 403
    await closed.close()


@pytest.mark.parametrize(
    "back", ["//evil.test", "/\\evil.test", "https://evil.test", "/\tx", "/x\r\nSet-Cookie: a=b"]
)
async def test_a_form_leads_back_to_the_dashboard_only(
    app: Faena, browser: Browser, back: str
) -> None:
    await browser.sign_in("a-viewer")
    answer = await browser.post("/theme", back=back)
    assert answer.headers["location"] == "/"
    assert (await browser.get(f"/sign-in?{urlencode({'back': back})}")).headers["location"] == "/"
    assert "a=b" not in answer.headers.get_list("set-cookie")


async def test_one_tenant_follows_no_page_of_all_with_its_own_name(
    app: Faena, accounts: Accounts, browser: Browser
) -> None:
    app.queue("mail")
    account = Account(name="acme", role=Role.OWNER, tenant="acme", sees_payloads=True)
    await accounts.add_user(account, PASSWORD)
    await browser.sign_in("acme")
    for page in ("overview", "queue", "tenants", "alerts", "costs", "workers", "upstreams", "bulk"):
        for kind in ("now", "live"):
            answer = await browser.get(f"/{kind}/{page}?tenant=acme&queue=mail&id=x")
            assert answer.status_code == 404, (kind, page)


async def test_what_was_secret_is_veiled_in_the_trail(web: Dashboard, browser: Browser) -> None:
    trail = (await web.site()).trail

    async def do() -> tuple[object, object, object]:
        return None, {"password": "hunter2"}, {"nested": {"token": "hunter3"}}

    await trail.keep(Caller(name="ana", role=Role.ADMIN), "queues.pause", {"queue": "q"}, {}, do)
    await browser.sign_in("a-admin")
    page = await browser.get("/audit")
    assert "veiled" in page.text
    assert "hunter" not in page.text


async def test_a_change_is_on_the_record_before_it_is_made(web: Dashboard) -> None:
    trail = (await web.site()).trail

    async def do() -> tuple[object, object, object]:
        (record,) = (await trail.page()).records
        assert (record.by, record.outcome) == ("ana", "")
        return None, None, None

    await trail.keep(Caller(name="ana", role=Role.ADMIN), "queues.pause", {"queue": "q"}, {}, do)
    (record,) = (await trail.page()).records
    assert record.outcome == "done"
