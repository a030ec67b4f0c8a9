"""A stand-in with a key of its own, and a client of it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import httpx
import pytest
from apps.providers.openai import Client, Settings
from apps.sandbox.openai import OpenAI


@pytest.fixture
def key() -> str:
    return f"sk-{secrets.token_hex(16)}"


@pytest.fixture
async def service(key: str) -> AsyncIterator[OpenAI]:
    service = OpenAI(key)
    async with service.serving() as service.url:
        yield service


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient() as http:
        yield http


@pytest.fixture
def settings(service: OpenAI, key: str) -> Settings:
    return Settings(key=key, base_url=f"{service.url}/v1")


@pytest.fixture
def client(settings: Settings, http: httpx.AsyncClient) -> Client:
    return Client(settings, http)
