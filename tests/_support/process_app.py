"""An app whose handlers run in processes of their own, and a gate to hold them at."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from faena import Discard, Faena, Job, Retry
from faena.errors import PayloadError

app = Faena("apart")
work = app.queue(
    "work", concurrency=6, timeout="60s", retry=Retry.fixed("20ms", attempts=3, floor="0s")
)


class Gate:
    """Where handlers in any process wait until the test lets them go, in the order they came."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._server: asyncio.Server | None = None
        self._arrived: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
        self._gone: list[asyncio.StreamWriter] = []

    async def arrival(self) -> asyncio.StreamWriter:
        """The next handler that has come to the gate."""
        async with asyncio.timeout(60):
            writer = await self._arrived.get()
        self._gone.append(writer)
        return writer

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(
            lambda _, writer: self._arrived.put_nowait(writer), self.path
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._gone:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


def wait_at(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as gate:
        gate.connect(path)
        gate.recv(1)


@work.task(run="process")
def stand(path: str, job: Job) -> int:
    """Waits at the gate, then says so; returns its process."""
    wait_at(path)
    job.log("through")
    return os.getpid()


@work.batch(size=3, wait="10m", run="process")
def pack(paths: list[str], jobs: list[Job]) -> list[str | Exception]:
    """A path is to wait at, another word to end with."""
    for path, job in zip(paths, jobs, strict=True):
        job.log(f"{path[:4]} in {os.getpid()}")
        if path.startswith("/"):
            wait_at(path)
        if path == "die":
            os._exit(3)
    ends: dict[str, Any] = {"bad": ValueError("as asked"), "odd": object(), "off": Discard("off")}
    return [ends.get(path, path.upper()) for path in paths]


@work.task(run="process")
def here() -> int:
    return os.getpid()


@work.task(run="process")
def report(kind: str, job: Job) -> str:
    """Tries to tell progress that no worker could take."""
    odd: dict[str, Any] = {"large": "x" * 100_000, "keys": {(1, 2): 3}, "type": object()}
    try:
        job.progress(odd[kind])
    except PayloadError as error:
        return str(error)
    return "taken"


@work.task(run="process")
def chat(job: Job) -> None:
    job.log("\N{GRINNING FACE}" * 60_000)
    job.log("\udc80 alone")
    job.progress({"done": 7})
