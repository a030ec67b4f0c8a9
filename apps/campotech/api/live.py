"""Positions over a WebSocket, for who shows a ticket among its protocols.

    {"type": "positions", "positions": […]}            at once, and whenever there are new ones
    {"type": "poll", "intervalS": 30, "path": …}       not live any more: poll; closed with 1013
    {"type": "ended"}                                  the job has ended; closed with 1000

A viewer sends nothing. One that takes nothing for ten seconds is dropped, and one that has looked
for an hour shows a new ticket.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import UUID

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from apps.campotech.api.problem import KIND, problem
from apps.campotech.security import Tickets
from apps.campotech.tracking import reading
from apps.campotech.tracking.hub import Bounds, Full, Hub, Mode, Viewer
from apps.campotech.tracking.position import INTERVAL, Position, Watch
from apps.campotech.tracking.writer import Writer
from faena.errors import FaenaError

if TYPE_CHECKING:
    from apps.campotech.system import System

PROTOCOL: Final = "campotech.tracking.v1"
PREFIX: Final = "ticket."
LIFETIME: Final = timedelta(minutes=1)
_PATH: Final = "/api/v1/tracking"
_LATER, _DONE, _REFUSED = 1013, 1000, 1008
_LONGEST_TICKET: Final = 1000

Shown = Callable[[Position], dict[str, Any]]


class Tracking:
    """What the requests of one application share."""

    def __init__(self, system: System, bounds: Bounds) -> None:
        self.pg, self.bounds = system.pg, bounds
        self.writer, self.mode = Writer(system.pg), Mode(system)
        self.hub = Hub(system, self.mode, bounds)
        self.interval_s = system.pace.of(INTERVAL).total_seconds()
        self.tickets = Tickets(system.settings.secrets, b"tracking", LIFETIME)

    async def mode_now(self) -> Literal["realtime", "polling"]:
        """How to look now."""
        return "realtime" if await self.mode.is_live() else "polling"

    def issue(self, watch: Watch) -> str:
        """A ticket that says whom its holder may watch."""
        ids = [watch.organization, watch.technician, watch.job]
        said = [None if one is None else str(one) for one in ids]
        return self.tickets.issue(json.dumps(said).encode())

    def read(self, protocols: Sequence[str]) -> Watch | None:
        """What the ticket among them says; None without one that is good."""
        shown = [one.removeprefix(PREFIX) for one in protocols if one.startswith(PREFIX)]
        if PROTOCOL not in protocols or len(shown) != 1 or len(shown[0]) > _LONGEST_TICKET:
            return None
        try:
            said = json.loads(self.tickets.read(shown[0]))
        except ValueError:
            return None
        organization, technician, job = (None if one is None else UUID(one) for one in said)
        return Watch(organization=organization or UUID(int=0), technician=technician, job=job)


def tracking_of(connection: HTTPConnection) -> Tracking:
    """That of the application which serves the request."""
    tracking: Tracking = connection.app.state.tracking
    return tracking


async def serve(websocket: WebSocket, shown: Shown) -> None:
    """Let a viewer look, as long as they may."""
    tracking = tracking_of(websocket)
    watch = tracking.read(websocket.scope["subprotocols"])
    if watch is None:
        return await _deny(websocket, 401, "a ticket that is good is needed")
    try:
        viewer = tracking.hub.join(watch)
    except Full:
        return await _deny(websocket, 503, "too many look: poll instead")
    try:
        await websocket.accept(PROTOCOL)
        await _until_gone(websocket, _Show(tracking, websocket, viewer, shown).run())
    finally:
        await tracking.hub.leave(viewer)


class _Show:
    """What one viewer is sent."""

    def __init__(
        self, tracking: Tracking, websocket: WebSocket, viewer: Viewer, shown: Shown
    ) -> None:
        self._tracking, self._bounds = tracking, tracking.bounds
        self._websocket, self._viewer, self._shown = websocket, viewer, shown
        self._clock = asyncio.get_running_loop().time

    async def run(self) -> None:
        """Until the viewer must poll, the job has ended or the time is over."""
        try:
            await self._run()
        except TimeoutError:
            return  # dropped: they take nothing
        except (FaenaError, reading.NobodyToWatch):
            await self._end({"type": "poll", **self._how_to_poll()}, _LATER)

    async def _run(self) -> None:
        if not await self._tracking.mode.is_live():
            self._viewer.send_away()
        else:
            await self._look_again(has_begun=False)
            await self._send_positions(self._viewer.taken())
        until = self._clock() + self._bounds.longest_s
        look_at = self._clock() + self._tracking.interval_s
        while not self._viewer.must_poll and not self._viewer.watched.is_over:
            now = self._clock()
            if now >= until:
                return await self._websocket.close(_DONE, "renew")
            if now >= look_at:
                await self._look_again(has_begun=True)
                look_at = now + self._tracking.interval_s
            try:
                async with asyncio.timeout(min(until, look_at) - now):
                    news = await self._viewer.news()
            except TimeoutError:
                continue
            if news:
                await self._send_positions(news)
        if self._viewer.watched.is_over:
            return await self._end({"type": "ended"}, _DONE)
        return await self._end({"type": "poll", **self._how_to_poll()}, _LATER)

    async def _look_again(self, *, has_begun: bool) -> None:
        """A job may be given to somebody else, or end."""
        watch = self._viewer.watch
        async with self._tracking.pg.transaction("tracking") as connection:
            watched = await reading.resolve(connection, watch)
            is_same = has_begun and watched == self._viewer.watched
            self._viewer.watched = watched
            if is_same:
                return
            seen = await reading.of_watch(connection, watch, watched, None)
        for one in seen.positions:
            self._viewer.offer(one)

    async def _send_positions(self, positions: Sequence[Position]) -> None:
        await self._send({"type": "positions", "positions": [*map(self._shown, positions)]})

    async def _send(self, message: dict[str, Any]) -> None:
        async with asyncio.timeout(self._bounds.send_s):
            await self._websocket.send_text(json.dumps(message, separators=(",", ":")))

    async def _end(self, message: dict[str, Any], code: int) -> None:
        await self._send(message)
        await self._websocket.close(code)

    def _how_to_poll(self) -> dict[str, Any]:
        return {"intervalS": self._tracking.interval_s, "path": _PATH}


async def _until_gone(websocket: WebSocket, show: Any) -> None:
    """A viewer who leaves, or talks, ends it."""
    showing, hearing = asyncio.create_task(show), asyncio.create_task(websocket.receive())
    try:
        await asyncio.wait([showing, hearing], return_when=asyncio.FIRST_COMPLETED)
        if showing.done():
            await showing
        elif hearing.result()["type"] == "websocket.receive":
            await websocket.close(_REFUSED, "a viewer sends nothing")
    except WebSocketDisconnect:
        pass
    finally:
        for one in (showing, hearing):
            one.cancel()
        await asyncio.gather(showing, hearing, return_exceptions=True)


async def _deny(websocket: WebSocket, status: int, detail: str) -> None:
    """As an answer to the handshake."""
    answer = JSONResponse(problem(status, detail), status, media_type=KIND)
    await websocket.send_denial_response(answer)
