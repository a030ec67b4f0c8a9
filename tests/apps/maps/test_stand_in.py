"""The stand-in refuses what Google refuses, with HTTP 200 and a status."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from apps.sandbox.maps import Maps

WAY = {"origin": "Belgrano 1", "destination": "Belgrano 2"}
PAIRS = {"origins": "Belgrano 1", "destinations": "Belgrano 2"}


async def ask(service: Maps, what: str, query: dict[str, str]) -> Any:
    async with httpx.AsyncClient(base_url=service.url) as http:
        response = await http.get(f"/maps/api/{what}/json", params=query)
    assert response.status_code == 200
    return response.json()


@pytest.mark.parametrize(
    ("what", "query", "status"),
    [
        ("directions", WAY, "OK"),
        ("directions", {"origin": "Belgrano 1"}, "INVALID_REQUEST"),
        ("directions", {**WAY, "destination": ""}, "INVALID_REQUEST"),
        ("directions", {**WAY, "mode": "flying"}, "INVALID_REQUEST"),
        ("directions", {**WAY, "departure_time": "1"}, "INVALID_REQUEST"),
        ("directions", {**WAY, "departure_time": "soon"}, "INVALID_REQUEST"),
        ("directions", {**WAY, "departure_time": "now"}, "OK"),
        ("directions", {**WAY, "waypoints": "|".join("x" * 26)}, "MAX_WAYPOINTS_EXCEEDED"),
        ("directions", {**WAY, "waypoints": "a||b"}, "NOT_FOUND"),
        ("directions", {**WAY, "origin": "99,0"}, "NOT_FOUND"),
        ("directions", {**WAY, "origin": "40.4,-3.7"}, "ZERO_RESULTS"),
        ("distancematrix", PAIRS, "OK"),
        ("distancematrix", {"origins": "x"}, "INVALID_REQUEST"),
        ("distancematrix", {**PAIRS, "origins": "|".join("x" * 26)}, "MAX_DIMENSIONS_EXCEEDED"),
        (
            "distancematrix",
            {"origins": "|".join("x" * 11), "destinations": "|".join("x" * 10)},
            "MAX_ELEMENTS_EXCEEDED",
        ),
    ],
)
async def test_questions_are_checked(
    what: str, query: dict[str, str], status: str, service: Maps
) -> None:
    answer = await ask(service, what, {**query, "key": service.key})
    assert answer["status"] == status
    (entry,) = service.ledger.of(what)
    assert entry.outcome == ("ok" if status == "OK" else "refused")


async def test_a_key_is_needed(service: Maps) -> None:
    for query in (WAY, {**WAY, "key": "x"}):
        answer = await ask(service, "directions", query)
        assert answer["status"] == "REQUEST_DENIED"
        assert answer["routes"] == []
        assert "API key" in answer["error_message"]
