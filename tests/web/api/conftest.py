"""The API of an app in which something has happened, asked with tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from faena import Faena, Retry
from faena.queue import Queue
from faena.web.access.access import Access
from faena.web.access.account import Account, Accounts
from faena.web.access.role import Role
from faena.web.application import Dashboard, dashboard
from tests._support.valkey import Server
from tests._support.working import obliterate

BASE = "http://faena.test"

Client = Callable[..., Awaitable[httpx.AsyncClient]]


class Busy:
    """What is there: ids by what they are."""

    def __init__(self, mail: Queue, parts: dict[str, str]) -> None:
        self.mail = mail
        self.parts = parts
        """Part of a path → a value that is there."""


@pytest.fixture
async def app(server: Server, namespace: str) -> AsyncIterator[Faena]:
    """An app on a broker of its own: what is known of upstreams and features stays there."""
    made = Faena("shop", server.url, namespace=namespace)
    yield made
    await obliterate(made)


@pytest.fixture
async def busy(app: Faena) -> Busy:
    """A queue with tenants, jobs in several states, dead ones, a redrive, a flow and more."""
    mail = app.queue("mail", fair=True, retry=Retry.fixed("1s", attempts=1))

    @mail.task
    async def send(payload: dict[str, Any]) -> dict[str, Any]:
        if payload.get("fails"):
            raise ValueError("the printer is on fire")
        return {"sent": True, "password": "hunter2"}

    app.schedule("nightly", send, {"to": "all", "token": "secret"}, every="6h")
    app.upstream("afip")
    app.feature("invoicing")
    await app.schedules.declare()
    done = await send.enqueue({"to": "ana", "password": "hunter2"}, tenant="acme")
    dead = await send.enqueue({"fails": True}, tenant="bolt", id="dead-1")
    flow = await app.chain(send.draft({"to": "a"}), send.draft({"to": "b"})).start()
    async with app.group(on_complete=send.draft({"to": "z"})) as group:
        await group.enqueue_many(send, [{"to": "g"}])
    await app.run_worker(until_empty=True)
    redrive = await app.dead_letters.start_redrive("mail", error="Nothing")
    await send.enqueue({"to": "later"}, tenant="acme", delay="1h")
    return Busy(
        mail,
        {
            "queue": "mail",
            "job": done.id,
            "dead": dead.id,
            "tenant": "acme",
            "flow": flow.id.partition("/")[2],
            "group": group.id.partition("/")[2],
            "redrive": redrive,
            "schedule": "nightly",
            "upstream": "afip",
            "feature": "invoicing",
        },
    )


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
