"""The dashboard of CampoTech's queues, beside its API."""

from __future__ import annotations

import httpx
import pytest
from apps.campotech.api.operators import PATH, for_operators
from apps.campotech.system import System

from faena.errors import ConfigError


async def test_operators_find_the_dashboard_beside_the_api(url: str) -> None:
    async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
        answer = await client.get(f"{PATH}/")
        assert (answer.status_code, answer.headers["location"]) == (303, f"{PATH}/sign-in")
        door = await client.get(f"{PATH}/sign-in")
        assert "Password" in door.text


async def test_tokens_of_the_api_are_no_way_in(api: httpx.AsyncClient) -> None:
    answer = await api.get(f"{PATH}/")
    assert answer.status_code == 303


async def test_without_being_asked_for_there_is_no_link(system: System) -> None:
    with pytest.raises(ConfigError, match="link=True"):
        await for_operators(system).link("http://127.0.0.1")
