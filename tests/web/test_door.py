"""Who comes in, and how; what strangers and other sites are told."""

from __future__ import annotations

import pytest

from faena import Faena
from faena.errors import ConfigError, InvalidTransition, JobConflict
from faena.web.access.account import Account, Accounts
from faena.web.access.caller import Caller
from faena.web.access.role import Role
from faena.web.application import Dashboard, dashboard
from tests.web.conftest import PASSWORD, Browser


def test_without_a_way_in_it_does_not_start(app: Faena) -> None:
    with pytest.raises(ConfigError, match="access must say who may come in"):
        dashboard(app)


async def test_a_stranger_is_shown_the_way_in_and_nothing_else(browser: Browser) -> None:
    answer = await browser.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    door = await browser.get("/sign-in")
    assert door.status_code == 200
    assert "Content-Security-Policy" in door.headers
    answer = await browser.client.post("/api/queues/mail/pause", json={})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_people_sign_in_and_out(browser: Browser) -> None:
    answer = await browser.sign_in("a-owner", "wrong, all wrong")
    assert answer.status_code == 401
    assert "do not match" in answer.text
    answer = await browser.sign_in("a-owner")
    assert answer.status_code == 303
    assert (await browser.get("/account")).status_code == 200
    assert (await browser.post("/sign-out")).status_code == 303
    assert (await browser.get("/account")).status_code == 303


async def test_a_user_without_an_account_is_answered_like_a_wrong_password(
    browser: Browser,
) -> None:
    known = await browser.sign_in("a-owner", "wrong, all wrong")
    unknown = await browser.sign_in("nobody", "wrong, all wrong")
    assert unknown.status_code == known.status_code
    assert unknown.text.replace("nobody", "a-owner") == known.text


async def test_guessing_is_stopped_also_for_the_right_password(browser: Browser) -> None:
    for _ in range(10):
        await browser.sign_in("a-owner", "wrong, all wrong")
    answer = await browser.sign_in("a-owner")
    assert answer.status_code == 429


async def test_a_session_ends_with_its_user(browser: Browser, accounts: Accounts) -> None:
    await browser.sign_in("a-viewer")
    assert (await browser.get("/account")).status_code == 200
    await accounts.change_user("a-viewer", is_off=True)
    assert (await browser.get("/account")).status_code == 303


async def test_a_form_of_another_site_changes_nothing(browser: Browser) -> None:
    await browser.sign_in("a-operator")
    browser.headers = {"sec-fetch-site": "cross-site"}
    assert (await browser.post("/theme")).status_code == 403
    browser.headers = {"origin": "http://evil.test"}
    assert (await browser.post("/theme")).status_code == 403
    browser.headers = {}
    assert (await browser.post("/theme")).status_code == 403


async def test_a_form_without_the_token_of_its_session_changes_nothing(browser: Browser) -> None:
    await browser.sign_in("a-operator")
    browser.token = "guessed"
    assert (await browser.post("/theme")).status_code == 403


async def test_a_link_lets_one_person_in_once(web: Dashboard, browser: Browser) -> None:
    sessions = (await web.site()).gate.sessions
    secret = await sessions.make_link(Caller(name="dev", role=Role.OWNER, via="link"))
    assert (await browser.get(f"/link/{secret}")).status_code == 200
    assert (await browser.post("/link", secret=secret)).status_code == 303
    assert (await browser.get("/account")).status_code == 200
    assert (await browser.post("/link", secret=secret)).status_code == 403


async def test_tokens_open_the_api_until_they_are_removed(
    app: Faena, accounts: Accounts, browser: Browser
) -> None:
    app.queue("mail")
    made, token = await accounts.add_token(Account(name="ci", role=Role.OPERATOR))
    headers = {"authorization": f"Bearer {token}"}
    answer = await browser.client.post("/api/queues/mail/pause", json={}, headers=headers)
    assert answer.status_code == 200
    await accounts.remove("token", made.id)
    answer = await browser.client.post("/api/queues/mail/resume", json={}, headers=headers)
    assert answer.status_code == 401


async def test_the_last_owner_stays(web: Dashboard, accounts: Accounts) -> None:
    with pytest.raises(InvalidTransition, match="last owner"):
        await accounts.remove("user", "a-owner")
    with pytest.raises(InvalidTransition, match="last owner"):
        await accounts.change_user("a-owner", role=Role.ADMIN)
    await accounts.add_user(Account(name="second", role=Role.OWNER), PASSWORD)
    await accounts.remove("user", "a-owner")


async def test_a_name_is_taken_once(web: Dashboard, accounts: Accounts) -> None:
    with pytest.raises(JobConflict, match="there is one already"):
        await accounts.add_user(Account(name="a-owner", role=Role.VIEWER), PASSWORD)
