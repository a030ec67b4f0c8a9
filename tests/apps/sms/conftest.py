"""An account of its own at the stand-in, and a client of it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import httpx
import pytest
from apps.providers.sms import Client, Settings
from apps.sandbox.sms import Twilio

SENDER = "+15005550006"
SERVICE = "MG" + "5" * 32


@pytest.fixture
async def service() -> AsyncIterator[Twilio]:
    account, token = f"AC{secrets.token_hex(16)}", secrets.token_hex(16)
    service = Twilio(account, token, numbers=[SENDER], services=[SERVICE])
    async with service.serving() as service.url:
        service.account, service.token = account, token
        yield service


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient() as http:
        yield http


@pytest.fixture
def settings(service: Twilio) -> Settings:
    return Settings(
        account_sid=service.account,
        auth_token=service.token,
        sender=SENDER,
        base_url=service.url,
    )


@pytest.fixture
def client(settings: Settings, http: httpx.AsyncClient) -> Client:
    return Client(settings, http)
