"""Devices that report positions, and viewers, as tests need them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.apps.campotech.business import Business

USER = "INSERT INTO campotech.users (id, organization_id, name, role) VALUES (%s, %s, %s, %s)"
JOB = "INSERT INTO campotech.jobs (id, organization_id, assigned_to, status) VALUES (%s,%s,%s,%s)"


async def technician(business: Business) -> UUID:
    """One more of this organisation."""
    made = uuid4()
    async with business.system.pg.transaction() as connection:
        await connection.execute(USER, [made, business.id, "Juan", "technician"])
    return made


async def job_of(business: Business, who: UUID | None, status: str = "en_camino") -> UUID:
    """A job that somebody is on their way to."""
    made = uuid4()
    async with business.system.pg.transaction() as connection:
        await connection.execute(JOB, [made, business.id, who, status])
    return made


def position(who: UUID, *, ago_s: float = 0, **given: Any) -> dict[str, Any]:
    """As a device tells it."""
    at = datetime.now(UTC) - timedelta(seconds=ago_s)
    place = {"latitude": -34.6037, "longitude": -58.3816, "accuracy": 12.5}
    return {"technicianId": str(who), **place, "recordedAt": at.isoformat(), **given}


async def report(api: httpx.AsyncClient, *positions: dict[str, Any]) -> httpx.Response:
    """Send positions."""
    return await api.post("/api/v1/tracking/positions", json={"positions": positions})


async def protocols(api: httpx.AsyncClient, **wanted: Any) -> list[str]:
    """With a ticket."""
    return (await api.post("/api/v1/tracking/tickets", json=wanted)).json()["protocols"]


@asynccontextmanager
async def looking(url: str, shown: list[str]) -> AsyncIterator[ClientConnection]:
    """A viewer with these protocols."""
    address = f"{url.replace('http', 'ws')}/api/v1/tracking/live"
    async with connect(address, subprotocols=shown, proxy=None) as websocket:  # pyright: ignore[reportArgumentType] - names are texts
        yield websocket


async def next_positions(websocket: ClientConnection) -> list[dict[str, Any]]:
    """Of the next message that has some."""
    while True:
        message = json.loads(await websocket.recv())
        assert message["type"] == "positions"
        if message["positions"]:
            return message["positions"]


async def end_of(websocket: ClientConnection) -> tuple[int, str]:
    """With which code and reason the server closes it."""
    with suppress(ConnectionClosed):
        async for _ in websocket:
            pass  # what comes before
    await websocket.wait_closed()
    return websocket.close_code or 0, websocket.close_reason or ""
