"""A redrive of a hundred thousand dead jobs, as the server feels it: the time of every slice.

Between any two slices a loop of additions runs that touches no data. What happens to it, the
machine does. The whole redrive is done several times, each on a fresh server: what a slice takes
every time is the script's doing (a table that grows, garbage that is collected), what it takes once
is not. So the row to judge is the one with the best time of each slice.
"""

from __future__ import annotations

import itertools
import secrets
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import redis

from bench.script_meter import Figures
from bench.server import running_server
from faena.engine import Address, Engine, Wire
from faena.engine.calls.deadletter import SLICE, DeskCalls, RedriveFilter, RedriveRecord
from faena.engine.envelope import seal
from faena.engine.scripts import Settlement, Turn
from faena.engine.settings import declaration
from faena.options import Priority, QueueOptions, Retain
from faena.outcomes import Buried, DeathNote, ErrorRecord
from faena.producing.batcher import CallIds

QUEUE: Final = "dead"
DEAD: Final = 100_000
TIMES: Final = 3
BODY: Final = b'{"task":"send","payload":{"text":"' + b"x" * 160 + b'"}}'
LOOP: Final = "local sum = 0 for i = 1, 100000 do sum = sum + i end return sum"

_AT_ONCE: Final = 100
_LOGGED: Final = 1_000_000
_SLOW_US: Final = 60
_NEVER: Final = 2**53
_ERROR: Final = ErrorRecord(name="ReadTimeout", message="no answer", code="ETIMEDOUT", attempt=1)
_NOTE: Final = DeathNote("send", "", "ReadTimeout", "ETIMEDOUT", "0123456789ab", "no answer")


async def measure_redrives() -> list[Figures]:
    """Slices as they were and at their best, and the loops between them."""
    slices, loops = list[list[int]](), list[list[int]]()
    for number in range(TIMES):
        print(f"redrive of {DEAD:,} dead jobs, {number + 1} of {TIMES}", file=sys.stderr)
        with tempfile.TemporaryDirectory() as scratch, running_server(Path(scratch)) as server:
            for all_of, times in zip((slices, loops), await _measure(server.url), strict=True):
                all_of.append(times)
    return [
        _figures(f"redrive, {SLICE} a slice", [*itertools.chain(*slices)]),
        _figures(f"  best of {TIMES} times", [min(same) for same in zip(*slices, strict=True)]),
        _figures("(loop between them)", [*itertools.chain(*loops)]),
        _figures(f"  best of {TIMES} times", [min(same) for same in zip(*loops, strict=True)]),
    ]


def _figures(name: str, times: Sequence[int]) -> Figures:
    ordered = sorted(times)
    ranks = [ordered[int(part * (len(ordered) - 1))] for part in (0.5, 0.99, 0.999, 1.0)]
    return Figures(name, len(ordered), *map(float, ranks))


async def _measure(url: str) -> tuple[list[int], list[int]]:
    """The server's microseconds of every slice and of every loop, in order."""
    wire = Wire(Address.parse(url))
    engine = Engine(wire, namespace="bench")
    engine.know(QUEUE, declaration(QueueOptions(retain=Retain(dead_count=None))))
    try:
        await _bury(engine)
        redrive, log = _Redrive(engine), _Log(url)
        await redrive.begin()
        log.begin()
        while await redrive.advance():
            log.client.eval(LOOP, 0)
        log.read()
        log.client.close()
    finally:
        await wire.close()
    return log.slices, log.loops


async def _bury(engine: Engine) -> None:
    calls, spec, death = CallIds(), seal(10, {}, BODY), Buried(_ERROR, note=_NOTE)
    caller = calls()
    for start in range(0, DEAD, _AT_ONCE):
        fresh = [(f"dead{start + i:09d}", spec) for i in range(_AT_ONCE)]
        await engine.enqueue(QUEUE, caller, calls(), fresh)
        claimed = await engine.exchange(QUEUE, caller, "bench", Turn(calls(), _AT_ONCE))
        ends = [Settlement(one.id, one.lease, death) for one in claimed.claimed]
        await engine.exchange(QUEUE, caller, "bench", Turn(calls(), 0, ends))


class _Log:
    """The server's slow log, told that calls are slow which all slices and loops take longer than.

    Those inside scripts would be logged too, and logging them would take longer than they do.
    """

    def __init__(self, url: str) -> None:
        self.client: Any = redis.Redis.from_url(url, protocol=2)
        self.slices: list[int] = []
        self.loops: list[int] = []

    def begin(self) -> None:
        self.client.config_set("slowlog-max-len", _LOGGED)
        self.client.config_set("slowlog-log-slower-than", _SLOW_US)
        self.client.slowlog_reset()

    def read(self) -> None:
        for entry in reversed(self.client.slowlog_get(_LOGGED)):
            if entry["command"].startswith(b"FCALL"):
                self.slices.append(entry["duration"])
            elif entry["command"].startswith(b"EVAL"):
                self.loops.append(entry["duration"])


class _Redrive:
    """Goes on slice by slice."""

    def __init__(self, engine: Engine) -> None:
        self._calls = DeskCalls(engine)
        self._id = secrets.token_hex(6)
        self._ids = CallIds()
        self._caller = self._ids()
        self._fresh = (f"again{number:09d}" for number in itertools.count())

    async def begin(self) -> None:
        about = RedriveFilter(error="ETIMEDOUT")
        record = RedriveRecord(filter=about, by="bench", reason="", until_at=_NEVER)
        await self._calls.redrives(QUEUE, "begin", self._id, record)
        await self._calls.redrives(QUEUE, "go", self._id)

    async def advance(self) -> bool:
        """One slice; whether there are more."""
        fresh = list(itertools.islice(self._fresh, SLICE))
        call = (self._caller, self._ids())
        step = await self._calls.redrive(QUEUE, self._id, call, Priority.HIGH, fresh)
        if step is None:
            raise RuntimeError("the redrive is gone")
        return step.state == "running"
