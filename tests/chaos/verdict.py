"""What ledgers and faults say together, without asking the engine anything.

    lost         accepted, and its last attempt never ended
    doubled      one delivery (job, attempt, losses) whose handler began more than once
    unexplained  a job that ran more often than its attempts and the faults that hit it explain,
                 or again before the lease of a run that was lost can have ended
    inversions   ordered jobs of one key that began out of order, or ran at the same time
    excess       claims above a limit's rate, and runs above max_running

A claim is as old as `job.started_at` says, also where its first answer was lost: no claim is left
out of the rate.

A run holds its place, for order and for max_running, until its handler has ended. Only a fault can
take it away before: its process or the broker may have been unable to renew its lease. But a lease
lasts LEASE_S from its claim, renewed or not, and survives whoever holds it. So a run that a fault
has hit holds its place until then at least, whether its process is dead, frozen or well:

    until = min(end of the handler, max(first fault that hit it, claim + LEASE_S))

Past that the job may be another's, while a process that was frozen goes on, or begins what it had
claimed: it cannot know, and its broker cannot tell it. This alone is not held against anybody.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from tests._support.chain_order import Delivery, key_of, overlaps, overtakings
from tests._support.ledger import Entry
from tests.chaos.shop import LEASE_S, MAX_RUNNING, QUEUES, RATE, RATE_NS, planned

FOUND = ("lost", "doubled", "unexplained", "inversions", "excess")
NOBODY = 0
"""The process of a fault that must cost no run: requests are sent again."""
_UNSETTLED_NS = 5_000_000_000
"""For so long after a handler's end a fault may still keep it from being settled."""
_LEASE_NS = LEASE_S * 1_000_000_000


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
    claimed_ns: int
    began_ns: int
    until_ns: float
    """When it lost its place: it ended, or its lease may have been another's."""
    is_hit: bool

    @property
    def has_place(self) -> bool:
        """Whether it began while the job was certainly its own."""
        return self.began_ns < self.until_ns


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
        verdict.found["unexplained"] = [*_unexplained(runs[queue]), *_too_soon(runs[queue])]
    verdicts["ordered"].found["inversions"] = _inversions(runs["ordered"])
    limited = runs["limited"]
    verdicts["limited"].found["excess"] = [*_too_fast(limited), *_too_many(limited)]
    return verdicts


def runs_of(entries: Iterable[Entry], faults: Sequence[Fault]) -> list[Run]:
    """By the instant they began; the server's instants of claims on this machine's clock."""
    offset_ns = _offset_ns()
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


def _offset_ns() -> int:
    """From the wall's clock to the monotonic one, asked often: a process may be held up between."""
    asked = [(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(20)]
    before, wall, _ = min(asked, key=lambda one: one[2] - one[0])
    return before - wall


def _run(start: Entry, ended_ns: float, faults: Sequence[Fault], offset_ns: int) -> Run:
    claimed_ns = int(start.detail) * 1000 + offset_ns
    hits = [
        fault.began_ns
        for fault in faults
        if fault.pid in {None, start.pid}
        and fault.began_ns <= ended_ns + _UNSETTLED_NS
        and fault.ended_ns >= claimed_ns
    ]
    until_ns = min(ended_ns, max(min(hits), claimed_ns + _LEASE_NS)) if hits else ended_ns
    delivery = (start.job, start.attempt, start.losses)
    return Run(start.job, delivery, claimed_ns, start.at_ns, until_ns, bool(hits))


def _doubled(runs: Iterable[Run]) -> list[str]:
    begun = Counter(run.delivery for run in runs)
    return [f"{job} attempt {a}/{b}" for (job, a, b), times in begun.items() if times > 1]


def _unexplained(runs: Iterable[Run]) -> list[str]:
    ran, hit = Counter[str](), Counter[str]()
    for run in runs:
        ran[run.job] += 1
        hit[run.job] += run.is_hit
    return [job for job, times in ran.items() if times > planned(job)[0] + hit[job]]


def _too_soon(runs: Iterable[Run]) -> list[str]:
    """Only a lease that ran out is a loss: each takes as long as a lease from the claim before."""
    claims = sorted((run.job, run.claimed_ns, run.delivery[2]) for run in runs)
    return [
        f"{job} before a lease had ended"
        for (job, claimed_ns, losses), (other, again_ns, more) in pairwise(claims)
        if job == other and again_ns - claimed_ns < (more - losses) * _LEASE_NS
    ]


def _inversions(runs: Iterable[Run]) -> list[str]:
    found = [
        Delivery(run.job, run.delivery[1], run.began_ns, run.until_ns, "")
        for run in runs
        if run.has_place
    ]
    late = [f"{job} before {other}" for job, other in overtakings(found, key_of)]
    return late + [f"{one.job} beside {other.job}" for one, other in overlaps(found, key_of)]


def _too_fast(runs: Iterable[Run]) -> list[str]:
    claims = sorted((run.claimed_ns, run.job) for run in runs)
    windows = zip(claims, claims[RATE:], strict=False)
    return [f"{job} by rate" for (first, _), (last, job) in windows if last - first < RATE_NS]


def _too_many(runs: Iterable[Run]) -> list[str]:
    found: list[str] = []
    open_until: list[float] = []
    for run in runs:
        if run.has_place:
            open_until = [until for until in (*open_until, run.until_ns) if until > run.began_ns]
            if len(open_until) > MAX_RUNNING:
                found.append(f"{run.job} by max_running")
    return found
