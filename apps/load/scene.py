"""What every scenario gets: the stage, sizes, a screen to tell; and how it waits for the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from apps.load.audit import Books
from apps.load.crowd_plan import Sample
from apps.load.figure import Findings, Line, at_percent
from apps.stage.stage import Stage

_LOOK_EVERY_S: Final = 0.5
_PATIENCE_S: Final = 90.0
"""How long nothing may move before the rest is taken for stuck."""
_ENDLESS: Final = frozenset({"scheduler", "cleanup", "reconciliation"})
"""Queues that schedules fill: they are never empty for long."""
_LEFT: Final = """
    SELECT (SELECT count(*) FROM faena.outbox),
        count(*) FILTER (WHERE status IN ('pending', 'sending')),
        count(*) FILTER (WHERE status = 'issued')
    FROM campotech.invoices
"""
_ENDED: Final = """
    SELECT queue, task, tenant, state, attempts, enqueued_at, started_at, finished_at,
        wait_us / 1e6::float8
    FROM faena.history WHERE finished_at >= %s AND finished_at < %s
"""


class Screen(Protocol):
    """Who shows how it goes."""

    def say(self, line: str) -> None:
        """One line about something that happened."""

    def begin(self, name: str, seconds: float) -> None:
        """A part that takes about so long."""

    def show(self, facts: Mapping[str, str]) -> None:
        """How it is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of everything."""

    scale: float
    """Of the specification's times."""
    organizations: int = 60
    users: int = 1_000
    """The most at once; other numbers of users follow."""
    rows: int = 500_000
    """Jobs that `partitions` fills in."""
    speed: float = 600.0
    """Of business time: limits of minutes let so much more through."""
    seed: int = 1

    def crowd(self, users: int) -> int:
        """So many users of the thousand that the specification has."""
        return max(1, round(users * self.users / 1_000))

    def seconds(self, minutes: float) -> float:
        """A time of the specification."""
        return minutes * 60 * self.scale


class Settled(NamedTuple):
    """How it ended."""

    seconds: float
    left: int
    """Jobs, and rows of the outbox, that were still there when nothing moved any more."""

    def judge(self, findings: Findings) -> None:
        """What is accepted must come to its end."""
        findings.none("left undone", self.left, "jobs that nothing moves any more")


class Left(NamedTuple):
    """What is still to be done."""

    outbox: int
    pending: int
    issued: int


class Ended(NamedTuple):
    """A job that has come to its end."""

    queue: str
    task: str
    tenant: str | None
    state: str
    attempts: int
    enqueued_at: Any
    started_at: Any
    finished_at: Any
    wait_s: float | None


@dataclass(slots=True, kw_only=True)
class Scene:
    """Where a scenario plays."""

    stage: Stage
    sizes: Sizes
    screen: Screen
    directory: Path
    """For its files."""
    books: Books = field(init=False)

    def __post_init__(self) -> None:
        """Open the books."""
        self.books = Books(self.stage)

    async def left(self) -> Left:
        """What is still to be done about invoices."""
        (row,) = await self.stage.rows(_LEFT)
        return Left(*row)

    async def live(self) -> dict[str, int]:
        """Jobs of each queue that are not over."""
        queues = self.stage.system.queues.values()
        return {one.name: (await one.overview()).live for one in queues}

    async def ended(self, since: Any, until: Any) -> list[Ended]:
        """Jobs that ended in a time, by the history."""
        return [Ended(*row) for row in await self.stage.rows(_ENDED, since, until)]

    async def now(self) -> Any:
        """The database's clock, which is that of the history."""
        ((at,),) = await self.stage.rows("SELECT now()")
        return at

    async def settle(self) -> Settled:
        """Until all that was accepted is done and noted, or nothing moves any more."""
        began = moved = time.monotonic()
        undone = 0
        before: object = None
        while time.monotonic() - moved < _PATIENCE_S:
            self.stage.crew.check()
            left, live = await self.left(), await self.live()
            waiting = sum(count for name, count in live.items() if name not in _ENDLESS)
            self.screen.show(
                {
                    "invoices without CAE": f"{left.pending:,}",
                    "with CAE": f"{left.issued:,}",
                    "jobs": f"{waiting:,}",
                    "outbox": f"{left.outbox:,}",
                }
            )
            undone = waiting + left.pending + left.outbox
            entries = (await self.stage.system.pg.history.view()).entries
            if not undone and not entries:
                break
            if (now := (left, waiting, entries)) != before:
                before, moved = now, time.monotonic()
            await asyncio.sleep(_LOOK_EVERY_S)
        return Settled(time.monotonic() - began, undone)


class Curves:
    """Collects curves while a scenario runs."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._points: dict[str, list[tuple[float, float]]] = {}

    @property
    def began(self) -> float:
        """Second 0, by the monotonic clock."""
        return self._began

    def note(self, label: str, value: float) -> None:
        """A value as it is now."""
        self._points.setdefault(label, []).append((time.monotonic() - self._began, value))

    def last(self, label: str) -> float:
        """The newest value of a curve; 0 before the first."""
        points = self._points.get(label)
        return points[-1][1] if points else 0.0

    def line(self, label: str) -> Line:
        """One curve."""
        return Line(label, self._points.get(label, []))


def by_second(label: str, samples: Sequence[Sample], began: float) -> Line:
    """The p95 of the requests that were made in each second."""
    seconds: dict[int, list[float]] = {}
    for one in samples:
        seconds.setdefault(int(one.at - began), []).append(one.ms)
    return Line(label, [(second, at_percent(ms, 95)) for second, ms in sorted(seconds.items())])


async def looking(look: Callable[[], Awaitable[object]], every_s: float = 1.0) -> None:
    """Look again and again, until cancelled."""
    while True:
        await look()
        await asyncio.sleep(every_s)


@asynccontextmanager
async def beside(*works: Coroutine[Any, Any, object]) -> AsyncGenerator[None]:
    """Have some work done until the block ends; what fails there is raised then."""
    tasks = [asyncio.create_task(one) for one in works]
    try:
        yield
    finally:
        for one in tasks:
            one.cancel()
        endings = await asyncio.gather(*tasks, return_exceptions=True)
    for one in endings:
        if isinstance(one, Exception):
            raise one
