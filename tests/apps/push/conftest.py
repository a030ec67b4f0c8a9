"""A project with a service account whose key is made here, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from apps.providers.push import Client, Settings
from apps.sandbox.push import Push
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

PROJECT, EMAIL = "campo-tech-7", "sender@campo-tech-7.iam.example"


class Clock:
    """The time by which the client judges its tokens."""

    def __init__(self, at: float) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


@pytest.fixture(scope="session")
def private_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def pem(key: rsa.RSAPrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


@pytest.fixture
async def service(private_key: rsa.RSAPrivateKey) -> AsyncIterator[Push]:
    service = Push(PROJECT, EMAIL, private_key.public_key())
    async with service.serving() as service.url:
        yield service


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient() as http:
        yield http


@pytest.fixture
def settings(service: Push, private_key: rsa.RSAPrivateKey) -> Settings:
    return Settings(
        project_id=PROJECT,
        client_email=EMAIL,
        private_key=pem(private_key),
        private_key_id="k1",
        token_url=f"{service.url}/token",
        base_url=service.url,
    )


@pytest.fixture
def client(settings: Settings, http: httpx.AsyncClient) -> Client:
    return Client(settings, http)
