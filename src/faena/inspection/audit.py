"""Checks that everything a queue has stored is consistent.

A job is in exactly one state; whatever else names it has an owner; the counters add up; every key
is in the catalogue, of its type, and has an owner or an end. Works beside running workers: a
finding is looked at a second time and reported only when it is still there. Changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from faena.engine import Engine
from faena.engine.calls.survey import FlowFacts, JobFacts, KeyFacts, LaneFacts, Survey, Totals
from faena.engine.keys import CATALOGUE, Key
from faena.states import FINISHED, State

_STATES: Final = tuple(str(state) for state in State)
_FINISHED: Final = frozenset(str(state) for state in FINISHED)
_HASHES: Final = ("leases", "marks", "results", "waiters")
_PAGE: Final = 500


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """One inconsistency: the kind and name of the object, and what is wrong."""

    kind: str  # job, lane, flow, schedule, key or total
    name: str
    problem: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.problem}"


async def audit(engine: Engine, queue: str) -> list[Violation]:
    """Every violation that was there at the second look too."""
    survey = Survey(engine, queue)
    suspected = await _look_at_all(survey)
    if not suspected:
        return []
    subjects = {(one.kind, one.name) for one in suspected}
    found = await _look_again(survey, suspected)
    return sorted(one for one in found if (one.kind, one.name) in subjects)


async def _look_at_all(survey: Survey) -> set[Violation]:
    found = set(_judge_totals(await survey.totals()))
    columns = [(state, False) for state in (*_STATES, "desk_due")]
    columns += [(name, True) for name in _HASHES]
    # heavy, and only needed to name the job that is wrong
    columns += [
        (name, True) for name in ("specs", "desk") if any(name == one.name for one in found)
    ]
    indexes: Counter[str] = Counter()
    for column, is_hash in columns:
        async for ids in survey.ids(column, is_hash=is_hash):
            found |= await _look_at_jobs(survey, ids, indexes if column == "dead" else None)
    for column, is_hash in (("lanes", True), ("ring", False), ("parked", False)):
        async for lanes in survey.ids(column, is_hash=is_hash):
            found |= await _look_at_lanes(survey, lanes)
    for column in ("flows", "flows_done"):
        async for flows in survey.ids(column, is_hash=False):
            found |= await _look_at_flows(survey, flows)
    async for schedules in survey.ids("schedule_due", is_hash=False):
        found |= await _look_at_schedules(survey, schedules)
    async for names in survey.names():
        found |= await _look_at_keys(survey, names, indexes)
    return found


async def _look_again(survey: Survey, suspected: set[Violation]) -> set[Violation]:
    found = set(_judge_totals(await survey.totals()))
    for ids in _pages(suspected, "job"):
        found |= await _look_at_jobs(survey, ids)
    for lanes in _pages(suspected, "lane"):
        found |= await _look_at_lanes(survey, lanes)
    for flows in _pages(suspected, "flow"):
        found |= await _look_at_flows(survey, flows)
    for schedules in _pages(suspected, "schedule"):
        found |= await _look_at_schedules(survey, schedules)
    for names in _pages(suspected, "key"):
        found |= await _look_at_keys(survey, names)
    return found


def _pages(suspected: set[Violation], kind: str) -> Iterator[Sequence[str]]:
    names = sorted({one.name for one in suspected if one.kind == kind})
    for start in range(0, len(names), _PAGE):
        yield names[start : start + _PAGE]


async def _look_at_jobs(
    survey: Survey, ids: Sequence[str], indexes: Counter[str] | None = None
) -> set[Violation]:
    """`indexes` counts the keys of the dead-letter desk that have the jobs."""
    if not ids:
        return set()
    found = await survey.jobs(ids)
    if indexes is not None:
        indexes.update(index for facts in found.values() for index in facts.indexes)
    return {
        Violation("job", job, problem)
        for job, facts in found.items()
        for problem in _judge_job(facts)
    }


async def _look_at_lanes(survey: Survey, lanes: Sequence[str]) -> set[Violation]:
    found = await survey.lanes(lanes) if lanes else {}
    return {
        Violation("lane", lane, problem)
        for lane, facts in found.items()
        for problem in _judge_lane(facts)
    }


async def _look_at_flows(survey: Survey, names: Sequence[str]) -> set[Violation]:
    found = await survey.flows(names) if names else {}
    return {
        Violation("flow", flow, problem)
        for flow, facts in found.items()
        for problem in _judge_flow(facts)
    }


async def _look_at_schedules(survey: Survey, names: Sequence[str]) -> set[Violation]:
    found = await survey.schedules(names) if names else {}
    problem = "is due and must have a record"
    return {
        Violation("schedule", name, problem) for name, is_there in found.items() if not is_there
    }


async def _look_at_keys(
    survey: Survey, names: Sequence[str], indexes: Counter[str] | None = None
) -> set[Violation]:
    """`indexes` are the numbers of jobs that indexes must have: those are not looked through."""
    found: set[Violation] = set()
    keys = await survey.keys(names) if names else {}
    for name, facts in keys.items():
        found |= {Violation("key", name, problem) for problem in _judge_key(name, facts)}
    found |= {one async for one in _look_at_owners(survey, keys)}
    flows = [name.partition(":")[2] for name in keys if name.startswith("flow:")]
    found |= await _look_at_flows(survey, flows)
    for name, facts in keys.items():
        is_counted = indexes is not None and facts.text == str(indexes[name])
        if name.startswith("desk:") and facts.type == "zset" and not is_counted:
            found |= {one async for one in _look_at_index(survey, name)}
    return found


async def _look_at_index(survey: Survey, name: str) -> AsyncIterator[Violation]:
    """Whoever stands in an index of the dead-letter desk has a record that says so."""
    async for ids in survey.ids(name, is_hash=False):
        jobs = await survey.jobs(ids) if ids else {}
        for job in (job for job, facts in jobs.items() if name not in facts.indexes):
            yield Violation("key", name, f"job {job} must not be in it, and is")


async def _look_at_owners(survey: Survey, keys: dict[str, KeyFacts]) -> AsyncIterator[Violation]:
    """A key that belongs to one job must have that job, and the job must know it."""
    owners = {name: _owner_of(name, facts) for name, facts in keys.items()}
    owned = {name: job for name, job in owners.items() if job is not None}
    jobs = await survey.jobs(sorted(set(owned.values()))) if owned else {}
    for name, job in owned.items():
        if not _knows(jobs[job], name):
            yield Violation("key", name, f"job {job} must own it, and does not")


def _owner_of(name: str, facts: KeyFacts) -> str | None:
    if facts.type == "none" or facts.has_ttl:
        return None
    family, _, rest = name.partition(":")
    return rest if family == "info" else facts.text if family == "unique" else None


def _knows(facts: JobFacts, name: str) -> bool:
    family, _, rest = name.partition(":")
    if family == "info":
        return bool(facts.states) and "i" in facts.mark
    claim = f"{facts.mark.get('m')}:{facts.mark.get('u')}"
    return bool(facts.states) and facts.states[0] not in _FINISHED and claim == rest


def _judge_job(facts: JobFacts) -> Iterator[str]:
    states, found_in = facts.states, facts.found_in
    if len(states) > 1:
        yield f"must be in one state, is in {' and '.join(states)}"
    if not states:
        if found_in:
            yield f"must be in a state, is only in {' and '.join(found_in)}"
        return
    state = states[0]
    if "specs" not in found_in:
        yield f"is {state} and must have a spec"
    if (state == "running") != ("leases" in found_in):
        yield f"is {state} and must{'' if state == 'running' else ' not'} have a lease"
    if "results" in found_in and state != "completed":
        yield f"is {state} and must not have a result"
    if "waiters" in found_in and state in _FINISHED:
        yield f"is {state} and must not be awaited"
    if "info" in found_in and "i" not in facts.mark:
        yield "has information that its mark does not record"
    if state == "blocked" and not facts.leader:
        yield "is blocked and must have a job to wait for"
    yield from _judge_position(facts, state)
    yield from _judge_letter(facts, state)


def _judge_letter(facts: JobFacts, state: str) -> Iterator[str]:
    """Dead jobs, and only those, are at the dead-letter desk, and found there by everything."""
    if (state == "dead") != bool(facts.status):
        yield f"is {state} and must{'' if state == 'dead' else ' not'} be at the dead-letter desk"
    for index in facts.missing if state == "dead" else ():
        yield f"is dead and must be in {index}"
    if "due" in facts.found_in and facts.status != "pending":
        yield f"is {facts.status or state} and must not be due for a retry"


def _judge_position(facts: JobFacts, state: str) -> Iterator[str]:
    """A ready job stands in its lane; of a chain one job is live and the others are behind it."""
    found_in = facts.found_in
    stands = sum(key in found_in for key in ("lane", "aside"))
    if facts.lane and stands != (state == "ready"):
        yield f"is {state} and must{'' if state == 'ready' else ' not'} be in lane {facts.lane}"
    if not facts.chain:
        return
    if "tail" in found_in and state != "blocked":
        yield f"is {state} and must not be blocked in chain {facts.chain}"
    if state in {"ready", "running"} and "head" not in found_in:
        yield f"is {state} and must have the turn of chain {facts.chain}"
    if "head" in found_in and (state in _FINISHED or state == "blocked"):
        yield f"is {state} and must not have the turn of chain {facts.chain}"


def _judge_lane(facts: LaneFacts) -> Iterator[str]:
    wanted = 1 if facts.ready else 0
    if len(facts.sets) != wanted:
        found = " and ".join(facts.sets) or "neither"
        must = f"must be in {wanted} of ring and parked, is in {found}"
        yield f"has {facts.ready} ready jobs and {must}"
    if facts.ready + facts.running > facts.live:
        yield f"has {facts.live} live jobs, but {facts.ready} ready and {facts.running} running"


def _judge_flow(facts: FlowFacts) -> Iterator[str]:
    """One that has begun is listed and stays; one that is written is not listed, and expires."""
    listed = " and ".join(facts.sets)
    if len(facts.sets) > 1:
        yield f"must be listed once, is in {listed}"
    if not facts.is_there:
        if listed:
            yield f"is in {listed} and must be there"
        return
    if facts.has_ttl and listed:
        yield f"is in {listed} and must not have a TTL"
    if not facts.has_ttl and not listed:
        yield "must have a TTL, or be in flows or flows_done"


def _judge_key(name: str, facts: KeyFacts) -> Iterator[str]:
    if facts.type == "none":  # gone since its name was read
        return
    key = catalogued(name)
    if key is None:
        yield "must be in the catalogue"
    elif facts.type != key.type:
        yield f"must be a {key.type}, is a {facts.type}"
    elif key.bound.startswith("TTL") and not facts.has_ttl:
        yield "must have a TTL"


def catalogued(name: str) -> Key | None:
    """The row of the catalogue that a key of a queue belongs to."""
    family, colon, _ = name.partition(":")
    return _ROWS.get(family + colon)


_ROWS: Final = {key.name: key for key in CATALOGUE}


def _judge_totals(totals: Totals) -> Iterator[Violation]:
    sizes, clock = totals.sizes, totals.clock
    jobs = sum(sizes[state] for state in _STATES)
    if sizes["specs"] != jobs:
        yield Violation("total", "specs", f"must be the {jobs} in states, is {sizes['specs']}")
    if sizes["leases"] != sizes["running"]:
        problem = f"must be the {sizes['running']} running, is {sizes['leases']}"
        yield Violation("total", "leases", problem)
    if sizes["desk"] != sizes["dead"]:
        yield Violation("total", "desk", f"must be the {sizes['dead']} dead, is {sizes['desk']}")
    come = clock.get("enqueued", 0) + clock.get("moved_in", 0)
    balance = come - clock.get("removed", 0) - clock.get("moved_out", 0)
    if balance != jobs:
        problem = f"enqueued less removed must be {jobs}, is {balance}"
        yield Violation("total", "conservation", problem)
    for window, number in totals.windows.items():
        if clock[window] != number:
            yield Violation("total", window, f"must add up to {number}, is {clock[window]}")
