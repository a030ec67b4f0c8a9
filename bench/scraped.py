"""A worker whose page of metrics is scraped once a second over HTTP, while it drains."""

from __future__ import annotations

import asyncio
import socket
import threading
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from bench.adapter import PeerFailed
from faena import Faena
from faena.contrib.metrics import metrics_endpoint

_EVERY_S = 1.0
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


def _tell(port_file: Path, port: int) -> None:
    """At once, so that nobody reads half of it."""
    whole = port_file.with_suffix(".new")
    whole.write_text(str(port))
    whole.rename(port_file)


@contextmanager
def scraping(port_file: Path) -> Generator[None]:
    """Ask for the page once a second during the block; a page that fails fails the drain."""
    over, pages, problems = threading.Event(), list[int](), list[Exception]()

    def scrape() -> None:
        while not over.wait(_EVERY_S if pages else 0.05):
            if port_file.exists():
                try:
                    pages.append(_page(int(port_file.read_text())))
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


def _page(port: int) -> int:
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=_ACCEPT)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return len(answer.read())
