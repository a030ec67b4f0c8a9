"""What ledgers and faults say together, without asking the engine anything.

    lost         accepted, and its last attempt never ended
    doubled      one delivery (job, attempt, losses) whose handler began more than once
    unexplained  a job that ran more often than its attempts and the faults that hit it explain
    inversions   ordered jobs of one key that began out of order, or ran at the same time
    excess       claims above a limit's rate, and runs above max_running

A run lasts from its claim to its settlement. One that a fault has hit counts as over from then on,
for its lease may be another's: what a frozen process still does is not held against order and
bounds, nor what it begins when it wakes up with a claim of long ago.
"""

from __future__ import annotations

import math
import time
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests._support.chains import Delivery, key_of, overlaps, overtakings
from tests._support.ledger import Entry
from tests.chaos.shop import MAX_RUNNING, QUEUES, RATE, RATE_NS, planned

FOUND = ("lost", "doubled", "unexplained", "inversions", "excess")
NOBODY = 0
"""The process of a fault that must cost no run: requests are sent again."""
_UNSETTLED_NS = 5_000_000_000
"""For so long after a handler's end a fault may still keep it from being settled."""
_ASKING = 2
"""Calls of a worker, for one queue, that may be answered once more after a fault."""


@dataclass
class Fault:
    """Something that was done to a process, or (without one) to all of them."""

    kind: str
    pid: int | None
    began_ns: int
    ended_ns: float = math.inf


class Run(NamedTuple):
    """One call of a handler."""

    job: str
    delivery: tuple[str, int, int]
    pid: int
    claimed_ns: int
    began_ns: int
    ended_ns: float
    is_hit: bool


@dataclass
class Verdict:
    """What was found in one queue: the jobs concerned, by what is wrong with them."""

    accepted: int = 0
    found: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in FOUND})

    def add(self, other: Verdict) -> None:
        self.accepted += other.accepted
        for kind, jobs in other.found.items():
            self.found[kind] += jobs

    @property
    def counts(self) -> dict[str, int]:
        return {"accepted": self.accepted} | {kind: len(self.found[kind]) for kind in FOUND}


def has_ended(entry: Entry) -> bool:
    """Whether a line tells of the end of a job's last attempt."""
    return (entry.attempt, entry.kind) == planned(entry.job)


def judge(
    accepted: Iterable[str], entries: Sequence[Entry], faults: Sequence[Fault]
) -> dict[str, Verdict]:
    """The verdict on each queue, once nothing runs any more."""
    jobs, runs = defaultdict[str, set[str]](set), defaultdict[str, list[Run]](list)
    for job in accepted:
        jobs[job.partition(".")[0]].add(job)
    for run in runs_of(entries, faults):
        runs[run.job.partition(".")[0]].append(run)
    ended = {entry.job for entry in entries if entry.kind != "start" and has_ended(entry)}
    verdicts = {queue: Verdict(len(jobs[queue])) for queue in QUEUES}
    for queue, verdict in verdicts.items():
        verdict.found["lost"] = sorted(jobs[queue] - ended)
        verdict.found["doubled"] = _doubled(runs[queue])
        verdict.found["unexplained"] = _unexplained(runs[queue])
    verdicts["ordered"].found["inversions"] = _inversions(runs["ordered"])
    limited = runs["limited"]
    verdicts["limited"].found["excess"] = [*_too_fast(limited, faults), *_too_many(limited)]
    return verdicts


def runs_of(entries: Iterable[Entry], faults: Sequence[Fault]) -> list[Run]:
    """By the instant they began; the server's instants of claims on this machine's clock."""
    offset_ns = time.monotonic_ns() - time.time_ns()
    begun: dict[tuple[int, str, int, int], Entry] = {}
    runs: list[Run] = []
    for entry in sorted(entries, key=lambda entry: entry.at_ns):
        name = (entry.pid, entry.job, entry.attempt, entry.losses)
        if entry.kind == "start":
            if name in begun:
                runs.append(_run(begun[name], math.inf, faults, offset_ns))
            begun[name] = entry
        elif name in begun:
            runs.append(_run(begun.pop(name), entry.at_ns, faults, offset_ns))
    runs += [_run(entry, math.inf, faults, offset_ns) for entry in begun.values()]
    return sorted(runs, key=lambda run: run.began_ns)


def _run(start: Entry, ended_ns: float, faults: Sequence[Fault], offset_ns: int) -> Run:
    claimed_ns = int(start.detail) * 1000 + offset_ns
    hits = [
        fault.began_ns
        for fault in faults
        if fault.pid in {None, start.pid}
        and fault.began_ns <= ended_ns + _UNSETTLED_NS
        and fault.ended_ns >= claimed_ns
    ]
    ended_ns = min([ended_ns, *hits])
    delivery = (start.job, start.attempt, start.losses)
    return Run(start.job, delivery, start.pid, claimed_ns, start.at_ns, ended_ns, bool(hits))


def _doubled(runs: Iterable[Run]) -> list[str]:
    begun = Counter(run.delivery for run in runs)
    return [f"{job} attempt {a}/{b}" for (job, a, b), times in begun.items() if times > 1]


def _unexplained(runs: Iterable[Run]) -> list[str]:
    ran, hit = Counter[str](), Counter[str]()
    for run in runs:
        ran[run.job] += 1
        hit[run.job] += run.is_hit
    return [job for job, times in ran.items() if times > planned(job)[0] + hit[job]]


def _inversions(runs: Iterable[Run]) -> list[str]:
    found = [
        Delivery(run.job, run.delivery[1], run.began_ns, run.ended_ns, "")
        for run in runs
        if run.ended_ns > run.began_ns
    ]
    late = [f"{job} before {other}" for job, other in overtakings(found, key_of)]
    return late + [f"{one.job} beside {other.job}" for one, other in overlaps(found, key_of)]


def _too_fast(runs: Sequence[Run], faults: Iterable[Fault]) -> list[str]:
    unsure = _answered_again(runs, faults)
    timed = (run for run in runs if (run.pid, run.claimed_ns) not in unsure)
    claims = sorted((run.claimed_ns, run.job) for run in timed)
    windows = zip(claims, claims[RATE:], strict=False)
    return [f"{job} by rate" for (first, _), (last, job) in windows if last - first < RATE_NS]


def _answered_again(runs: Iterable[Run], faults: Iterable[Fault]) -> set[tuple[int, int]]:
    """Claims whose first answer may have been lost; the second tells its own, later instant."""
    claims = defaultdict[int, set[int]](set)
    for run in runs:
        claims[run.pid].add(run.claimed_ns)
    unsure: set[tuple[int, int]] = set()
    for fault in faults:
        for pid in claims.keys() if fault.pid in {None, NOBODY} else claims.keys() & {fault.pid}:
            instants = sorted(claims[pid])
            first = bisect(instants, fault.began_ns)
            unsure |= {(pid, instant) for instant in instants[first : first + _ASKING]}
    return unsure


def _too_many(runs: Iterable[Run]) -> list[str]:
    found: list[str] = []
    open_until: list[float] = []
    for run in runs:
        open_until = [until for until in (*open_until, run.ended_ns) if until > run.began_ns]
        if len(open_until) > MAX_RUNNING and run.ended_ns > run.began_ns:
            found.append(f"{run.job} by max_running")
    return found
