"""A client that follows technicians live, and polls while it cannot.

    async for seen in AdaptiveTracking(http, job=job).positions():
        draw(seen)

Each round begins with a poll, which tells the mode. If that is `realtime`, a WebSocket follows;
when it ends, for whatever reason, the next round begins. A network that lets no WebSocket through
costs nothing but speed: such a client polls at the server's interval, and tries again each time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.typing import Subprotocol

from apps.providers.http import Answer, Exchange, Unanswered, Unsent

Mode = Literal["realtime", "polling"]
_PATH: Final = "/api/v1/tracking"
_TIMEOUT_S: Final = 10.0
_MOST_BYTES: Final = 1 << 20
_AT_FIRST_S: Final = 30.0
"""How often to poll a server that has not answered yet."""


class TrackingRefused(Exception):
    """The token, or whom it asks for, is not known: asking again would not help."""


@dataclass(frozen=True, slots=True)
class SeenPosition:
    """Where a technician was."""

    technician: UUID
    latitude: float
    longitude: float
    accuracy: float | None
    recorded_at: datetime


class AdaptiveTracking:
    """Follows a technician, whoever does a job, or everybody of the organisation of the token."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        *,
        technician: UUID | None = None,
        job: UUID | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`http` has the address of the API, and the token in its headers."""
        given = {"technicianId": technician, "jobId": job}
        self._wanted = {name: str(one) for name, one in given.items() if one is not None}
        self._http, self._sleep = http, sleep
        self._exchange = Exchange("campotech", http, _TIMEOUT_S, _MOST_BYTES)
        self._seen: dict[UUID, datetime] = {}
        self._since: str | None = None
        self._interval_s, self._drops = _AT_FIRST_S, 0
        self._is_over = False
        self.mode: Mode | None = None
        """How it looks now; None before the first answer."""

    async def positions(self) -> AsyncGenerator[SeenPosition]:
        """Each position that is newer than the one before; ends with the job."""
        while not self._is_over:
            may_be_live = False
            with contextlib.suppress(Unsent, Unanswered):
                told = await self._poll()
                may_be_live = told["mode"] == "realtime"
                for one in self._new(told["positions"]):
                    yield one
            if may_be_live and not self._is_over:
                async for one in self._live():
                    yield one
            if not self._is_over:
                self.mode = "polling"
                await self._sleep(self._pause_s(may_be_live=may_be_live))

    # -- polling ----------------------------------------------------------------------------------

    async def _poll(self) -> dict[str, Any]:
        since = {} if self._since is None else {"since": self._since}
        told = _content(await self._exchange.ask("GET", _PATH, params={**self._wanted, **since}))
        self._since, self._interval_s = told["since"], told["intervalS"]
        self._is_over = told["isOver"]
        return told

    def _pause_s(self, *, may_be_live: bool) -> float:
        """Until the next round: soon after a first lost connection, later after several."""
        if not may_be_live:
            return self._interval_s
        pause_s = min(self._interval_s, 2.0**self._drops - 1)
        self._drops = min(self._drops + 1, 10)
        return pause_s

    # -- live -------------------------------------------------------------------------------------

    async def _live(self) -> AsyncGenerator[SeenPosition]:
        """Until the connection ends, or the server says to poll."""
        try:
            path, protocols = await self._ticket()
            base = str(self._http.base_url).rstrip("/").replace("http", "ws", 1)
            async with connect(
                f"{base}{path}",
                subprotocols=protocols,
                proxy=None,
                max_size=_MOST_BYTES,
                open_timeout=_TIMEOUT_S,
            ) as websocket:
                self.mode = "realtime"
                async for one in self._heard(websocket):
                    yield one
        except (Unsent, Unanswered, OSError, TimeoutError, WebSocketException):
            return

    async def _heard(self, websocket: ClientConnection) -> AsyncGenerator[SeenPosition]:
        with contextlib.suppress(ConnectionClosed):
            async for text in websocket:
                message = json.loads(text)
                match message["type"]:
                    case "positions":
                        for one in self._new(message["positions"]):
                            self._drops = 0
                            yield one
                    case "ended":
                        self._is_over = True
                    case "poll":
                        self._interval_s, self._drops = message["intervalS"], 0
                    case _:
                        pass

    async def _ticket(self) -> tuple[str, list[Subprotocol]]:
        told = _content(await self._exchange.ask("POST", f"{_PATH}/tickets", json=self._wanted))
        return told["path"], [Subprotocol(one) for one in told["protocols"]]

    # -- both -------------------------------------------------------------------------------------

    def _new(self, positions: list[dict[str, Any]]) -> list[SeenPosition]:
        """Those that are newer than what is known of their technician."""
        found = list[SeenPosition]()
        for one in positions:
            who, at = UUID(one["technicianId"]), datetime.fromisoformat(one["recordedAt"])
            if who not in self._seen or self._seen[who] < at:
                self._seen[who] = at
                place = one["latitude"], one["longitude"], one["accuracy"]
                found.append(SeenPosition(who, *place, at))
        return found


def _content(answer: Answer) -> dict[str, Any]:
    if answer.is_success:
        return json.loads(answer.body)
    if answer.status in (401, 403, 404, 422):
        raise TrackingRefused(f"the server must know the token and whom to follow, got "
                              f"{answer.status}")  # fmt: skip
    raise Unanswered(f"campotech answered with {answer.status}")
