"""What all stand-ins are made of: routes that keep a ledger and play faults, served on loopback."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from apps.sandbox.fault import Faults
from apps.sandbox.ledger import Ledger

HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the service answers, and what the ledger keeps of it."""

    response: Response
    outcome: str = "ok"
    subject: str = ""
    detail: dict[str, Any] = field(default_factory=dict[str, Any])


class Refused(Exception):
    """The service says no; subclasses know how it does."""

    @property
    def response(self) -> Response:
        """The answer."""
        raise NotImplementedError

    @property
    def detail(self) -> dict[str, Any]:
        """What the ledger keeps of it."""
        return {}


class CutOff(Response):
    """The connection ends before the answer is whole."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Promise a body, and send none: the server drops the connection."""
        headers = [(b"content-length", b"1")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})


class StandIn:
    """One service. Subclasses name it, list its routes, and answer through `play`."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self.ledger, self.faults = Ledger(), Faults()
        self.http = Starlette(routes=self.routes())

    def routes(self) -> Sequence[BaseRoute]:
        """The addresses of the service."""
        raise NotImplementedError

    def failure(self, status: int) -> Response:
        """How the service answers when it is in trouble; most have a format of their own."""
        return JSONResponse({"error": "unavailable"}, status)

    async def play(
        self, operation: str, work: Callable[[bool], Awaitable[Reply]], *, subject: str = ""
    ) -> Response:
        """Answer a request: `work` does it, with wrong data if its argument is true, or raises
        `Refused`."""
        began_at, faults = time.monotonic(), self.faults.of(operation)
        if slow := faults.get("slow"):
            await asyncio.sleep(slow.seconds)
        if "cut" in faults:
            self.ledger.note(operation, "cut", began_at=began_at, subject=subject)
            return CutOff()
        if fault := faults.get("status"):
            self.ledger.note(
                operation, "status", began_at=began_at, subject=subject, status=fault.status
            )
            response = self.failure(fault.status)
            if fault.seconds:
                response.headers["retry-after"] = f"{fault.seconds:.0f}"
            return response
        try:
            reply = await work("wrong" in faults)
        except Refused as no:
            reply = Reply(response=no.response, outcome="refused", detail=no.detail)
        is_lost = "lost" in faults
        self.ledger.note(
            operation,
            reply.outcome,
            began_at=began_at,
            subject=reply.subject or subject,
            **reply.detail,
            **({"is_lost": True} if is_lost else {}),
        )
        return CutOff() if is_lost else reply.response

    @asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncGenerator[str]:
        """Serve it on loopback; its address."""
        async with serving(self.http, port) as url:
            yield url


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Signals belong to the program."""
        yield


@asynccontextmanager
async def serving(
    http: ASGIApp, port: int = 0, *, has_websockets: bool = False
) -> AsyncGenerator[str]:
    """Serve an application on a free port of loopback; its address."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # it tells of each cut-off answer
    with socket.create_server((HOST, port)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else a POST takes 40 ms
        config = uvicorn.Config(
            http,
            log_config=None,
            access_log=False,
            lifespan="off",
            proxy_headers=False,
            ws="auto" if has_websockets else "none",
        )
        server = _Server(config)
        running = asyncio.create_task(server.serve([listener]))
        try:
            yield f"http://{HOST}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            await running
