"""Schemathesis asks every route of the description, with sense and without: nothing breaks, the
answers are as described, and without a token nothing is changed or told.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import given
from schemathesis import Case, GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from faena import Faena
from faena.web import Access, dashboard
from faena.web.access.account import Account, Accounts
from faena.web.access.role import Role
from faena.web.openapi.document import document
from faena.web.operation.declared import OPERATIONS
from faena.web.reading.declared import READINGS
from tests._support.search import searching
from tests._support.valkey import Server
from tests.web.api.busy import populate
from tests.web.identities import serving_http

_CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
_ENDLESS = {"events"}
"""A stream ends with its reader: test_answers.py reads it."""
ROUTES = {f"{one.method} {one.path}": one.name for one in (*READINGS, *OPERATIONS)}


@dataclass
class Served:
    """The API of a busy app, on a real server."""

    address: str
    token: str
    parts: dict[str, str]


@contextmanager
def _serving(url: str) -> Iterator[Served]:
    """In a thread with a loop of its own: requests are sent as programs do."""
    found: list[Served] = []
    is_ready, is_over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with Faena("shop", url, namespace="fuzzed") as app:
            busy = await populate(app)
            accounts = Accounts((await app.runtime()).engine)
            owner = Account(name="owner", role=Role.OWNER, sees_payloads=True)
            _, token = await accounts.add_token(owner)
            web = dashboard(app, access=Access(), api_rate="1000000/s")
            async with serving_http(web) as address:
                found.append(Served(f"{address}/api", token, busy.parts))
                is_ready.set()
                await asyncio.to_thread(is_over.wait)
            await web.close()

    def run() -> None:
        try:
            asyncio.run(serve())
        finally:
            is_ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        is_ready.wait()
        yield found[0]
    finally:
        is_over.set()
        thread.join()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Server("appendonly no", unix=True) as server, _serving(server.url) as found:
        yield found


@cache
def _described() -> dict[str, Any]:
    schema = schemathesis.openapi.from_dict(document("/api", READINGS, OPERATIONS))
    return {one.label: one for one in (found.ok() for found in schema.get_all_operations())}


def test_the_description_has_every_route() -> None:
    assert set(_described()) == set(ROUTES)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("label", sorted(one for one in ROUTES if ROUTES[one] not in _ENDLESS))
def test_whatever_is_sent_is_answered_as_described(
    served: Served, label: str, mode: GenerationMode
) -> None:
    operation = _described()[label]
    known = {one.name: served.parts.get(one.name, "none") for one in operation.path_parameters}
    session = requests.Session()
    mine = {"authorization": f"Bearer {served.token}"}

    def ask(case: Case) -> None:
        told = case.call(served.address, session, headers=mine)
        case.validate_response(told, checks=_CHECKS)
        case.headers.pop("Authorization", None)
        case.cookies = {}
        session.cookies.clear()
        assert case.call(served.address, session, headers={"authorization": ""}).status_code in {
            *(401, 404, 405, 413),
        }

    try:
        for path in [known, None] if known else [None]:
            strategy = operation.as_strategy(generation_mode=mode, path_parameters=path)
            searching(4)(given(case=strategy)(ask))()
    finally:
        session.close()
