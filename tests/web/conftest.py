"""A dashboard of a real app on a real broker, asked through HTTP."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx
import pytest

from faena import Faena
from faena.web.access.access import Access
from faena.web.access.account import Account, Accounts
from faena.web.access.role import Role
from faena.web.application import Dashboard, dashboard
from tests._support.valkey import Server

PASSWORD = "a long word 7"
BASE = "http://faena.test"


@dataclass
class Browser:
    """Somebody with a browser: cookies, and the token of the last page."""

    client: httpx.AsyncClient
    token: str = ""
    headers: dict[str, str] = field(default_factory=lambda: {"sec-fetch-site": "same-origin"})

    async def get(self, path: str) -> httpx.Response:
        answer = await self.client.get(path)
        found = re.search(r'name="faena-token" content="([^"]+)"', answer.text)
        self.token = found[1] if found else self.token
        return answer

    async def post(self, path: str, **fields: str) -> httpx.Response:
        return await self.client.post(
            path, data={"token": self.token, **fields}, headers=self.headers
        )

    async def sign_in(self, name: str, password: str = PASSWORD) -> httpx.Response:
        answer = await self.post("/sign-in", user=name, password=password)
        await self.get("/account")
        return answer


@pytest.fixture
async def accounts(app: Faena, valkey: Server, namespace: str) -> AsyncIterator[Accounts]:
    engine = (await app.runtime()).engine
    yield Accounts(engine)
    for name in ("accounts", "trail", "trail_open", "views:all"):
        await engine.command("DEL", "@access", name)
    for role in Role:
        await engine.command("DEL", "@access", f"views:user:a-{role.value}")
    await engine.command("DEL", "@bulk", "bulks")
    with valkey.client() as client:  # upstreams and features outlive the programs that declare them
        for key in client.scan_iter(f"{namespace}:{{@resilience}}:*"):
            client.delete(key)


@pytest.fixture
async def web(app: Faena, accounts: Accounts) -> AsyncIterator[Dashboard]:
    for role in Role:
        await accounts.add_user(Account(name=f"a-{role.value}", role=role), PASSWORD)
    served = dashboard(app, access=Access(link=True), environment="test")
    yield served
    await served.close()


@pytest.fixture
async def browser(web: Dashboard) -> AsyncIterator[Browser]:
    transport = httpx.ASGITransport(web)
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        yield Browser(client)
