"""A crowd of virtual users, seen from the program that has sent it."""

from __future__ import annotations

import asyncio
import sys
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from apps.load.crowd_plan import CrowdPlan, Done, Sample, Told
from apps.load.figure import at_percent

_LONGEST_LINE: Final = 1 << 26


class CrowdFailed(Exception):
    """The process of the users ended too early; its last words are the message."""


@dataclass(slots=True)
class Seen:
    """Everything that a crowd has told."""

    users: int = 0
    most_users: int = 0
    samples: list[Sample] = field(default_factory=list[Sample])
    done: list[Done] = field(default_factory=list[Done])
    lags_ms: list[float] = field(default_factory=list[float])
    endings: Counter[str] = field(default_factory=Counter[str])
    crowded: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    """The number of users at instants of the monotonic clock."""

    def add(self, told: Told) -> None:
        """Keep what was told."""
        self.users, self.most_users = told.users, max(self.most_users, told.users)
        self.crowded.append((time.monotonic(), told.users))
        self.samples += told.samples
        self.done += told.done
        self.lags_ms += told.lags_ms
        self.endings.update(one.ending for one in told.done)

    def of(self, name: str) -> list[Sample]:
        """Requests of one name."""
        return [one for one in self.samples if one.name == name]

    def users_at(self, instant: float) -> int:
        """How many there were."""
        found = bisect_right(self.crowded, (instant, 0))
        return self.crowded[min(found, len(self.crowded) - 1)][1] if self.crowded else 0

    def indexes(self, group: str, *endings: str) -> set[int]:
        """Errands of a group that ended so."""
        return {one.errand for one in self.done if one.group == group and one.ending in endings}

    @property
    def turned_away(self) -> int:
        """Answers that said: not now."""
        return sum(one.status in (429, 503) for one in self.samples)

    @property
    def unanswered(self) -> int:
        """Requests without an answer."""
        return sum(one.status == 0 for one in self.samples)

    @property
    def delay(self) -> str:
        """What the users' own process was late by."""
        return (
            f"p50 {at_percent(self.lags_ms, 50):.1f} ms, p99 {at_percent(self.lags_ms, 99):.1f} ms"
        )


async def send_crowd(plan: CrowdPlan, look: Callable[[Seen], None]) -> Seen:
    """Let a crowd do its errands in a process of its own; `look` is called a few times a second."""
    seen = Seen()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "apps.load.crowd_process"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_LONGEST_LINE,
        start_new_session=True,
    )
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise CrowdFailed("its pipes are missing")
    words = asyncio.create_task(process.stderr.read())
    try:
        process.stdin.write(f"{plan.to_json()}\n".encode())
        async for line in process.stdout:
            seen.add(Told.from_json(line))
            look(seen)
        if await process.wait():
            raise CrowdFailed(_last(await words))
        return seen
    finally:
        process.stdin.close()
        if process.returncode is None:
            process.kill()
            await process.wait()
        await words


def _last(words: bytes) -> str:
    lines = words.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
