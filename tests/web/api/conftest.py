"""The API of an app in which something has happened, asked with tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from faena import Faena
from faena.web.access.access import Access
from faena.web.access.account import Account, Accounts
from faena.web.access.role import Role
from faena.web.application import Dashboard, dashboard
from tests._support.valkey import Server
from tests._support.working import obliterate
from tests.web.api.busy import Busy, populate

BASE = "http://faena.test"

Client = Callable[..., Awaitable[httpx.AsyncClient]]


@pytest.fixture
async def app(server: Server, namespace: str) -> AsyncIterator[Faena]:
    """An app on a broker of its own: what is known of upstreams and features stays there."""
    made = Faena("shop", server.url, namespace=namespace)
    yield made
    await obliterate(made)


@pytest.fixture
async def busy(app: Faena) -> Busy:
    """What there is to tell."""
    return await populate(app)


@pytest.fixture
async def served(app: Faena) -> AsyncIterator[Dashboard]:
    """A dashboard that a single caller may ask often."""
    made = dashboard(app, access=Access(), environment="test", api_rate="100000/min")
    yield made
    await made.close()


@pytest.fixture
async def client(served: Dashboard, accounts: Accounts) -> AsyncIterator[Client]:
    """Makes clients with a token of their own: `await client(Role.VIEWER, tenant="acme")`."""
    opened: list[httpx.AsyncClient] = []

    async def make(role: Role | None = None, **about: Any) -> httpx.AsyncClient:
        headers = {}
        if role is not None:
            name = f"{role.value}{len(opened)}"
            _, token = await accounts.add_token(Account(name=name, role=role, **about))
            headers = {"authorization": f"Bearer {token}"}
        transport = httpx.ASGITransport(served)
        made = httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers)
        opened.append(made)
        return made

    yield make
    for one in opened:
        await one.aclose()
