"""A stand-in with a key of its own, and a client of it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import httpx
import pytest
from apps.providers.maps import Client, Settings
from apps.sandbox.maps import Maps


@pytest.fixture
async def service() -> AsyncIterator[Maps]:
    key = f"AIza{secrets.token_hex(16)}"
    service = Maps(key)
    async with service.serving() as service.url:
        service.key = key
        yield service


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient() as http:
        yield http


@pytest.fixture
def settings(service: Maps) -> Settings:
    return Settings(key=service.key, base_url=service.url)


@pytest.fixture
def client(settings: Settings, http: httpx.AsyncClient) -> Client:
    return Client(settings, http)
