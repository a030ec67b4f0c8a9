"""The ready jobs of one tenant, in the order in which they start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from faena.inspection.inspector import Page
from faena.inspection.job_view import read_job
from faena.job import JobView
from faena.states import State
from faena.values.cursor import read_cursor, write_cursor

if TYPE_CHECKING:
    from faena.runtime.connections import Runtime

_START: Final = "-inf"


async def ready_jobs(
    runtime: Runtime, queue: str, lane: str, limit: int, cursor: str | None
) -> Page:
    """A page of a lane's ready jobs; those that wait for a limit of their key are left out.

    While the lane moves to another shard, those that are there already come first.
    """
    about, what = (queue, lane), f"the ready jobs of a tenant of queue {queue}"
    after = "" if cursor is None else read_cursor(cursor, about, what).score
    shards = await _shards(runtime, queue, lane)
    found: dict[str, tuple[float, str]] = {}
    for shard in shards:
        first = f"({after}" if after else _START
        flat = await runtime.engine.command(
            *("ZRANGE", shard, f"lane:{lane}", first, "+inf"),
            *("BYSCORE", "LIMIT", 0, limit, "WITHSCORES"),
        )
        for job, score in zip(flat[::2], flat[1::2], strict=True):
            found.setdefault(job.decode(), (float(score), shard))
    page = sorted(found, key=lambda job: found[job][0])[:limit]
    jobs = list[JobView]()
    for shard in shards:
        own = [job for job in page if found[job][1] == shard]
        looks = await runtime.engine.look(shard, own) if own else []
        jobs += [
            read_job(queue, job, look)
            for job, look in zip(own, looks, strict=True)
            if look is not None and look.state == State.READY.value
        ]
    jobs.sort(key=lambda job: page.index(job.id))
    more = write_cursor(about, repr(found[page[-1]][0]), page[-1]) if len(page) >= limit else None
    return Page(jobs=tuple(jobs), cursor=more)


async def ready_number(runtime: Runtime, queue: str, lane: str) -> int:
    """How many there are."""
    shards = await _shards(runtime, queue, lane)
    return sum([await runtime.engine.command("ZCARD", one, f"lane:{lane}") for one in shards])


async def _shards(runtime: Runtime, queue: str, lane: str) -> list[str]:
    """Where it is, and while it moves where it was."""
    table = await runtime.routers.of(queue).look()
    return [*dict.fromkeys(one.shard_of(queue, lane) for one in (table, table.former()))]
