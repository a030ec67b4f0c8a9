"""Hostile requests: guesses all at once, fields twice, JSON too deep, users that are others now."""

from __future__ import annotations

import asyncio
import time
from urllib.parse import urlencode

import httpx
import msgspec
import pytest

from faena import Faena, Job
from faena.web.access.account import Account, Accounts
from faena.web.access.invitation import Invitations
from faena.web.access.role import Role
from faena.web.application import Dashboard
from faena.web.page.job import pretty
from tests.web.conftest import PASSWORD, Browser

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
