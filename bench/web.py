"""`python -m bench.web`: how long the pages of the dashboard take, and what they ask of the broker.

A world is built on a server of its own: 100 queues, a million jobs, 10,000 tenants and a day of
history. Then every page and every reading of the API is asked for as an owner, in another order in
each round. Before each request all caches of a few seconds are made to look old, so each is the
first visitor for a while. Calls are counted where they leave this process; their times are the
server's own, out of its SLOWLOG. `cpu` is this process's time of a request: on a busy machine it
says more than the clock.

`/account`, which shows nothing of queues, is the baseline: what any request costs on this machine
at this moment. The goals are 100 ms of p95 beside it, and 5 ms for the slowest broker call.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import redis
from rich.console import Console
from rich.table import Table

from bench.report import machine
from bench.server import running_server
from bench.web_world import Size, World
from faena import Faena
from faena.engine import Wire
from faena.web.access.access import Access
from faena.web.access.account import Account
from faena.web.access.caller import Caller
from faena.web.access.gate import PLAIN_COOKIE
from faena.web.access.role import Role
from faena.web.application import Dashboard, dashboard
from faena.web.routes import ROUTES

GOAL_MS: Final = 100.0
CALL_GOAL_MS: Final = 5.0
BASELINE: Final = "/account"
_STREAMS: Final = frozenset({"/live/{page}", "/api/events"})
_QUERIES: Final = {
    "/api/queues/{queue}/what-if": "?slots=4&window=5m",
    "/queues/{queue}": "?window=24h",
}
_AHEAD_S: Final = 10.0
_KEPT: Final = 200_000


class Call(NamedTuple):
    """A call of the broker, as the server saw it."""

    name: str
    ms: float


class Asked(NamedTuple):
    """One request."""

    ms: float
    cpu_ms: float
    status: int
    size: int
    sent: int
    """Calls that left this process."""
    calls: Sequence[Call]
    """All that the server ran, those inside of scripts among them."""


@dataclass
class Page:
    """One address, and how it was answered."""

    path: str
    address: str
    asked: list[Asked] = field(default_factory=list[Asked])

    def ms(self, part: float) -> float:
        """A percentile of all but the first request, which no other has prepared."""
        return _percentile([one.ms for one in self.asked[1:]], part)

    @property
    def calls(self) -> int:
        """Broker calls of a request."""
        return round(statistics.median(one.sent for one in self.asked[1:]))

    @property
    def cpu_ms(self) -> float:
        """CPU time of a request."""
        return statistics.median(one.cpu_ms for one in self.asked[1:])

    @property
    def slowest(self) -> Call:
        """The call that is slowest in most requests: its median, which one hiccup does not move."""
        times: dict[str, list[float]] = {}
        for one in self.asked[1:]:
            for name in {call.name for call in one.calls}:
                longest = max(call.ms for call in one.calls if call.name == name)
                times.setdefault(name, []).append(longest)
        found = [Call(name, statistics.median(all_of_it)) for name, all_of_it in times.items()]
        return max(found, key=lambda call: call.ms, default=Call("", 0.0))

    @property
    def worst_ms(self) -> float:
        """The slowest call of all."""
        return max((call.ms for one in self.asked[1:] for call in one.calls), default=0.0)

    @property
    def status(self) -> int:
        """The worst one."""
        return max(one.status for one in self.asked)


class _Ahead:
    """The module `time`, with a monotonic clock that is ahead: what is kept for seconds is old."""

    def __init__(self) -> None:
        self.by_s = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def monotonic(self) -> float:
        """As far ahead as it was moved."""
        return time.monotonic() + self.by_s

    def stand_in(self) -> None:
        """For every module that keeps answers; the event loop keeps the real one."""
        for name, module in list(sys.modules.items()):
            is_kept = name.startswith(("faena.web", "faena.telemetry"))
            if is_kept and vars(module).get("time") is time:
                vars(module)["time"] = self


class Asking:
    """An owner's browser, and a look at the server's log after each request."""

    def __init__(self, client: httpx.AsyncClient, broker: Any, wire: Wire) -> None:
        self._client, self._broker, self._ahead = client, broker, _Ahead()
        self._sent = 0
        self._ahead.stand_in()
        for name in ("call", "run", "push"):
            setattr(wire, name, self._counted(getattr(wire, name)))

    def _counted(self, send: Callable[..., Any]) -> Callable[..., Any]:
        def sent(*args: Any, **named: Any) -> Any:
            self._sent += 1
            return send(*args, **named)

        return sent

    async def ask(self, page: Page) -> None:
        self._ahead.by_s += _AHEAD_S
        self._broker.slowlog_reset()
        self._sent, cpu, began = 0, time.process_time(), time.perf_counter()
        answer = await self._client.get(page.address)
        ms, cpu_ms = (time.perf_counter() - began) * 1000, (time.process_time() - cpu) * 1000
        sent = self._sent
        calls = [
            Call(_name(one["command"]), one["duration"] / 1000)
            for one in self._broker.slowlog_get(_KEPT)
            if not one["command"].startswith(b"SLOWLOG")
        ]
        page.asked.append(Asked(ms, cpu_ms, answer.status_code, len(answer.content), sent, calls))


def _name(command: bytes) -> str:
    """FCALL faena_d3e59aaa8a_snapshot … → snapshot; anything else by its first word."""
    first, *rest = command.decode(errors="replace").split(" ", 2)
    return rest[0].split("_", 2)[-1] if first.upper().startswith("FCALL") and rest else first


def _pages(world: World) -> Iterator[Page]:
    """One address for each route that is asked for by GET and ends."""
    yield Page(BASELINE, BASELINE)
    for route in ROUTES:
        is_asked = route.method == "GET" and route.needs is not None
        if not is_asked or route.path in _STREAMS | {BASELINE}:
            continue
        parts = {"page": "overview"} | world.parts
        if route.name == "dead.show":
            parts["job"] = parts["dead"]
        yield Page(route.path, _filled(route.path, parts) + _QUERIES.get(route.path, ""))


def _filled(path: str, parts: Mapping[str, str]) -> str:
    """An address: what is not in the world is looked for all the same."""
    return re.sub(r"\{(\w+)(:path)?\}", lambda found: parts.get(found[1], "none"), path)


async def _measure(url: str, size: Size, rounds: int, only: str) -> list[Page]:
    app, broker = Faena("shop", url), redis.Redis.from_url(url, protocol=2)
    async with app:
        world = World(app, size)
        await world.build()
        served = dashboard(app, access=Access(), environment="bench", api_rate="1000000/min")
        broker.config_set("slowlog-log-slower-than", 0)
        broker.config_set("slowlog-max-len", _KEPT)
        pages = [one for one in _pages(world) if one.path == BASELINE or only in one.path]
        async with await _owner(served) as client:
            asking = Asking(client, broker, (await app.runtime()).engine.wire)
            for number in range(rounds + 1):
                await world.be_served()
                print(f"round {number} of {rounds}", file=sys.stderr)
                for page in random.sample(pages, len(pages)):
                    await asking.ask(page)
        await served.close()
    broker.close()
    return pages


async def _owner(served: Dashboard) -> httpx.AsyncClient:
    """A browser in which an owner has signed in."""
    gate = (await served.site()).gate
    owner = Account(name="owner", role=Role.OWNER, sees_payloads=True)
    await gate.accounts.add_user(owner, "a long word 7")
    caller = Caller(name="owner", role=Role.OWNER, sees_payloads=True, via="session")
    secret = await gate.sessions.begin(caller)
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(served, raise_app_exceptions=False),
        base_url="http://faena.test",
        cookies={PLAIN_COOKIE: secret},
        timeout=60,
    )


def _percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def _is_over(page: Page, baseline: Page) -> bool:
    """Whether it misses a goal, the p95 less what any request costs."""
    beside = page.ms(0.95) - baseline.ms(0.95)
    return page.status >= 300 or beside > GOAL_MS or page.slowest.ms > CALL_GOAL_MS


def _table(pages: Sequence[Page], about: str) -> Table:
    table = Table(title=about)
    for head in (
        "address",
        "first",
        "p50 ms",
        "p95 ms",
        "cpu ms",
        "KB",
        "calls",
        "slowest call",
        "ms",
        "max",
    ):
        table.add_column(head, justify="left" if head in {"address", "slowest call"} else "right")
    table.add_column("")
    baseline = pages[0]
    for page in pages:
        slowest = page.slowest
        table.add_row(
            page.path,
            f"{page.asked[0].ms:.0f}",
            f"{page.ms(0.5):.1f}",
            f"{page.ms(0.95):.1f}",
            f"{page.cpu_ms:.1f}",
            f"{page.asked[-1].size / 1024:.0f}",
            str(page.calls),
            slowest.name,
            f"{slowest.ms:.2f}",
            f"{page.worst_ms:.2f}",
            str(page.status) * (page.status != 200) + " over" * _is_over(page, baseline),
        )
    return table


def _figures(page: Page) -> dict[str, object]:
    return {
        "first_ms": round(page.asked[0].ms, 2),
        "p50_ms": round(page.ms(0.5), 2),
        "p95_ms": round(page.ms(0.95), 2),
        "cpu_ms": round(page.cpu_ms, 2),
        "bytes": page.asked[-1].size,
        "calls": page.calls,
        "slowest_call": page.slowest.name,
        "slowest_call_ms": round(page.slowest.ms, 3),
        "worst_call_ms": round(page.worst_ms, 3),
        "status": page.status,
    }


def main() -> int:
    """Measure and print; 1 when a page misses a goal or does not answer."""
    parser = argparse.ArgumentParser(
        prog="./dev bench web",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--quick", action="store_true", help="100,000 jobs, 1,000 tenants, 5 rounds"
    )
    parser.add_argument("--queues", type=int, default=100, help="default: 100")
    parser.add_argument("--jobs", type=int, help="default: 1,000,000")
    parser.add_argument("--tenants", type=int, help="default: 10,000")
    parser.add_argument("--rounds", type=int, help="default: 20")
    parser.add_argument("--only", default="", metavar="TEXT", help="addresses with this text")
    parser.add_argument("--json", action="store_true", help="end stdout with one JSON object")
    given = parser.parse_args()
    jobs = given.jobs or (100_000 if given.quick else 1_000_000)
    tenants = given.tenants or (1_000 if given.quick else 10_000)
    rounds = given.rounds or (5 if given.quick else 20)
    size = Size(given.queues, jobs, tenants)
    if min(*size, rounds) < 1:
        parser.error("--queues, --jobs, --tenants and --rounds must be at least 1")
    with (
        tempfile.TemporaryDirectory(prefix="faena-bench-") as scratch,
        running_server(Path(scratch)) as server,
    ):
        load = os.getloadavg()[0]
        about = f"Valkey {server.version()}, {machine()}, load {load:.1f}"
        pages = asyncio.run(_measure(server.url, size, rounds, given.only))
    title = f"{size.queues} queues, {size.jobs:,} jobs, {size.tenants:,} tenants; {about}"
    Console(stderr=given.json, width=None if sys.stdout.isatty() else 140).print(
        _table(pages, title)
    )
    if given.json:
        figures = {page.path: _figures(page) for page in pages}
        print(json.dumps({"about": about, **size._asdict(), "pages": figures}))
    return int(any(_is_over(page, pages[0]) for page in pages))


if __name__ == "__main__":
    sys.exit(main())
