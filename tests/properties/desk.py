"""The model of everything an operator, a waiter or a running handler asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.properties.model import FINISHED, WAITING, World
from tests.properties.ring import Ring
from tests.properties.turn import holds, prune


def renew(world: World, leases: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    lost = [job for job, lease in leases if not holds(world, job, lease)]
    kept = [world.jobs[job] for job, lease in leases if holds(world, job, lease)]
    for job in kept:
        world.move(job, "running", world.now + world.need("lease_us"))
    return lost, [job.id for job in kept if job.is_stopping]


def note(world: World, job: str, lease: str, progress: bytes, lines: Sequence[str]) -> bool:
    if not holds(world, job, lease):
        return False
    known = world.jobs[job]
    known.has_info = True
    if progress:
        known.info["progress"] = progress.decode()
    for line in lines:
        known.tell("log", line)
    return True


def cancel(world: World, ids: Sequence[str]) -> list[str]:
    answers: list[str] = []
    ending: list[str] = []
    for job in ids:
        state = world.state_of(job)
        if job in ending:
            answers.append("cancelled")
        elif state in WAITING:
            answers.append("cancelled")
            ending.append(job)  # none of these is freed as another's follower
            world.leave(world.jobs[job])
            world.is_awake |= world.pass_turn(world.jobs[job])
        elif state == "running":
            world.jobs[job].is_stopping = True
            answers.append("asked")
        else:
            answers.append(state or "unknown")
    for job in ending:
        world.finish(world.jobs[job], "cancelled")
    prune(world, "cancelled", most=len(ids) + 2)
    return answers


def rerun(world: World, ids: Sequence[str]) -> list[str]:
    for job in ids:
        known = world.jobs.get(job)
        if known is not None and known.state in FINISHED:
            world.weigh(known, -1)
            known.attempts = known.losses = 0
            known.is_stopping, known.expires = False, None
            known.claim = known.follower = None
            known.result, known.kept_score = b"", None
            world.make_ready(known, world.fresh_stamp(known))
            world.is_awake = True
    return [world.state_of(job) or "unknown" for job in ids]


def promote(world: World, ids: Sequence[str]) -> list[str]:
    states = [world.state_of(job) for job in ids]
    for job in ids:
        if world.state_of(job) == "delayed":
            world.make_ready(world.jobs[job], world.now)
            world.is_awake = True
    return ["promoted" if state == "delayed" else state or "unknown" for state in states]


def change(world: World, job: str, delay_us: int | None, priority: int | None) -> str:
    known = world.jobs.get(job)
    if known is None or known.state not in ("ready", "delayed"):
        return known.state if known else "unknown"
    before = known.priority
    known.changed_priority = priority or known.changed_priority
    if delay_us:
        if known.state == "ready":
            world.leave(known)
            world.pass_turn(known)
        world.move(known, "delayed", world.now + delay_us)
    elif known.state == "delayed" and delay_us is not None:
        is_new = known.kept_score is None
        world.make_ready(known, world.fresh_stamp(known) if is_new else world.now)
    elif known.state == "ready" and not known.chain:
        known.score += (known.priority - before) * world.need("age_step_us")
    world.is_awake = True
    return known.state


def hold(world: World, reason: str, duration_us: int | None, by: str) -> bool:
    was_held = _is_held(world, reason)
    until = 0 if duration_us is None else world.now + duration_us
    world.holds[reason] = (until, by, world.now)
    return not was_held


def release(world: World, reason: str) -> bool:
    was_held = _is_held(world, reason)
    world.holds.pop(reason, None)
    world.is_awake |= was_held
    return was_held


def _is_held(world: World, reason: str) -> bool:
    until = world.holds.get(reason, (None,))[0]
    return until is not None and (until == 0 or until > world.now)


def clean(world: World, state: str, age_us: int, size: int) -> int:
    jobs = world.those(state)
    if state in FINISHED:
        jobs = [job for job in jobs if job.score <= world.now - age_us]
    jobs = jobs[:size]
    if state in WAITING:
        for job in jobs:
            world.leave(job)
        world.is_awake |= sum(world.pass_turn(job) for job in jobs) > 0
        for job in jobs:
            world.pass_claim(job)
    for job in jobs:
        world.drop(job)
    return len(jobs)


def await_job(world: World, job: str) -> str:
    state = world.state_of(job)
    if state in (*WAITING, "running"):
        world.jobs[job].is_awaited = True
    return state or "unknown"


def idem(world: World, verb: str, owner: str, blob: bytes, token: str) -> list[bytes]:
    name = "key"
    status, holder, known, last = world.records.get(name, ("", "", "", None))
    is_taken = status == "completed" or (status == "pending" and holder != owner)
    if verb == "begin" and is_taken:
        return [status.encode(), holder.encode(), known.encode()]
    if verb != "begin" and status and holder != owner:
        return [b"NOT_OWNER"]
    is_past = status == "completed" or last != token
    if verb in ("extend", "fail") and token and is_past:
        return [b"NOT_OWNER"]
    if verb == "clear":
        world.records.pop(name, None)
    if verb in ("clear", "extend") or (verb == "complete" and status == "completed"):
        return [b"OK"]
    becomes = {"begin": "pending", "complete": "completed", "fail": "failed"}[verb]
    world.records[name] = (becomes, owner, blob.decode(), token)
    return [b"began" if verb == "begin" else b"OK"]


def configure(world: World, changes: Mapping[str, str]) -> None:
    before = {per: most for most, per in world.limits}
    for name, value in changes.items():
        _set(world, name, value)
        world.edited.add(name)
    since = {
        per: at for per, at in world.limited_since.items() if (before[per], per) in world.limits
    }
    # a limit that was lowered finds its window too full, and grants nothing until it is not
    world.limited_since = {per: since.get(per, len(world.granted)) for _, per in world.limits}


def declare(world: World, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        if name not in world.edited:
            _set(world, name, value)
    world.limited_since = {per: len(world.granted) for _, per in world.limits}


def tenant(
    world: World, lane: str, changes: Mapping[str, str], by: str, duration_us: int | None
) -> tuple[dict[str, str], int, int, float | None]:
    ring = world.ring
    ring.decide(lane, world.now, by, dict(changes), duration_us)
    world.is_awake = True
    live = world.live(lane)
    control = ring.controls.get(lane, {})
    told = {name: of if isinstance(of, str) else f"{of:.17g}" for name, of in control.items()}
    running = sum(job.state == "running" for job in live)
    return told, len(live), running, ring.parked.get(lane)


def _set(world: World, name: str, value: str) -> None:
    if name in ("tenant_limits", "tenant_max_running") and value != world.conf.get(name, ""):
        world.ring.look_at_all()
        world.is_awake |= bool(world.ring.parked)
    state, _, bound = name.rpartition("_")
    if bound == "bytes" and bool(value) != (name in world.conf):
        world.clock.pop(name, None)
        world.clock.pop(f"{state}_since", None)
        if value:
            world.clock[f"{state}_since"] = world.now + 1
    if value:
        world.conf[name] = value
    else:
        world.conf.pop(name, None)


def obliterate(world: World, *, force: bool) -> str:
    """All slices at once; what has a TTL stays."""
    if world.those("running") and not force:
        return "RUNNING"
    for kept in (world.jobs, world.claims, world.holds, world.workers, world.windows):
        kept.clear()
    for kept in (world.clock, world.conf):
        kept.clear()
    world.edited.clear()
    world.heads.clear()
    world.ring = Ring(windows=world.ring.windows)
    world.is_awake = False
    return "DONE"
