"""One authority and one certificate for all tests of a process: making keys takes its time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from apps.providers.afip import (
    Client,
    Credentials,
    DocumentKind,
    Receiver,
    Settings,
    VatCondition,
    VatLine,
    VatRate,
    Voucher,
    VoucherKind,
)
from apps.sandbox.afip import WSAA_PATH, WSFE_PATH, Afip, Authority, Terms

from tests.apps.afip.speech import CUIT, NOON, Clock, Speech


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority(NOON)


@pytest.fixture(scope="session")
def credentials(authority: Authority) -> Credentials:
    """Of the business `CUIT`, which every stand-in of these tests has registered."""
    key, certificate = Afip(authority=authority, now=Clock()).issue_certificate(CUIT)
    return Credentials(certificate_pem=certificate, key_pem=key)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as http:
        yield http


@pytest.fixture
async def afip(authority: Authority, clock: Clock) -> AsyncIterator[Afip]:
    afip = Afip(authority=authority, now=clock)
    afip.registry.register(int(CUIT), (1, 2)).services.add("wsfe")
    async with afip.serving() as afip.url:
        yield afip


@pytest.fixture
def speech(afip: Afip, http: httpx.AsyncClient, credentials: Credentials, clock: Clock) -> Speech:
    return Speech(afip.url, http, credentials, clock)


@pytest.fixture
def settings(afip: Afip, credentials: Credentials) -> Settings:
    return Settings(
        wsaa_url=afip.url + WSAA_PATH,
        wsfe_url=afip.url + WSFE_PATH,
        certificate_pem=credentials.certificate_pem,
        key_pem=credentials.key_pem,
    )


@pytest.fixture
def client(settings: Settings, http: httpx.AsyncClient, clock: Clock) -> Client:
    return Client(settings, http, now=clock)


@pytest.fixture
def voucher() -> Voucher:
    """The first invoice of class B: 100 and VAT, to somebody unknown."""
    return Voucher(
        kind=VoucherKind.INVOICE_B,
        point_of_sale=1,
        number=1,
        date=NOON.date(),
        receiver=Receiver(
            document_kind=DocumentKind.UNIDENTIFIED,
            document_number=0,
            vat_condition=VatCondition.FINAL_CONSUMER,
        ),
        net_cents=10_000,
        vat=(VatLine.of(VatRate.TWENTY_ONE, 10_000),),
    )


@pytest.fixture
def build(authority: Authority, clock: Clock) -> Callable[..., Afip]:
    """Makes a stand-in on other terms, not yet served."""

    def make(**terms: Any) -> Afip:
        afip = Afip(authority=authority, now=clock, terms=Terms(**terms))
        afip.registry.register(int(CUIT), (1, 2)).services.add("wsfe")
        return afip

    return make
