"""People sign in with a provider of identities; one that lies, or a browser, lets nobody in."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import jwt
import pytest

from faena import Faena
from faena.engine.calls.access import AccessCalls
from faena.errors import ConfigError
from faena.web import Access, Oidc, dashboard
from faena.web.access.account import Accounts
from faena.web.access.provider import Provider
from faena.web.application import Dashboard
from tests.web.conftest import BASE
from tests.web.identities import CLIENT, SECRET, Identities, identities

_ROLES = {"sre": "operator", "lead": "owner", "+5491155550100": "owner"}


@pytest.fixture
async def elsewhere() -> AsyncIterator[Identities]:
    async with identities() as found:
        yield found


@pytest.fixture
async def door(
    app: Faena, accounts: Accounts, elsewhere: Identities
) -> AsyncIterator[Callable[..., Dashboard]]:
    made: list[Dashboard] = []

    def make(**more: Any) -> Dashboard:
        given = {"issuer": elsewhere.issuer, "client_id": CLIENT, "client_secret": SECRET}
        oidc = Oidc(**{**given, "roles": _ROLES, "label": "Shop ID", **more})
        access = Access(users=False, tokens=False, oidc=oidc)
        made.append(dashboard(app, access=access, environment="test"))
        return made[-1]

    yield make
    for one in made:
        await one.close()


class Person:
    """Somebody with a browser."""

    def __init__(self, served: Dashboard, elsewhere: Identities) -> None:
        transport = httpx.ASGITransport(served)
        self.client = httpx.AsyncClient(transport=transport, base_url=BASE)
        self.elsewhere = elsewhere

    async def begin(self, back: str = "/") -> dict[str, str]:
        answer = await self.client.get("/oidc", params={"back": back})
        assert answer.status_code == 303, answer.text
        return self.elsewhere.authorize(answer.headers["location"])

    async def come_back(self, **given: str) -> httpx.Response:
        return await self.client.get("/oidc/back", params=given)

    async def who(self) -> str | None:
        page = await self.client.get("/account")
        return page.text if page.status_code == 200 else None


async def test_somebody_signs_in_and_goes_on_where_they_wanted(
    door: Callable[..., Dashboard], elsewhere: Identities
) -> None:
    person = Person(door(), elsewhere)
    page = await person.client.get("/sign-in?back=/queues")
    assert "Sign in with Shop ID" in page.text
    assert "password" not in page.text
    answer = await person.come_back(**await person.begin("/queues"))
    assert (answer.status_code, answer.headers["location"]) == (303, "/queues")
    told = await person.who()
    assert told is not None
    assert "ana@shop.test" in told
    assert "operator" in told
    assert (await person.client.get("/audit")).status_code == 403


@pytest.mark.parametrize(
    ("claims", "role"),
    [
        ({"groups": ["sre", "lead"]}, "owner"),
        ({"groups": "sre"}, "operator"),
        ({"groups": ["all"]}, None),
        ({"groups": None}, None),
        ({"groups": [{"sre": 1}]}, None),
        ({"email": ""}, None),
        ({"email": 7}, None),
        ({"email_verified": False}, None),
    ],
)
async def test_the_claim_says_the_role_and_who_has_none_stays_outside(
    door: Callable[..., Dashboard], elsewhere: Identities, claims: dict[str, Any], role: str | None
) -> None:
    elsewhere.claims |= claims
    person = Person(door(), elsewhere)
    answer = await person.come_back(**await person.begin())
    told = await person.who()
    if role is None:
        assert (answer.status_code, told) == (403, None)
    else:
        assert told is not None
        assert role in told


async def test_authorised_numbers_and_tenants_come_from_claims_of_their_own(
    door: Callable[..., Dashboard], elsewhere: Identities
) -> None:
    elsewhere.claims = {"phone_number": "+5491155550100", "shop": {"tenant": "acme"}}
    served = door(user_claim="phone_number", role_claim="phone_number", tenant_claim="shop.tenant")
    person = Person(served, elsewhere)
    await person.come_back(**await person.begin())
    told = await person.who()
    assert told is not None
    assert "acme" in told
    assert (await person.client.get("/queues")).status_code == 403


def _unsigned(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, None, algorithm="none")


def _by_secret(claims: dict[str, Any]) -> str:
    """Signed with what a stranger may know instead of with a key."""
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        return jwt.encode(claims, SECRET, algorithm="HS256", headers={"kid": "key-1"})


def _changed(**claims: Any) -> Callable[[Identities], None]:
    def lie(elsewhere: Identities) -> None:
        elsewhere.lie = lambda told: told.update(claims)

    return lie


def _without(name: str) -> Callable[[Identities], None]:
    def lie(elsewhere: Identities) -> None:
        elsewhere.lie = lambda told: told.__delitem__(name)

    return lie


def _signing(sign: Callable[[dict[str, Any]], str]) -> Callable[[Identities], None]:
    def lie(elsewhere: Identities) -> None:
        elsewhere.sign = sign

    return lie


def _strangers_key(elsewhere: Identities) -> None:
    other = Identities()
    elsewhere.sign = other.signed


def _tampered(elsewhere: Identities) -> None:
    def sign(claims: dict[str, Any]) -> str:
        head, body, end = elsewhere.signed(claims).split(".")
        return f"{head}.{body}.{'A' if end[0] != 'A' else 'B'}{end[1:]}"

    elsewhere.sign = sign


def _unknown_key(elsewhere: Identities) -> None:
    elsewhere.sign = lambda claims: elsewhere.signed(claims, headers={"kid": "invented"})


LIES: dict[str, Callable[[Identities], None]] = {
    "another nonce": _changed(nonce="guessed"),
    "no nonce": _without("nonce"),
    "over": _changed(exp=int(time.time()) - 3600),
    "never over": _without("exp"),
    "of another time": _changed(iat=int(time.time()) + 3600),
    "another audience": _changed(aud="bank"),
    "many audiences": _changed(aud=[CLIENT, "bank"]),
    "for another program": _changed(azp="bank"),
    "another issuer": _changed(iss="https://evil.test"),
    "no subject": _without("sub"),
    "not signed": _signing(_unsigned),
    "signed with a secret": _signing(_by_secret),
    "signed by a stranger": _strangers_key,
    "a broken signature": _tampered,
    "an invented key": _unknown_key,
    "no token": _signing(lambda _: ""),
    "nonsense": _signing(lambda _: "a.b.c"),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
async def test_a_token_that_lies_lets_nobody_in(
    door: Callable[..., Dashboard], elsewhere: Identities, lie: Callable[[Identities], None]
) -> None:
    lie(elsewhere)
    person = Person(door(), elsewhere)
    answer = await person.come_back(**await person.begin())
    assert answer.status_code == 403
    assert await person.who() is None


async def test_what_a_browser_invents_lets_nobody_in(
    door: Callable[..., Dashboard], elsewhere: Identities
) -> None:
    served = door()
    person, thief = Person(served, elsewhere), Person(served, elsewhere)
    given = await person.begin()
    assert (await thief.come_back(**given)).status_code == 403
    assert (await person.come_back(code=given["code"], state="guessed")).status_code == 403
    assert (await person.come_back(code=given["code"])).status_code == 403
    assert await thief.who() is None
    assert (await person.come_back(**given)).status_code == 303
    person.client.cookies.delete("faena-session")
    again = await person.come_back(**given)
    assert (again.status_code, await person.who()) == (403, None)


async def test_a_code_is_good_once_also_with_a_new_sign_in(
    door: Callable[..., Dashboard], elsewhere: Identities
) -> None:
    person = Person(door(), elsewhere)
    first = await person.begin()
    await person.come_back(**first)
    person.client.cookies.delete("faena-session")
    second = await person.begin()
    answer = await person.come_back(code=first["code"], state=second["state"])
    assert (answer.status_code, await person.who()) == (403, None)


async def test_a_code_of_another_person_is_of_no_use(
    door: Callable[..., Dashboard], elsewhere: Identities
) -> None:
    served = door()
    victim, thief = Person(served, elsewhere), Person(served, elsewhere)
    stolen, own = await victim.begin(), await thief.begin()
    answer = await thief.come_back(code=stolen["code"], state=own["state"])
    assert (answer.status_code, await thief.who()) == (403, None)


async def test_who_is_refused_by_the_provider_is_told_so(
    door: Callable[..., Dashboard], elsewhere: Identities
) -> None:
    person = Person(door(), elsewhere)
    state = (await person.begin())["state"]
    answer = await person.come_back(error="access_denied<script>", state=state)
    assert answer.status_code == 403
    assert "<script>" not in answer.text.replace("<script type", "")
    state = (await person.begin())["state"]
    answer = await person.come_back(code="x", state=state, iss="https://evil.test")
    assert answer.status_code == 403


async def test_a_way_back_to_another_site_is_not_taken(
    door: Callable[..., Dashboard], elsewhere: Identities
) -> None:
    person = Person(door(), elsewhere)
    answer = await person.come_back(**await person.begin("//evil.test"))
    assert answer.headers["location"] == "/"


@pytest.mark.parametrize(
    "says",
    [
        {"issuer": "https://evil.test"},
        {"token_endpoint": "http://evil.test/token"},
        {"jwks_uri": 7},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
)
async def test_a_provider_that_is_another_one_gets_nobody(
    door: Callable[..., Dashboard], elsewhere: Identities, says: dict[str, Any]
) -> None:
    elsewhere.says = says
    person = Person(door(), elsewhere)
    assert (await person.client.get("/oidc")).status_code == 403


async def test_a_provider_that_is_down_is_waited_for(
    door: Callable[..., Dashboard], elsewhere: Identities
) -> None:
    elsewhere.is_down = True
    person = Person(door(), elsewhere)
    answer = await person.client.get("/oidc")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    elsewhere.is_down = False
    assert (await person.come_back(**await person.begin())).status_code == 303


async def test_new_keys_of_the_provider_are_read_but_not_for_every_invented_one(
    app: Faena, door: Callable[..., Dashboard], elsewhere: Identities
) -> None:
    served, now = door(), 1000.0
    gate = (await served.site()).gate
    assert gate.provider is not None
    calls = AccessCalls((await app.runtime()).engine)
    gate.provider = Provider(gate.provider.oidc, calls, lambda: now)
    person = Person(served, elsewhere)
    assert (await person.come_back(**await person.begin())).status_code == 303
    assert elsewhere.asked_for_keys == 1
    elsewhere.renew()
    now += 60
    person = Person(served, elsewhere)
    assert (await person.come_back(**await person.begin())).status_code == 303
    assert elsewhere.asked_for_keys == 2
    _unknown_key(elsewhere)
    for _ in range(3):
        person = Person(served, elsewhere)
        assert (await person.come_back(**await person.begin())).status_code == 403
    assert elsewhere.asked_for_keys == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"issuer": "http://id.example.com"}, "https"),
        ({"issuer": "id.example.com"}, "address"),
        ({"issuer": "https://u:p@id.example.com"}, "address"),
        ({"roles": {}}, "roles"),
        ({"roles": {"a": "king"}}, "role"),
        ({"algorithms": ("none",)}, "algorithms"),
        ({"algorithms": ("HS256",)}, "algorithms"),
        ({"scopes": ("email",)}, "openid"),
        ({"client_id": ""}, "client_id"),
    ],
)
def test_a_declaration_that_lets_anybody_in_is_refused(given: dict[str, Any], words: str) -> None:
    told = {"issuer": "https://id.example.com", "client_id": "faena", "roles": {"a": "viewer"}}
    with pytest.raises(ConfigError, match=words):
        Oidc(**{**told, **given})


async def test_without_a_provider_there_is_no_way_to_one(web: Dashboard) -> None:
    transport = httpx.ASGITransport(web)
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        assert (await client.get("/oidc")).status_code == 404
        assert (await client.get("/oidc/back?code=x&state=y")).status_code == 404
