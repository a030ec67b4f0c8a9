"""The API describes itself, and every route that it describes refuses what it must."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final, NamedTuple
from uuid import uuid4

import httpx
import pytest
import schemathesis
from apps.campotech.api.app import create
from apps.campotech.api.body import MOST_BYTES
from apps.campotech.system import System
from apps.sandbox.sandbox import Sandbox
from hypothesis import given
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from faena.testing import Harness
from tests._support.search import searching
from tests.apps.campotech.api.test_conversation import waiting
from tests.apps.campotech.api.test_jobs import store
from tests.apps.campotech.api.tracked import job_of, technician
from tests.apps.campotech.business import Business

OPEN: Final = ("/api/health", "/webhooks/")
"""Routes without a token: webhooks are signed."""
CHECKS: Final = [not_a_server_error, response_schema_conformance, status_code_conformance]


class Operation(NamedTuple):
    """A route of the description."""

    method: str
    path: str
    about: dict[str, Any]

    @property
    def has_token(self) -> bool:
        return not self.path.startswith(OPEN)

    def at(self, **ids: str) -> str:
        """Its address, with ids for its parameters."""
        names = [one["name"] for one in self.about.get("parameters", []) if one["in"] == "path"]
        return self.path.format(**{name: ids.get(name, ids["any"]) for name in names})


@pytest.fixture
def operations(system: System) -> list[Operation]:
    """All routes."""
    paths = create(system).openapi()["paths"]
    return [Operation(method, path, one) for path in paths for method, one in paths[path].items()]


@pytest.fixture
async def nobody(url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a token."""
    async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
        yield client


async def test_it_is_served_with_every_answer_and_problem(
    nobody: httpx.AsyncClient, operations: list[Operation]
) -> None:
    served = (await nobody.get("/api/openapi.json")).json()
    assert sum(map(len, served["paths"].values())) == len(operations) > 15
    for one in operations:
        answers = one.about["responses"]
        assert one.about["summary"]
        assert one.about["description"]
        assert any(status < "300" for status in answers), one.path
        for status, answer in answers.items():
            if status >= "400" and one.path != "/api/health":
                assert list(answer["content"]) == ["application/problem+json"], one.path
        if one.has_token:
            assert "401" in answers, one.path
            assert one.about["security"], one.path


async def test_every_route_refuses_a_missing_and_an_unknown_token(
    nobody: httpx.AsyncClient, operations: list[Operation]
) -> None:
    for one in operations:
        for headers in ({}, {"authorization": "Bearer ct_unknown"}):
            if one.has_token:
                path = one.at(any=str(uuid4()))
                answer = await nobody.request(one.method, path, headers=headers)
                assert (answer.status_code, one.path) == (401, one.path)
                assert answer.headers["content-type"] == "application/problem+json"


async def test_every_route_refuses_ids_that_are_none(
    api: httpx.AsyncClient, operations: list[Operation]
) -> None:
    for one in operations:
        if "{" in one.path and one.has_token:
            for name in ("x", "1", "%00", "..%2f..", "0" * 31, "z" * 300, "\u00f1"):
                answer = await api.request(one.method, one.at(any=name))
                assert answer.status_code in (403, 404, 422), (one.path, name)
                assert answer.headers["content-type"] == "application/problem+json"


async def test_every_route_refuses_ids_of_another_organisation(
    api: httpx.AsyncClient,
    operations: list[Operation],
    system: System,
    sandbox: Sandbox,
    url: str,
    harnessed: Harness,
) -> None:
    other = await Business.make(system, sandbox, number="2")
    headers = {"authorization": f"Bearer {other.token}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False) as stranger:
        year = {"table": "jobs", "startDate": "2023-01-01", "endDate": "2023-12-31"}
        asked = (await stranger.get("/api/v1/archives", params=year)).json()
        (await harnessed.drain(schedules=False)).check()
        link = (await stranger.get(asked["status"])).json()["link"]
    ids = {
        "invoice": str(await other.invoice()),
        "job": str(await store(other)),
        "conversation": str(await waiting(other)),
        "archive": asked["id"],
        "token": link.rpartition("/")[2],
    }
    for one in operations:
        if "{" in one.path and one.has_token:
            answer = await api.request(one.method, one.path.format(**ids))  # each needs its id
            assert answer.status_code in (403, 404), one.path
    foreign = {
        "technicianId": str(await technician(other)),
        "jobId": str(await job_of(other, None)),
    }
    named = {
        parameter["name"]
        for one in operations
        for parameter in one.about.get("parameters", [])
        if parameter["in"] == "query" and parameter["name"].endswith("Id")
    }
    assert named == set(foreign)
    for name, value in foreign.items():
        answer = await api.get("/api/v1/tracking", params={name: value})
        assert answer.status_code == 404, name


async def test_every_route_refuses_bodies_that_are_too_large(
    api: httpx.AsyncClient, operations: list[Operation]
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(MOST_BYTES // 65_536 + 1):
            yield b" " * 65_536

    for one in operations:
        if "requestBody" in one.about and one.has_token:
            path = one.at(any=str(uuid4()))
            headers = {"content-type": "application/json", "idempotency-key": "k" * 16}
            for content in (b" " * (MOST_BYTES + 1), chunks()):
                answer = await api.request(one.method, path, content=content, headers=headers)
                assert (answer.status_code, one.path) == (413, one.path)
                assert answer.headers["content-type"] == "application/problem+json"


async def test_no_request_that_the_description_allows_breaks_a_route(
    url: str, system: System, business: Business, harnessed: Harness
) -> None:
    schema = schemathesis.openapi.from_dict(create(system).openapi())
    tokens = {"/api/v1/": business.token, "/api/admin/": system.settings.admin_token}
    seen = list[str]()

    def search(operation: Any, mode: GenerationMode) -> None:
        shown = [token for path, token in tokens.items() if operation.path.startswith(path)]
        headers = {"authorization": f"Bearer {shown[0]}"} if shown else {}

        @searching(3, full=300)
        @given(case=operation.as_strategy(generation_mode=mode))
        def call(case: Any) -> None:
            answer = case.call(base_url=url, headers=headers)
            case.validate_response(answer, checks=CHECKS)
            seen.append(operation.path)

        with suppress(Unsatisfiable):  # a route without parameters cannot be called wrongly
            call()

    for found in schema.get_all_operations():
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            await asyncio.to_thread(search, found.ok(), mode)
    assert len(set(seen)) > 10
