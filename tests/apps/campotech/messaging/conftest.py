"""CampoTech with a model, and with all ways to tell people something."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import pytest
from apps.campotech.system import System
from apps.sandbox.afip import Afip, Authority
from apps.sandbox.mail import MailServer
from apps.sandbox.push import Push
from apps.sandbox.sandbox import Sandbox
from apps.sandbox.sms import Twilio
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from faena.testing import Harness
from tests.apps.campotech.business import Business
from tests.apps.campotech.messaging.office import Office

PROJECT, ACCOUNT = "campo-tech-7", "sender@campo-tech-7.iam.example"
TWILIO, SENDER = f"AC{'0' * 32}", "+5491155550000"


@pytest.fixture(scope="session")
def device_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


class World(Sandbox):
    """All services."""

    def __init__(self, afip: Afip, key: rsa.RSAPrivateKey) -> None:
        super().__init__(afip=afip)
        self._key, self._token = key, secrets.token_hex(16)
        self.push = Push(PROJECT, ACCOUNT, key.public_key())
        self.twilio = Twilio(TWILIO, self._token, numbers=[SENDER])
        self.mail = MailServer()
        self.urls: dict[str, str] = {}

    def environment(self, url: str) -> dict[str, str]:
        pem = self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        account = {
            "project_id": PROJECT,
            "client_email": ACCOUNT,
            "private_key": pem.decode(),
            "private_key_id": "k1",
            "token_uri": f"{self.urls['push']}/token",
        }
        server = urlsplit(self.urls["mail"])
        return {
            **super().environment(url),
            # By an address of its own: the addresses of files are made from it.
            "WHATSAPP_BASE_URL": f"{self.urls['whatsapp']}/v23.0",
            "FCM_SERVICE_ACCOUNT": json.dumps(account),
            "FCM_BASE_URL": self.urls["push"],
            "TWILIO_ACCOUNT_SID": TWILIO,
            "TWILIO_AUTH_TOKEN": self._token,
            "TWILIO_FROM": SENDER,
            "TWILIO_BASE_URL": self.urls["twilio"],
            "SMTP_HOST": server.hostname or "",
            "SMTP_PORT": str(server.port),
            "SMTP_FROM": "avisos@campotech.example",
            "SMTP_SECURITY": "none",
        }


@pytest.fixture
async def sandbox(authority: Authority, device_key: rsa.RSAPrivateKey) -> AsyncIterator[World]:
    made = World(Afip(authority=authority), device_key)
    async with AsyncExitStack() as stack:
        for one in (made.push, made.twilio, made.mail, made.whatsapp):
            made.urls[one.name] = await stack.enter_async_context(one.serving())
        made.url = await stack.enter_async_context(made.serving())
        yield made


@pytest.fixture
async def office(system: System, sandbox: World, business: Business, harnessed: Harness) -> Office:
    """An organisation with an owner, and a customer who writes."""
    made = Office(system=system, world=sandbox, business=business, harness=harnessed)
    await made.open()
    await system.app.features.follow()
    return made


@pytest.fixture
async def other(system: System, sandbox: World) -> Business:
    """Another organisation, with a number of its own."""
    return await Business.make(system, sandbox, number="106540352249999")
