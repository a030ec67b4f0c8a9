"""Mail servers, plain and encrypted, with certificates that are made here."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
import trustme
from apps.providers.mail import Client, Settings
from apps.sandbox.mail import MailServer

SENDER = "avisos@campo.example"


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trust(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.fixture
def certificate(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def settings_of(url: str, **more: object) -> Settings:
    port = urlsplit(url).port
    given = {"security": "none", "sender_name": "Campo Ñandú", **more}
    return Settings(host="127.0.0.1", port=port, sender=SENDER, **given)  # pyright: ignore[reportArgumentType]


@pytest.fixture
async def server() -> AsyncIterator[MailServer]:
    server = MailServer()
    async with server.serving() as server.url:
        yield server


@pytest.fixture
def client(server: MailServer) -> Client:
    return Client(settings_of(server.url))
