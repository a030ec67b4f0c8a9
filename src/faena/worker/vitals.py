"""What a worker tells when its server asks how it is: a script's round trip, and what stands still.

The script runs twice before the broker counts as out: the first connection may be one that has died
silently, and a machine that was frozen finds its time over before the answer is read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from faena.engine import Engine
from faena.engine.calls.snapshot import read_shard
from faena.engine.wire.patience import within
from faena.errors import FaenaError
from faena.inspection.broker_info import TIME
from faena.values.shards import queue_of
from faena.worker.progress import Progress, Wait

_TRY_S: Final = 1.0
_TRIES: Final = 2
_READY: Final = "ready"


async def round_trip_ms(engine: Engine, within_s: float = _TRY_S) -> float:
    """How long a script takes, on a new connection if need be; raises if it is not run in time."""
    began = time.perf_counter()
    async with asyncio.timeout(within_s):
        with within(within_s):
            await engine.wire.run(TIME, (), (), patience_s=0)
    return (time.perf_counter() - began) * 1000


async def check_broker(engine: Engine) -> tuple[float | None, str | None]:
    """The round trip of a script, or why there is none."""
    problem = ""
    for _ in range(_TRIES):
        try:
            return await round_trip_ms(engine), None
        except TimeoutError:
            problem = problem or f"the broker did not run a script within {_TRIES * _TRY_S:g} s"
        except (FaenaError, OSError) as error:
            problem = str(error)
    return None, problem


async def stalls(engine: Engine, progress: Progress, free: Callable[[str], int]) -> tuple[str, ...]:
    """A sentence for each shard that is not served as it should be; `free` counts its slots."""
    waiting = progress.unanswered
    found = [] if waiting is None else [_unanswered(waiting)]
    for wait in progress.stalled:
        ready = await _ready(engine, wait.shard)
        if ready:
            jobs = "job is" if ready == 1 else "jobs are"
            found.append(
                f"queue {queue_of(wait.shard)}: {ready} {jobs} ready, {free(wait.shard)} slots "
                f"are free and nothing holds the queue, but this worker has claimed nothing for "
                f"{wait.seconds:.0f} s"
            )
    return tuple(found)


def _unanswered(wait: Wait) -> str:
    return (
        f"queue {queue_of(wait.shard)}: the broker has not answered an exchange for "
        f"{wait.seconds:.0f} s"
    )


async def _ready(engine: Engine, shard: str) -> int:
    """Jobs that could be claimed; 0 if that cannot be told, or a hold explains why they wait."""
    try:
        async with asyncio.timeout(_TRY_S):
            with within(_TRY_S):
                facts = await read_shard(engine, shard)
    except (TimeoutError, FaenaError, OSError):
        return 0
    return 0 if facts.holds else facts.counts[_READY]
