"""What must hold of lanes and chains after any call, whatever was called before.

Every check reads one dump and yields what is wrong with it; none knows what was done.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests._support.dead_index import wrong
from tests.properties.model import PER_LIVE_JOB, STATES
from tests.properties.sight import Sight


def broken(sight: Sight) -> list[str]:
    """Every promise that this dump breaks."""
    checks = (
        *(_lanes_stand_once, _lanes_hold_the_ready, _lanes_are_counted, _chains, _jobs_add_up),
        _desk,
    )
    return [problem for check in checks for problem in check(sight)]


def _desk(sight: Sight) -> Iterator[str]:
    """Every dead job is found at the desk, and nothing else is."""
    yield from wrong(sight.keys)


def _lanes_stand_once(sight: Sight) -> Iterator[str]:
    """A lane with ready jobs is in the ring or parked; one without is in neither."""
    filled, ring, parked = sight.sets("lane:"), sight.scores("ring"), sight.scores("parked")
    for lane in {*filled, *ring, *parked}:
        places = (lane in ring) + (lane in parked)
        if places != (lane in filled):
            yield f"lane {lane} has {len(filled.get(lane, ()))} ready and stands in {places} places"
    parked = set(parked) - set(sight.hash("moves"))  # it is not throttled: it is elsewhere
    if set(sight.hash("throttled")) - set(sight.hash("moves")) != parked:
        yield f"lanes {sorted(parked)} are parked, {sight.hash('throttled')} are told to be since"
    for lane in set(sight.scores("debts")) & set(ring):
        yield f"lane {lane} is in the ring and has a debt beside it"


def _lanes_hold_the_ready(sight: Sight) -> Iterator[str]:
    expected: dict[str, dict[str, float]] = {}
    for job in sight.jobs.values():
        if job.lane and job.state == "ready":
            expected.setdefault(job.lane, {})[job.id] = job.score
    if expected != sight.sets("lane:"):
        yield f"lanes must hold {expected}, hold {sight.sets('lane:')}"
    laned = sum(map(len, expected.values()))
    if laned != sight.hash("clock").get("laned", 0):
        yield f"laned must be {laned}, is {sight.hash('clock').get('laned')}"


def _lanes_are_counted(sight: Sight) -> Iterator[str]:
    expected: dict[str, int] = {}
    for job in sight.live():
        if job.lane:
            worth = PER_LIVE_JOB + (job.state == "running")
            expected[job.lane] = expected.get(job.lane, 0) + worth
    counted = {lane: int(text) for lane, text in sight.hash("lanes").items()}
    if counted != expected:
        yield f"lanes must count {expected}, count {counted}"


def _chains(sight: Sight) -> Iterator[str]:
    named = {job.chain for job in sight.live() if job.chain}
    for chain in {*named, *sight.hash("heads"), *sight.sets("tail:")}:
        yield from (f"chain {chain}: {problem}" for problem in _chain(sight, chain))


def _chain(sight: Sight, chain: str) -> Iterator[str]:
    """One job has the turn while any is ready, runs or waits behind it; the others are blocked."""
    members, followers = sight.live(chain=chain), sight.followers()
    head, tail = sight.hash("heads").get(chain), sight.sets("tail:").get(chain, {})
    active = [job.id for job in members if job.state in ("ready", "running")]
    if active not in ([], [head]):
        yield f"{active} are ready or run, and {head} has the turn"
    if head is None and tail:
        yield f"{tail} are blocked, and nobody has the turn"
    waiting = [job.id for job in members if job.state == "delayed"]
    if head is not None and head not in (*active, *waiting):
        yield f"{head} has the turn and no use for it"
    blocked = {
        job.id: job.score for job in members if job.state == "blocked" and job.id not in followers
    }
    if blocked != tail:
        yield f"{blocked} must be its tail, {tail} are"


def _jobs_add_up(sight: Sight) -> Iterator[str]:
    """No job is in two states or lost, and blocked ones wait for somebody."""
    clock = sight.hash("clock")
    standing = sum(len(sight.keys.get(state, ())) for state in STATES)
    balance = clock.get("enqueued", 0) - clock.get("removed", 0)
    balance += clock.get("moved_in", 0) - clock.get("moved_out", 0)
    if not balance == standing == len(sight.jobs) == len(sight.hash("specs")):
        yield f"{balance} were taken in and not removed, {standing} stand in states"
    if set(sight.hash("leases")) != set(sight.scores("running")):
        yield "every running job must have a lease, and no other"
    unchained = [job.id for job in sight.live() if job.state == "blocked" and not job.chain]
    for job in set(unchained) - sight.followers():
        yield f"{job} is blocked by nobody"
