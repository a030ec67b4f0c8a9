"""The model of exchange."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from faena.engine.scripts import Claim, Exchanged, Settlement, Turn
from faena.outcomes import Buried, Cancelled, Completed, Limited, Released, Retried, Snoozed
from tests.properties import late
from tests.properties.intake import OVERTAKEN, is_overtaken
from tests.properties.model import FINISHED, Job, Lease, World
from tests.properties.ring import FULL, QUANTUM, Control, Visit

SECOND = 1_000_000
PRESENCE_US = 30 * SECOND


def exchange(world: World, caller: str, worker: str, turn: Turn) -> Exchanged | str:
    last = world.calls.get(caller)
    if last is not None and last[0] == turn.call:
        return _again(world, last[1], turn.call)
    if is_overtaken(world, caller, turn.call):
        return OVERTAKEN
    lost = _settle(world, turn.settled)
    _rescue(world)
    _promote_due(world)
    _prune_all(world, is_sweep=turn.is_sweep)
    if world.laned():
        world.ring.unpark_due(world.now, is_sweep=turn.is_sweep)
    grant, gate, opens_at = _allowed(world, turn.want)
    overdue: list[Job] = []
    claimed = _claim(world, grant, worker, turn.call, overdue)
    late.end(world, overdue, worker)
    ahead = (gate, opens_at, bool(overdue))
    answer = _look_ahead(world, turn.want, len(claimed), *ahead)
    if turn.is_sweep:
        presence = max(2 * world.need("lease_us"), 2 * turn.next_sweep_us, PRESENCE_US)
        world.workers[worker] = world.now + presence
        world.workers = {name: at for name, at in world.workers.items() if at > world.now}
    answer = answer._replace(lost=lost, claimed=[_as_claim(world.jobs[job]) for job in claimed])
    world.calls[caller] = (turn.call, (answer, claimed))
    return answer


def _again(world: World, record: tuple[Exchanged, Sequence[str]], lease: str) -> Exchanged:
    answer, claimed = record
    held = [world.jobs[job] for job in claimed if holds(world, job, lease)]
    claimed_at = answer.claimed_at if held else world.now
    claims = [_as_claim(job) for job in held]
    return answer._replace(now=world.now, claimed=claims, claimed_at=claimed_at)


def holds(world: World, job: str, lease: str) -> bool:
    known = world.jobs.get(job)
    return known is not None and known.lease is not None and known.lease.id == lease


def _as_claim(job: Job) -> Claim:
    assert job.lease is not None
    lease, history = job.lease, (job.attempts, job.losses, job.changed_priority)
    return Claim(job.id, lease.id, job.spec, lease.score, *history, expires_at=job.expires or 0)


# -- settling -----------------------------------------------------------------------------------


def _settle(world: World, settled: Sequence[Settlement]) -> list[str]:
    """Completions come first, those without a result before the others; each state in turn."""
    plain = [one for one in settled if one.outcome == Completed()]
    kept = [one for one in settled if isinstance(one.outcome, Completed) and one not in plain]
    others = [one for one in settled if not isinstance(one.outcome, Completed)]
    valid = [one for one in (*plain, *kept, *others) if holds(world, one.id, one.lease)]
    ended = _Ended()
    for one in valid:
        job = world.jobs[one.id]
        keeps_place = one in others and job.chain is not None
        score = job.lease.score if job.lease and keeps_place else job.kept_score
        state = _end(world, job, one)
        ended.add(job, state)
        is_lowered = isinstance(one.outcome, Released) and one.outcome.priority > 0
        if state in ("dead", "cancelled") or job.state == "delayed" or is_lowered:
            job.kept_score = score
        match one.outcome:
            case Limited(scope="tenant", delay_us=us) if job.lane and job.state == "ready":
                ended.held.append((job.lane, world.now + us))
            case _:
                pass
    _close(world, ended)
    return [one.id for one in (*plain, *kept, *others) if one not in valid]


@dataclass
class _Ended:
    """Jobs whose leases have ended, by the state that finishes them."""

    finished: dict[str, list[Job]] = field(default_factory=lambda: {one: [] for one in FINISHED})
    others: list[Job] = field(default_factory=list)
    held: list[tuple[str, int]] = field(default_factory=list)

    def add(self, job: Job, state: str | None) -> None:
        (self.finished[state] if state else self.others).append(job)
        if state:
            job.state = "ending"


def _close(world: World, ended: _Ended) -> None:
    """Turns pass on, then lanes are held and freed, then claims pass on."""
    finished = [job for state in FINISHED for job in ended.finished[state]]
    later = [job for job in ended.others if job.state == "delayed" and "pass" in world.conf]
    for job in (*finished, *later):
        world.pass_turn(job)
    for lane, until in ended.held:
        world.ring.hold(lane, until, world.now)
    lanes = [job.lane for job in (*finished, *ended.others) if job.lane]
    world.ring.free_ended(lanes, world.now)
    for state in FINISHED:
        for job in ended.finished[state]:
            world.finish(job, state)


def _end(world: World, job: Job, ending: Settlement) -> str | None:
    """Ends a lease; returns the state of a job that is finished by it."""
    lease, job.lease = job.lease, None
    assert lease is not None
    match ending.outcome:
        case Limited(scope="queue", delay_us=delay_us):
            _extend_hold(world, world.now + delay_us)
        case _:
            pass
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
            if job.expires is not None and job.expires <= world.now + delay_us:
                job.tell("error", late.words(late.NOT_AGAIN, "", world.now))
                return "cancelled"
            world.move(job, "delayed", world.now + delay_us)
        case Snoozed(delay_us=delay_us):
            world.move(job, "delayed", world.now + delay_us)
        case Limited(scope="tenant", delay_us=delay_us) if job.lane is None:
            world.move(job, "delayed", world.now + delay_us)
        case Released(priority=priority) if priority:
            world.stand(job, lease.score + _change_priority(world, job, priority))
        case Limited() | Released():
            world.stand(job, lease.score)
        case Buried(has_run=has_run):
            _fail(job, ending, attempts=int(has_run))
            return "dead"
        case Cancelled():
            _fail(job, ending)
            return "cancelled"
    return None


def _change_priority(world: World, job: Job, priority: int) -> int:
    """How far behind it stands then; a chain keeps its order."""
    steps, job.changed_priority = priority - job.priority, priority
    return 0 if job.chain else steps * world.need("age_step_us")


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
    ended = _Ended()
    for job in world.those("running"):
        if job.score <= world.now:
            _lose(world, job)
            is_dead = job.losses >= world.need("max_deliveries")
            state = "cancelled" if job.is_stopping else "dead" if is_dead else None
            ended.add(job, state)
    for job in ended.others:
        world.stand(job, job.score)
    _close(world, ended)


def _lose(world: World, job: Job) -> None:
    lease, job.lease = job.lease, None
    assert lease is not None
    job.losses += 1
    job.tell(
        "error",
        f'{{"name":"WorkerLost","message":"worker {lease.worker} died or froze with the job, '
        f'delivery {job.losses}","code":"WORKER_LOST","worker":"{lease.worker}",'
        f'"started_at":{lease.claimed_at},"at":{world.now}}}',
    )
    job.score = lease.score


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
        if max(0, room) < grant:
            grant, gate, opens_at = max(0, room), "limit", at
    return min(grant, want), gate, opens_at


def _room(world: World, most: int, per: int) -> tuple[int, float]:
    """How many more the window takes, and when again; an empty one fills with this claim."""
    entries = world.windows.get(per, [])
    while entries and entries[0][0] <= world.now - per:
        entries.pop(0)
    opens_at = (entries[0][0] if entries else world.now) + per
    return most - sum(number for _, number in entries), opens_at


def _claim(world: World, grant: int, worker: str, lease: str, overdue: list[Job]) -> list[str]:
    claimed = _pop_ready(world, grant, overdue) if grant else []
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


def _pop_ready(world: World, number: int, overdue: list[Job]) -> list[Job]:
    """In order, or by turns where some have a lane: those without one join theirs first."""
    if not world.laned():
        return late.sift(world, world.those("ready"), number, overdue)
    for job in world.those("ready"):
        if not job.lane:
            world.share_lane(job)
            world.stand(job, job.score)
    popped: list[Job] = []

    def visit(lane: str, turn: float, most: int) -> Visit | float:
        return _visit(world, Visit(lane, turn, most), sum(job.lane == lane for job in popped))

    def take(visit: Visit) -> tuple[int, bool]:
        gone = [*popped, *overdue]
        waiting = [job for job in world.ready_in(visit.lane) if job not in gone]
        live = late.sift(world, waiting, visit.share, overdue)
        popped.extend(live)
        number = len(live)
        is_empty = all(job in popped or job in overdue for job in waiting)
        for most, per in _limits(world, visit.control) if number else []:
            entries = world.ring.entries(visit.lane, per, world.now)
            _spend(entries, most, per, (world.now, number), buckets=100, is_ordered=True)
            world.ring.windows[f"claims:{per}{visit.lane}"] = entries
        return number, is_empty

    quantum = 1 if "fifo" in world.conf else max(1, min(QUANTUM, math.ceil(number / 3)))
    world.ring.serve(number, quantum, visit, take)
    return popped


def _visit(world: World, visit: Visit, claimed: int) -> Visit | float:
    """With what the lane may be given, or the instant to look at it again."""
    control = visit.control = world.ring.control(visit.lane, world.now)
    own = control or {}
    if "held_until" in own:
        return own["held_until"] or FULL
    visit.weight = own.get("weight", 1)
    most = own.get("max_running", world.number("tenant_max_running"))
    if most is not None:
        running = sum(job.state == "running" for job in world.live(visit.lane)) + claimed
        visit.room = max(0, min(visit.room, int(most) - running))
        if not visit.room:
            return own.get("ends_at", FULL) if "max_running" in own else FULL
    opens_at = FULL
    for limit in _limits(world, control):
        room, at = world.ring.window_room(visit.lane, limit, world.now)
        if room < visit.room:
            visit.room, opens_at = max(0, room), at
    return visit if visit.room else min(opens_at, own.get("ends_at", FULL))


def _limits(world: World, control: Control | None) -> list[tuple[int, int]]:
    text = (control or {}).get("limits", world.conf.get("tenant_limits", ""))
    return [(int(most), int(per)) for most, per in (word.split("/") for word in text.split())]


def _spend(
    entries: list[tuple[int, int]],
    most: int,
    per: int,
    entry: tuple[int, int],
    buckets: int = 1000,
    *,
    is_ordered: bool = False,
) -> None:
    """A large window has so many buckets, each leaving with its youngest claim."""
    width = per / buckets
    now, number = entry
    last = entries[-1][0] if entries else 0
    if most > buckets and last // width == now // width:
        _, before = entries.pop()
        now, number = max(last, now), before + number
    entries.append((max(last, now) if is_ordered else now, number))


def _look_ahead(
    world: World, want: int, claimed: int, gate: str, opens_at: float | None, is_cut: bool
) -> Exchanged:
    laned, ready = world.laned(), len(world.those("ready"))
    waiting = is_cut or bool(world.ring.turns) or ready > laned
    gate = "" if is_cut else gate
    has_more = waiting and not gate
    world.is_awake = (world.is_awake or has_more) and waiting
    instants = [jobs[0].score for state in ("delayed", "running") if (jobs := world.those(state))]
    if waiting and opens_at is not None:
        instants.append(opens_at)
    instants += [until for until in world.ring.parked.values() if until < FULL]
    soonest = min(instants, default=math.inf)
    next_at = 0 if soonest == math.inf else max(int(soonest), world.now)
    if not next_at and not waiting and not world.laned():
        world.clock.pop("expires_from", None)
    has_more = has_more and (is_cut or claimed == want)
    return Exchanged(world.now, next_at, gate, has_more, False, [], [], world.now)
