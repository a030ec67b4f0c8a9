"""All stand-ins are behind one address, and other processes can play faults and read ledgers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from apps.providers import afip
from apps.sandbox.sandbox import Sandbox


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as http:
        yield http


async def test_services_answer_below_their_names_and_keep_ledgers(http: httpx.AsyncClient) -> None:
    sandbox = Sandbox()
    async with sandbox.serving() as url:
        client = afip.Client(afip.Settings.from_env(sandbox.environment(url)), http)
        assert (await client.dummy()).is_ok
        entries = (await http.get(f"{url}/sandbox/afip/ledger?outcome=ok")).json()
        assert [one["operation"] for one in entries] == ["FEDummy"]
        assert (await http.get(f"{url}/sandbox/afip/ledger?operation=x")).json() == []
        assert (await http.get(f"{url}/sandbox/mercadopago/ledger")).json() == []


async def test_faults_are_played_until_they_are_cleared(http: httpx.AsyncClient) -> None:
    sandbox = Sandbox()
    async with sandbox.serving() as url:
        client = afip.Client(afip.Settings.from_env(sandbox.environment(url)), http)
        faults = f"{url}/sandbox/afip/faults"
        fault = {"kind": "status", "status": 503, "lasts": 600}
        assert (await http.post(faults, json=fault)).status_code == 201
        with pytest.raises(afip.Retryable):
            await client.dummy()
        assert (await http.delete(faults)).status_code == 204
        assert (await client.dummy()).is_ok


@pytest.mark.parametrize("wrong", [{"kind": "odd"}, {"kind": "cut", "lasts": "x"}, {"odd": 1}])
async def test_wrong_faults_are_refused(http: httpx.AsyncClient, wrong: dict[str, object]) -> None:
    sandbox = Sandbox()
    async with sandbox.serving() as url:
        response = await http.post(f"{url}/sandbox/openai/faults", json=wrong)
        assert response.status_code == 422
        assert sandbox.openai.faults.rules == []


async def test_an_unknown_service_is_not_found(http: httpx.AsyncClient) -> None:
    async with Sandbox().serving() as url:
        assert (await http.get(f"{url}/sandbox/nobody/ledger")).status_code == 404
        assert (await http.post(f"{url}/sandbox/nobody/faults", json={})).status_code == 404
