"""The model of jobs that have expired when their turn comes: nothing counts them."""

from __future__ import annotations

from tests.properties.model import Job, World

NOT_STARTED = "it expired before it was started"
NOT_AGAIN = "it expired before it could be tried again"


def sift(world: World, jobs: list[Job], number: int, late: list[Job]) -> list[Job]:
    """The first `number` that may start; those before them that may not join `late`."""
    live: list[Job] = []
    for job in jobs:
        if len(live) == number:
            break
        (late if is_late(world, job) else live).append(job)
    return live


def is_late(world: World, job: Job) -> bool:
    return job.expires is not None and job.expires <= world.now


def end(world: World, late: list[Job], worker: str) -> None:
    """Their turns pass to the first of their chains that may start; then they are finished."""
    for job in late:
        job.state = "ending"
    heads = late
    while heads:
        heads = [after for job in heads if (after := _next_late(world, job))]
        late += heads
    for job in late:
        job.tell("error", words(NOT_STARTED, f'"worker":"{worker}",', world.now))
    for job in late:
        world.finish(job, "cancelled")


def _next_late(world: World, job: Job) -> Job | None:
    tail = world.tail(job.chain) if job.chain and world.heads.get(job.chain) == job.id else []
    if not tail or not is_late(world, tail[0]):
        world.pass_turn(job)
        return None
    assert job.chain is not None
    world.heads[job.chain] = tail[0].id
    tail[0].state, tail[0].is_in_tail = "ending", False
    return tail[0]


def words(message: str, who: str, now: int) -> str:
    return f'{{"name":"Expired","message":"{message}","code":"EXPIRED",{who}"at":{now}}}'


def note_expiry(world: World, job: Job) -> None:
    """Claims know before when no job expires."""
    if job.expires is not None:
        world.clock["expires_from"] = min(job.expires, world.clock.get("expires_from", job.expires))
