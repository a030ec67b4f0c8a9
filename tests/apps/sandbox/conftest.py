"""A sandbox behind its address, as a driver in another process sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from apps.sandbox.sandbox import Sandbox
from apps.sandbox.stand_in import serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class Driver:
    """Speaks HTTP only."""

    def __init__(self, url: str, http: httpx.AsyncClient) -> None:
        self.url, self.http = url, http

    async def environment(self) -> dict[str, str]:
        return await self.get("environment")

    async def get(self, path: str) -> Any:
        response = await self.http.get(f"{self.url}/sandbox/{path}")
        assert response.status_code == 200, response.text
        return response.json()

    async def act(self, path: str, **given: Any) -> Any:
        response = await self.http.post(f"{self.url}/sandbox/{path}", json=given)
        assert response.status_code == 200, response.text
        return response.json()

    async def refused(self, path: str, **given: Any) -> tuple[int, str]:
        response = await self.http.post(f"{self.url}/sandbox/{path}", json=given)
        return response.status_code, response.json()["error"]

    async def tell(self, **urls: str) -> None:
        response = await self.http.put(f"{self.url}/sandbox/webhooks", json=urls)
        assert response.status_code == 204, response.text


class Inbox:
    """A receiver of webhooks."""

    def __init__(self) -> None:
        self.url = ""
        self.statuses: list[int] = []
        """What is answered first; then 200."""
        self.got: list[tuple[Request, bytes]] = []

    async def take(self, request: Request) -> Response:
        self.got.append((request, await request.body()))
        return Response(status_code=self.statuses.pop(0) if self.statuses else 200)


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as http:
        yield http


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """Whose webhooks are told again at once, three times."""
    made = Sandbox(pauses=(0.0, 0.0, 0.0))
    async with made.serving() as made.url:
        yield made


@pytest.fixture
def driver(sandbox: Sandbox, http: httpx.AsyncClient) -> Driver:
    return Driver(sandbox.url, http)


@pytest.fixture
async def inbox() -> AsyncIterator[Inbox]:
    made = Inbox()
    routes = [Route("/{path:path}", made.take, methods=["POST"])]
    async with serving(Starlette(routes=routes)) as url:
        made.url = f"{url}/hooks"
        yield made
