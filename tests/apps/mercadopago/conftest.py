"""A MercadoPago on loopback, a client of it, and a receiver of its notifications."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from apps.providers.mercadopago import Checkout, Client, Item, Preference, Settings
from apps.sandbox.mercadopago import MercadoPago, Payment


class Clock:
    """A wall clock that only tests move."""

    def __init__(self) -> None:
        self.at = datetime(2026, 11, 16, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at

    def move(self, **by: float) -> None:
        self.at += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def mp(clock: Clock) -> AsyncIterator[MercadoPago]:
    stand_in = MercadoPago(now=clock)
    async with stand_in.serving() as stand_in.url:
        yield stand_in


@pytest.fixture
def settings(mp: MercadoPago) -> Settings:
    return Settings(
        access_token=mp.access_token,
        webhook_secret=mp.webhook_secret,
        base_url=mp.url,
        alias="campo.tech.mp",
        cbu="0000003100012345678901",
    )


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as http:
        yield http


@pytest.fixture
def client(settings: Settings, http: httpx.AsyncClient) -> Client:
    return Client(settings, http)


def preference(reference: str = "invoice-1", *, centavos: int = 10_050) -> Preference:
    items = [Item(title="Visita técnica", unit_price_centavos=centavos)]
    return Preference(items=items, external_reference=reference)


@pytest.fixture
async def checkout(client: Client) -> Checkout:
    """A link at which 100.50 are to be paid."""
    return await client.create_preference(preference())


@pytest.fixture
async def paid(mp: MercadoPago, checkout: Checkout) -> Payment:
    """A payment of 100.50."""
    return mp.pay(checkout.id)
