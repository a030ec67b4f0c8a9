"""Owners give access on a page of their own; who is invited sets a password."""

from __future__ import annotations

import re

import pytest

from faena.web.access.account import Account, Accounts
from faena.web.access.role import Role
from tests.web.conftest import PASSWORD, Browser

NEW = "another word 8"


async def test_owners_see_who_has_access(accounts: Accounts, browser: Browser) -> None:
    await accounts.add_token(Account(name="<b>ci</b>", role=Role.VIEWER, tenant="acme"))
    await accounts.add_token(Account(name="old", role=Role.VIEWER, expires_at=1))
    await browser.sign_in("a-owner")
    page = await browser.get("/access")
    assert "One owner can sign in" in page.text
    assert "1 token is no longer good" in page.text
    assert "a-viewer" in page.text
    assert "<b>ci</b>" not in page.text
    assert "/access" in (await browser.get("/")).text
    await browser.sign_in("a-admin")
    assert (await browser.get("/access")).status_code == 403
    assert 'href="/access"' not in (await browser.get("/")).text


async def test_who_is_invited_sets_a_password_and_is_in(
    accounts: Accounts, browser: Browser
) -> None:
    await browser.sign_in("a-owner")
    shown = await browser.post("/do/users.invite", name="ana", role="operator", back="/access")
    found = re.search(r"(http://faena\.test)(/invitation/[\w-]+)", shown.text)
    assert found is not None
    assert "1 person has not set a password yet" in (await browser.get("/access")).text
    await browser.post("/sign-out")

    assert "Welcome, ana" in (await browser.get(found[2])).text
    secret = found[2].rpartition("/")[2]
    given = {"secret": secret, "password": NEW, "again": "something else"}
    assert (await browser.post("/invitation", **given)).status_code == 422
    given = {"secret": secret, "password": "ana", "again": "ana"}
    assert (await browser.post("/invitation", **given)).status_code == 422
    given = {"secret": secret, "password": NEW, "again": NEW}
    assert (await browser.post("/invitation", **given)).status_code == 303
    assert "ana" in (await browser.get("/account")).text
    assert (await browser.post("/invitation", **given)).status_code == 403
    assert (await browser.get(found[2])).status_code == 403


async def test_an_invitation_from_another_site_sets_nothing(
    accounts: Accounts, browser: Browser
) -> None:
    browser.headers = {"sec-fetch-site": "cross-site"}
    assert (await browser.post("/invitation", secret="x", password=NEW)).status_code == 403


async def test_a_token_is_shown_once(accounts: Accounts, browser: Browser) -> None:
    await browser.sign_in("a-owner")
    shown = await browser.post("/do/tokens.add", name="ci", role="viewer", lasting="90d")
    found = re.search(r"faena_[\w-]+", shown.text)
    assert found is not None
    assert (await accounts.token(found[0])) is not None
    for path in ("/access", "/audit"):
        assert found[0] not in (await browser.get(path)).text


@pytest.mark.parametrize("off", ["true", "false"])
async def test_people_are_kept_out_and_let_in(
    accounts: Accounts, browser: Browser, off: str
) -> None:
    await accounts.change_user("a-viewer", is_off=off == "false")
    await browser.sign_in("a-owner")
    answer = await browser.post("/do/users.change", user="a-viewer", off=off, back="/access")
    assert answer.status_code == 303
    account = await accounts.user("a-viewer")
    assert account is not None
    assert account.is_off is (off == "true")
    answer = await browser.post("/do/users.change", user="a-owner", role="viewer")
    assert answer.status_code == 409


async def test_who_gets_another_password_is_out(accounts: Accounts, browser: Browser) -> None:
    await browser.sign_in("a-viewer")
    assert (await browser.get("/account")).status_code == 200
    await accounts.change_user("a-viewer", password=NEW)
    assert (await browser.get("/account")).status_code == 303
    await browser.sign_in("a-viewer", PASSWORD)
    assert (await browser.get("/account")).status_code == 303
    await browser.sign_in("a-viewer", NEW)
    assert (await browser.get("/account")).status_code == 200
