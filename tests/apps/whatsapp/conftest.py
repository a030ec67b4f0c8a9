"""A WhatsApp on loopback, a client of it, and a receiver of its webhooks."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from apps.providers.whatsapp import (
    Batch,
    Client,
    Settings,
    WebhookRefused,
    answer_challenge,
    read_webhook,
)
from apps.sandbox.stand_in import serving
from apps.sandbox.whatsapp import ApprovedTemplate, WhatsApp
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

ANA = "5491155551234"
TEMPLATES = (
    ApprovedTemplate(name="turno_confirmado", parameters=2),
    ApprovedTemplate(
        name="factura", parameters=1, header="document", buttons=("url", "quick_reply")
    ),
    ApprovedTemplate(name="aviso", header="text"),
    ApprovedTemplate(name="pausado", state="paused"),
    ApprovedTemplate(name="prohibido", state="disabled"),
)


class Clock:
    """Seconds since 1970 that only tests move."""

    def __init__(self) -> None:
        self.at = 1_794_830_400.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def wa(clock: Clock) -> AsyncIterator[WhatsApp]:
    stand_in = WhatsApp(templates=TEMPLATES, clock=clock)
    async with stand_in.serving() as stand_in.url:
        yield stand_in


@pytest.fixture
def settings(wa: WhatsApp) -> Settings:
    return Settings(
        access_token=wa.access_token,
        phone_number_id=wa.phone_number_id,
        app_secret=wa.app_secret,
        verify_token="our-own-word",
        base_url=f"{wa.url}/v23.0",
    )


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as http:
        yield http


@pytest.fixture
def client(settings: Settings, http: httpx.AsyncClient) -> Client:
    return Client(settings, http)


class Inbox:
    """The program's end: it takes what is genuine."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.taken: list[Batch] = []
        self.url = ""

    async def answer(self, request: Request) -> Response:
        try:
            if request.method == "GET":
                return PlainTextResponse(answer_challenge(self._settings, request.query_params))
            body = await request.body()
            self.taken.append(read_webhook(self._settings, headers=request.headers, body=body))
        except WebhookRefused:
            return Response(status_code=403)
        return Response()


@pytest.fixture
async def inbox(settings: Settings) -> AsyncIterator[Inbox]:
    inbox = Inbox(settings)
    routes = [Route("/wa", inbox.answer, methods=["GET", "POST"])]
    async with serving(Starlette(routes=routes)) as url:
        inbox.url = f"{url}/wa"
        yield inbox
