"""An ASGI application on a free port of loopback, served by uvicorn in the test's own loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn

from tests._support.eventually import eventually


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def served(application: Any) -> AsyncGenerator[str]:
    """Its address: 127.0.0.1:PORT."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            application,
            log_level="error",
            lifespan="off",
            access_log=False,
            timeout_graceful_shutdown=1,
        )
        server = _Server(config)
        running = asyncio.create_task(server.serve([listener]))
        try:
            await eventually(lambda: server.started)
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            await running
