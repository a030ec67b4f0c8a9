"""All stand-ins behind one address, and a mail server beside it.

A path below `/SERVICE` is one of the service itself; those below `/sandbox` are of
`apps.sandbox.control`, for programs in other processes.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final
from urllib.parse import urlsplit

import httpx
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount

from apps.sandbox.afip import WSAA_PATH, WSFE_PATH, Afip, Credential
from apps.sandbox.control import control_routes
from apps.sandbox.control.afip import afip_acts
from apps.sandbox.control.mercadopago import mercadopago_acts
from apps.sandbox.control.others import (
    mail_acts,
    maps_acts,
    openai_acts,
    push_acts,
    twilio_acts,
)
from apps.sandbox.control.telling import Telling
from apps.sandbox.control.whatsapp import whatsapp_acts
from apps.sandbox.mail import MailServer
from apps.sandbox.maps import Maps
from apps.sandbox.mercadopago import MercadoPago
from apps.sandbox.openai import OpenAI
from apps.sandbox.push import Push
from apps.sandbox.sms import Twilio
from apps.sandbox.stand_in import StandIn, serving
from apps.sandbox.webhook import PAUSES, Courier, new_client
from apps.sandbox.whatsapp import ApprovedTemplate, WhatsApp

TEMPLATES: Final = (
    ApprovedTemplate(name="invoice_ready", parameters=3),
    ApprovedTemplate(name="invoice_overdue", parameters=3),
    ApprovedTemplate(name="job_scheduled", parameters=2),
    ApprovedTemplate(name="job_reminder", parameters=2),
    ApprovedTemplate(name="job_en_camino", parameters=1),
    ApprovedTemplate(name="job_completed", parameters=1),
    ApprovedTemplate(name="job_cancelled", parameters=1),
    ApprovedTemplate(name="rating_request", parameters=1),
)
"""Those of CampoTech."""

PLATFORM: Final = "30500010912"
"""The CUIT of CampoTech itself, to which businesses delegate."""
PROJECT, ACCOUNT = "campo-tech-7", "sender@campo-tech-7.iam.example"
TWILIO_SENDER: Final = "+5491155550000"
_YEAR: Final = timedelta(days=365)


class Sandbox:
    """The outside world on loopback."""

    def __init__(
        self,
        *,
        afip: Afip | None = None,
        pauses: Sequence[float] = PAUSES,
        most_entries: int | None = None,
    ) -> None:
        """`pauses` are those between attempts of webhooks, `most_entries` what each ledger keeps
        at least; None: all."""
        self._key, self._account_sid = made_key(), f"AC{secrets.token_hex(16)}"
        self._openai_key, self._maps_key = f"sk-{secrets.token_hex(16)}", secrets.token_hex(16)
        self._twilio_token, self.verify_token = secrets.token_hex(16), secrets.token_hex(16)
        self.afip = afip or Afip()
        self.mercadopago = MercadoPago()
        self.whatsapp = WhatsApp(templates=TEMPLATES)
        self.openai = OpenAI(self._openai_key)
        self.twilio = Twilio(self._account_sid, self._twilio_token, numbers=[TWILIO_SENDER])
        self.push = Push(PROJECT, ACCOUNT, self._key.public_key())
        self.maps = Maps(self._maps_key)
        self.mail = MailServer()
        behind_one: tuple[StandIn, ...] = (
            *(self.afip, self.mercadopago, self.whatsapp, self.openai),
            *(self.twilio, self.push, self.maps),
        )
        self._behind_one = {one.name: one for one in behind_one}
        self.services = {**self._behind_one, self.mail.name: self.mail}
        for one in self.services.values():
            one.ledger.most = most_entries
        self._pauses = pauses
        self._mail_url = ""

    @asynccontextmanager
    async def serving(self, port: int = 0, smtp_port: int = 0) -> AsyncGenerator[str]:
        """Serve all of it on loopback; its address."""
        courier = Courier(pauses=self._pauses)
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(new_client())
            self._send_through(http)
            stack.callback(self._send_through, None)
            stack.push_async_callback(courier.close)
            self._mail_url = await stack.enter_async_context(self.mail.serving(smtp_port))
            urls: list[str] = []
            routes = self._routes(Telling(courier), urls)
            urls.append(await stack.enter_async_context(serving(Starlette(routes=routes), port)))
            yield urls[0]

    def _send_through(self, http: httpx.AsyncClient | None) -> None:
        for one in (self.mercadopago, self.whatsapp, self.twilio):
            one.webhooks.http = http

    def _routes(self, telling: Telling, urls: Sequence[str]) -> Sequence[BaseRoute]:
        acts = {
            "afip": afip_acts(self.afip, PLATFORM),
            "mercadopago": mercadopago_acts(self.mercadopago, telling),
            "whatsapp": whatsapp_acts(self.whatsapp, telling),
            "openai": openai_acts(self.openai),
            "twilio": twilio_acts(self.twilio, telling.courier),
            "push": push_acts(self.push),
            "maps": maps_acts(self.maps),
            "mail": mail_acts(self.mail),
        }
        control = control_routes(self.services, acts, telling, lambda: self.environment(urls[0]))
        return [*(Mount(f"/{name}", one.http) for name, one in self._behind_one.items()), *control]

    def environment(self, url: str) -> dict[str, str]:
        """What a program must be told to use these services, which are served at `url`."""
        server, platform = urlsplit(self._mail_url), self._platform()
        return {
            "AFIP_ENVIRONMENT": "testing",
            "AFIP_WSAA_URL": f"{url}/afip{WSAA_PATH}",
            "AFIP_WSFE_URL": f"{url}/afip{WSFE_PATH}",
            "AFIP_CERTIFICATE": platform.certificate_pem.decode(),
            "AFIP_KEY": platform.key_pem.decode(),
            "MP_ACCESS_TOKEN": self.mercadopago.access_token,
            "MP_WEBHOOK_SECRET": self.mercadopago.webhook_secret,
            "MP_BASE_URL": f"{url}/mercadopago",
            "MP_ALIAS": "campo.tech.mp",
            "WHATSAPP_ACCESS_TOKEN": self.whatsapp.access_token,
            "WHATSAPP_PHONE_NUMBER_ID": self.whatsapp.phone_number_id,
            "WHATSAPP_APP_SECRET": self.whatsapp.app_secret,
            "WHATSAPP_VERIFY_TOKEN": self.verify_token,
            "WHATSAPP_BASE_URL": f"{url}/whatsapp/v23.0",
            "OPENAI_API_KEY": self._openai_key,
            "OPENAI_BASE_URL": f"{url}/openai/v1",
            "TWILIO_ACCOUNT_SID": self._account_sid,
            "TWILIO_AUTH_TOKEN": self._twilio_token,
            "TWILIO_FROM": TWILIO_SENDER,
            "TWILIO_BASE_URL": f"{url}/twilio",
            "FCM_SERVICE_ACCOUNT": json.dumps(self._service_account(url)),
            "FCM_BASE_URL": f"{url}/push",
            "GOOGLE_MAPS_KEY": self._maps_key,
            "GOOGLE_MAPS_BASE_URL": f"{url}/maps",
            "SMTP_HOST": server.hostname or "",
            "SMTP_PORT": str(server.port),
            "SMTP_FROM": "avisos@campotech.example",
            "SMTP_SECURITY": "none",
        }

    def _platform(self) -> Credential:
        """With which CampoTech asks for the CAEs of those who have delegated to it."""
        self.afip.registry.register(int(PLATFORM)).services.add("wsfe")
        now = datetime.now(UTC)
        return self.afip.certify(self._key, PLATFORM, (now - _YEAR, now + _YEAR))

    def _service_account(self, url: str) -> Mapping[str, str]:
        return {
            "project_id": PROJECT,
            "client_email": ACCOUNT,
            "private_key": _pem(self._key),
            "private_key_id": "k1",
            "token_uri": f"{url}/push/token",
        }


@cache
def made_key() -> rsa.RSAPrivateKey:
    """One for all sandboxes of a process: making one takes its time."""
    return rsa.generate_private_key(65537, 2048)


def _pem(key: rsa.RSAPrivateKey) -> str:
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem.decode()
