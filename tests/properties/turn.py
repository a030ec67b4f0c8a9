"""The model of exchange."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from faena.engine.scripts import Claim, Exchanged, Settlement, Turn
from faena.outcomes import Buried, Cancelled, Completed, Limited, Released, Retried, Snoozed
from tests.properties.intake import OVERTAKEN, is_overtaken
from tests.properties.model import FINISHED, Job, Lease, World

SECOND = 1_000_000
PRESENCE_US = 30 * SECOND


def exchange(world: World, caller: str, worker: str, turn: Turn) -> Exchanged | str:
    last = world.calls.get(caller)
    if last is not None and last[0] == turn.call:
        return _again(world, last[1], turn.call)
    if is_overtaken(world, caller, turn.call):
        return OVERTAKEN
    lost = _settle(world, turn.settled)
    _promote_due(world)
    _rescue(world)
    _prune_all(world, is_sweep=turn.is_sweep)
    grant, gate, opens_at = _allowed(world, turn.want)
    claimed = _claim(world, grant, worker, turn.call)
    answer = _look_ahead(world, turn.want, len(claimed), gate, opens_at)
    if turn.is_sweep:
        presence = max(2 * world.need("lease_us"), PRESENCE_US)
        world.workers[worker] = world.now + presence
        world.workers = {name: at for name, at in world.workers.items() if at > world.now}
    answer = answer._replace(lost=lost, claimed=[_as_claim(world.jobs[job]) for job in claimed])
    world.calls[caller] = (turn.call, (answer, claimed))
    return answer


def _again(world: World, record: tuple[Exchanged, Sequence[str]], lease: str) -> Exchanged:
    answer, claimed = record
    held = [world.jobs[job] for job in claimed if holds(world, job, lease)]
    return answer._replace(now=world.now, claimed=[_as_claim(job) for job in held])


def holds(world: World, job: str, lease: str) -> bool:
    known = world.jobs.get(job)
    return known is not None and known.lease is not None and known.lease.id == lease


def _as_claim(job: Job) -> Claim:
    assert job.lease is not None
    lease, history = job.lease, (job.attempts, job.losses, job.changed_priority)
    return Claim(job.id, lease.id, job.spec, lease.score, *history)


# -- settling -----------------------------------------------------------------------------------


def _settle(world: World, settled: Sequence[Settlement]) -> list[str]:
    """Completions without a result come first; each state is filled in turn."""
    plain = [one for one in settled if one.outcome == Completed()]
    others = [one for one in settled if one.outcome != Completed()]
    lost: list[str] = []
    ended: dict[str, list[Job]] = {state: [] for state in FINISHED}
    valid = [one for one in (*plain, *others) if holds(world, one.id, one.lease)]
    lost = [one.id for one in (*plain, *others) if one not in valid]
    for one in valid:
        job = world.jobs[one.id]
        state = _end(world, job, one)
        if state is not None:
            ended[state].append(job)
    for state in FINISHED:
        for job in ended[state]:
            world.finish(job, state)
    return lost


def _end(world: World, job: Job, ending: Settlement) -> str | None:
    """Ends a lease; returns the state of a job that is finished by it."""
    lease, job.lease = job.lease, None
    assert lease is not None
    if isinstance(ending.outcome, Limited):
        _extend_hold(world, world.now + ending.outcome.delay_us)
    match ending.outcome:
        case Completed(result=result):
            job.result = result if world.keeps("completed") else b""
            return "completed"
        case Retried() | Buried() | Cancelled() | Snoozed() | Limited() | Released() if (
            job.is_stopping
        ):
            _fail(job, ending)
            return "cancelled"
        case Retried(delay_us=delay_us):
            _fail(job, ending)
            world.move(job, "delayed", world.now + delay_us)
        case Snoozed(delay_us=delay_us):
            world.move(job, "delayed", world.now + delay_us)
        case Limited() | Released():
            world.move(job, "ready", lease.score)
        case Buried(has_run=has_run):
            _fail(job, ending, attempts=int(has_run))
            return "dead"
        case Cancelled():
            _fail(job, ending)
            return "cancelled"
    return None


def _fail(job: Job, ending: Settlement, attempts: int = 1) -> None:
    job.attempts += attempts
    error = getattr(ending.outcome, "error", None)
    if error is not None:
        job.tell("error", msgspec.json.encode(error).decode())


def _extend_hold(world: World, until: int) -> None:
    known = world.holds.get("rate_limited")
    if known is None or 0 < known[0] < until:
        world.holds["rate_limited"] = (until, "handler", world.now)


# -- housekeeping -------------------------------------------------------------------------------


def _promote_due(world: World) -> None:
    for job in world.those("delayed"):
        if job.score <= world.now:
            world.make_ready(job, int(job.score))


def _rescue(world: World) -> None:
    ended: dict[str, list[Job]] = {"dead": [], "cancelled": []}
    for job in world.those("running"):
        if job.score <= world.now:
            _lose(world, job)
            if job.is_stopping:
                ended["cancelled"].append(job)
            elif job.losses >= world.need("max_deliveries"):
                ended["dead"].append(job)
    for state, jobs in ended.items():
        for job in jobs:
            world.finish(job, state)


def _lose(world: World, job: Job) -> None:
    lease, job.lease = job.lease, None
    assert lease is not None
    job.losses += 1
    job.tell(
        "error",
        f'{{"name":"WorkerLost","message":"worker {lease.worker} died or froze with the job, '
        f'delivery {job.losses}","code":"WORKER_LOST","worker":"{lease.worker}",'
        f'"claimed_at":{lease.claimed_at},"at":{world.now}}}',
    )
    world.move(job, "ready", lease.score)


def _prune_all(world: World, *, is_sweep: bool) -> None:
    if world.clock.get("prune_at", 0) <= world.now or is_sweep:
        for state in FINISHED:
            prune(world, state)
        world.clock["prune_at"] = world.now + SECOND
    else:
        most = world.number("completed_count")
        if most is not None and len(world.those("completed")) > most:
            prune(world, "completed")


def prune(world: World, state: str, most: int = 100) -> None:
    """By count, else by age, else by bytes; at most so many."""
    for job in _overdue(world, state)[:most]:
        world.drop(job)


def _overdue(world: World, state: str) -> list[Job]:
    jobs = world.those(state)
    most, age = world.number(f"{state}_count"), world.number(f"{state}_us")
    if most is not None and len(jobs) > most:
        return jobs[: len(jobs) - most]
    old = [job for job in jobs if age is not None and job.score <= world.now - age]
    if old:
        return old
    most = world.number(f"{state}_bytes")
    if most is None:
        return []
    excess = world.clock.get(f"{state}_bytes", 0) - most
    heavy: list[Job] = []
    for job in jobs:
        if excess <= 0:
            break
        heavy.append(job)
        excess -= job.size if job.score >= world.clock[f"{state}_since"] else 0
    return heavy


# -- gates and claims -----------------------------------------------------------------------------


def _allowed(world: World, want: int) -> tuple[int, str, float | None]:
    world.holds = {
        reason: hold for reason, hold in world.holds.items() if hold[0] == 0 or hold[0] > world.now
    }
    if world.holds:
        ends = {reason: hold[0] or math.inf for reason, hold in world.holds.items()}
        reason = max(ends, key=lambda one: ends[one])
        return 0, f"held {reason}", ends[reason]
    grant, gate, opens_at = max(want, 1), "", None  # who wants none hears of a gate too
    most = world.number("max_running")
    if most is not None and most - len(world.those("running")) < grant:
        grant, gate = max(0, most - len(world.those("running"))), "max_running"
    for most, per in world.limits:
        room, at = _room(world, most, per)
        if room < grant:
            grant, gate, opens_at = max(0, room), "limit", at
    return min(grant, want), gate, opens_at


def _room(world: World, most: int, per: int) -> tuple[int, float]:
    """How many more the window takes, and when again; an empty one fills with this claim."""
    entries = world.windows.get(per, [])
    while entries and entries[0][0] <= world.now - per:
        entries.pop(0)
    opens_at = (entries[0][0] if entries else world.now) + per
    return most - sum(number for _, number in entries), opens_at


def _claim(world: World, grant: int, worker: str, lease: str) -> list[str]:
    claimed = world.those("ready")[:grant]
    for job in claimed:
        job.lease = Lease(lease, world.now, worker, job.score)
        world.move(job, "running", world.now + world.need("lease_us"))
        if job.claim and job.claim[0] == "waiting":
            world.give_up_claim(job)
    if claimed:
        world.granted.append((world.now, len(claimed)))
        for most, per in world.limits:
            _spend(world.windows.setdefault(per, []), most, per, (world.now, len(claimed)))
    return [job.id for job in claimed]


def _spend(entries: list[tuple[int, int]], most: int, per: int, entry: tuple[int, int]) -> None:
    """A large window has a thousand buckets, each leaving with its youngest claim."""
    width = per / 1000
    now, number = entry
    if most > 1000 and entries and entries[-1][0] // width == now // width:
        instant, before = entries.pop()
        now, number = max(instant, now), before + number
    entries.append((now, number))


def _look_ahead(
    world: World, want: int, claimed: int, gate: str, opens_at: float | None
) -> Exchanged:
    waiting = bool(world.those("ready"))
    has_more = waiting and not gate
    world.is_awake = (world.is_awake or has_more) and waiting
    instants = [jobs[0].score for state in ("delayed", "running") if (jobs := world.those(state))]
    if waiting and opens_at is not None:
        instants.append(opens_at)
    soonest = min(instants, default=math.inf)
    next_at = 0 if soonest == math.inf else max(int(soonest), world.now)
    return Exchanged(world.now, next_at, gate, has_more and claimed == want, [], [])
