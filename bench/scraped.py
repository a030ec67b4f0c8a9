"""A worker that is asked over HTTP once a second while it drains: for its page of metrics, or for
all that it answers."""

from __future__ import annotations

import asyncio
import socket
import threading
import urllib.request
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from bench.adapter import PeerFailed
from faena import Faena
from faena.contrib.metrics import metrics_endpoint

_EVERY_S = 1.0
PAGE = ("/metrics",)
EVERY_PATH = ("/metrics", "/health", "/ready", "/health/redis", "/scaling")
_ACCEPT = {"Accept": "application/openmetrics-text; version=1.0.0"}


class _Server(uvicorn.Server):
    """Signals are the worker's."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(app: Faena, queue: str, port_file: Path) -> None:
    """Serve the queue and the page; the file then says where that is."""
    worker = await app.worker([queue])
    endpoint = metrics_endpoint(app, worker=worker)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = _Server(uvicorn.Config(endpoint, lifespan="off", log_level="warning"))
        page = asyncio.create_task(server.serve(sockets=[listening]))
        _tell(port_file, listening.getsockname()[1])
        await worker.run()
        server.should_exit = True
        await page


async def serve_all(app: Faena, queue: str, port_file: Path) -> None:
    """Serve the queue and all that a worker answers; the file says where, once it does."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    working = asyncio.create_task(app.run_worker([queue], serve=f"127.0.0.1:{port}"))
    while not working.done() and not await _answers(port):  # noqa: ASYNC110 - another thread's port
        await asyncio.sleep(0.02)
    _tell(port_file, port)
    await working


async def _answers(port: int) -> bool:
    try:
        return await asyncio.to_thread(_read, port, "/ready") > 0
    except OSError:
        return False


def _tell(port_file: Path, port: int) -> None:
    """At once, so that nobody reads half of it."""
    whole = port_file.with_suffix(".new")
    whole.write_text(str(port))
    whole.rename(port_file)


@contextmanager
def scraping(port_file: Path, paths: Sequence[str] = PAGE) -> Generator[None]:
    """Ask for the paths once a second during the block; one that fails fails the drain."""
    over, pages, problems = threading.Event(), list[int](), list[Exception]()

    def scrape() -> None:
        while not over.wait(_EVERY_S if pages else 0.05):
            if port_file.exists():
                try:
                    port = int(port_file.read_text())
                    pages.append(sum(_read(port, path) for path in paths))
                except Exception as error:  # told below
                    problems.append(error)
                    return

    scraper = threading.Thread(target=scrape, daemon=True)
    scraper.start()
    try:
        yield
    finally:
        over.set()
        scraper.join()
    if problems or not pages:
        raise PeerFailed(f"no page of metrics was read: {problems or 'none was there in time'}")


def _read(port: int, path: str) -> int:
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=_ACCEPT)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return len(answer.read())
