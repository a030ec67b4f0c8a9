"""The queues that `./dev bench lanes` and `upstreams` compare, and a worker process for each.

`python -m bench.lanes_shop KIND SLOTS` serves the queue of that kind until it is killed. What its
handlers did is read outside the broker: starts and ends in the ledger, jobs by tenant in a file of
counters beside it.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import random
import sys
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.adapter import Worker
from bench.ledger import Ledger, create_ledger
from bench.peers.protocol import run
from bench.process import child
from bench.scraped import EVERY_PATH, PAGE, scraping, serve, serve_all
from faena import Alerts, Budget, Faena, Limit, Price, Retain
from faena import logging as faena_logging

QUEUE = "bench"
UNMEASURED = "unmeasured"
"""Its worker measures nothing of its jobs: what no program can ask for."""
WATCHED = "watched"
"""Its worker's page of metrics is scraped once a second."""
ALL = "all"
"""And it judges alerts, is probed once a second, and writes its log in JSON."""
SLOTS = 500
COUNTED = 1024
"""Tenants by number that the counters have room for; those beyond share the last one."""

_ROOT = Path(__file__).resolve().parents[1]
_BARE = {"retain": Retain(completed_count=0)}

KINDS: Mapping[str, Mapping[str, Any]] = {
    "unlaned": _BARE,
    "laned": {**_BARE, "fair": True},
    "ordered": {**_BARE, "order": "tenant"},
    "everything": {
        "limits": [Limit("1000000/s"), Limit("10000000/min")],
        "tenant_limits": [Limit("900000/s"), Limit("9000000/min")],
        "max_running": 10_000,
        "tenant_max_running": 5_000,
        "retain": Retain(completed="1h", completed_count=10_000, completed_bytes=64 << 20),
    },
    "guarded": _BARE,
    "priced": _BARE,
    "guarded laned": {**_BARE, "fair": True},
    UNMEASURED: _BARE,
    WATCHED: _BARE,
    ALL: _BARE,
}
"""Options by kind. The bounds of `everything` are checked at every claim and never reached."""

_LIMITS = {"limits": ["100000000/min", "1000000000/h"]}
UPSTREAMS: Mapping[str, Mapping[str, Any]] = {
    "guarded": _LIMITS,
    "priced": {
        **_LIMITS,
        "prices": [Price("call", "0.001 USD")],
        "budgets": [Budget("100000000 USD"), Budget("1000000000 USD", per="month")],
    },
    "guarded laned": {**_LIMITS, "tenant_limits": ["10000000/min", "100000000/h"]},
}
"""The upstream that jobs of a kind call: its breaker stays closed, its limits and budgets
are not reached."""


class Work(msgspec.Struct):
    """A job: whose by number, about how long it takes, and when it was sent if that counts."""

    tenant: int = 0
    nap_ms: int = 0
    sent_ns: int = 0
    pad: str = "x" * 132


class Counters:
    """How many jobs of each tenant have started, in a file that worker and harness both map."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._slots = memoryview(mmap.mmap(file.fileno(), 8 * COUNTED)).cast("q")

    def count(self, tenant: int) -> None:
        """Note a start."""
        self._slots[min(tenant, COUNTED - 1)] += 1

    def first(self, tenants: int) -> list[int]:
        """Starts of the first so many tenants."""
        return self._slots[:tenants].tolist()


def tenant_name(number: int) -> str:
    """As long as a name of an organisation might be."""
    return f"tenant-{number:06d}"


class Books(NamedTuple):
    """What handlers write."""

    ledger: Ledger
    counters: Counters

    async def perform(self, work: Work) -> None:
        """The task."""
        started_ns = self.ledger.begin()
        self.counters.count(work.tenant)
        if work.sent_ns:
            self.ledger.sample(started_ns - work.sent_ns)
        if work.nap_ms:
            await asyncio.sleep(random.uniform(0.5, 1.5) * work.nap_ms / 1000)
        self.ledger.end()


def build(
    url: str, kind: str, *, slots: int = SLOTS, queue: str = QUEUE, books: Books | None = None
) -> tuple[Faena, Any]:
    """The app with one queue of a kind and its one task; a producer needs no books."""
    app = Faena("bench", url=url, alerts=Alerts() if kind == ALL else None)
    made = app.queue(queue, concurrency=slots, **KINDS[kind])
    needed = [app.upstream("provider", **UPSTREAMS[kind])] if kind in UPSTREAMS else []
    if kind == "everything":

        @made.task(name="run")
        async def run_and_answer(work: Work) -> dict[str, int]:
            await _noted(books).perform(work)
            return {"tenant": work.tenant, "answer": 42}

        return app, run_and_answer

    @made.task(name="run", upstreams=needed)
    async def run_only(work: Work) -> None:
        await _noted(books).perform(work)

    return app, run_only


def _noted(books: Books | None) -> Books:
    if books is None:
        raise RuntimeError("a worker must be given books to write")
    return books


class Served:
    """A running worker and what its handlers have noted."""

    def __init__(self, worker: Worker, counters: Counters) -> None:
        self.worker = worker
        self.ledger = worker.ledger
        self.counters = counters


@contextmanager
def working(url: str, scratch: Path, kind: str, slots: int = SLOTS) -> Generator[Served]:
    """One worker process for the length of the block."""
    log, book, counts = scratch / "worker.log", scratch / "ledger", scratch / "counters"
    create_ledger(book)
    counts.write_bytes(bytes(8 * COUNTED))
    names = {"BENCH_URL": url, "BENCH_LEDGER": str(book), "BENCH_COUNTERS": str(counts)}
    command = [sys.executable, "-m", "bench.lanes_shop", kind, str(slots)]
    with (
        log.open("w") as errors,
        child(command, cwd=_ROOT, env={**os.environ, **names}, stderr=errors) as process,
        _seen(kind, book),
    ):
        yield Served(Worker(process, Ledger(book), log), Counters(counts))


def _seen(kind: str, book: Path) -> AbstractContextManager[None]:
    if kind not in (WATCHED, ALL):
        return nullcontext()
    _port_file(book).unlink(missing_ok=True)
    return scraping(_port_file(book), EVERY_PATH if kind == ALL else PAGE)


def _port_file(book: Path) -> Path:
    return book.with_suffix(".port")


def _measure_nothing() -> None:
    """Have this process's worker neither measure nor report what its jobs take."""
    from faena.worker.fetch.samples import Samples

    def nothing(*_: object, **__: object) -> None:
        return None

    for name in ("begun", "ended", "take"):
        setattr(Samples, name, nothing)


def main() -> None:
    """Serve until killed."""
    kind, slots = sys.argv[1], int(sys.argv[2])
    if kind == UNMEASURED:
        _measure_nothing()
    book, counts = (Path(os.environ[name]) for name in ("BENCH_LEDGER", "BENCH_COUNTERS"))
    books = Books(Ledger(book), Counters(counts))
    app, _ = build(os.environ["BENCH_URL"], kind, slots=slots, books=books)
    if kind == ALL:
        faena_logging.configure("json", "info")
        run(serve_all(app, QUEUE, _port_file(book)))
    elif kind == WATCHED:
        run(serve(app, QUEUE, _port_file(book)))
    else:
        run(app.run_worker([QUEUE]))


if __name__ == "__main__":
    main()
