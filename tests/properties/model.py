"""What a queue is, in plain Python: the engine must agree with it after every step.

A `World` is one queue. Jobs carry their own facts and counters; nothing is stored in columns here,
so the model cannot share a mistake of layout with the scripts. `enqueue` is in `intake.py`,
`exchange` in `turn.py`, everything else in `desk.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FINISHED = ("completed", "dead", "cancelled")
WAITING = ("ready", "delayed", "blocked")
STATES = (*WAITING, "running", *FINISHED)
KEPT = {"error": 20, "log": 100}


@dataclass
class Lease:
    id: str
    claimed_at: int
    worker: str
    score: float


@dataclass
class Job:
    id: str
    spec: bytes
    state: str
    score: float
    """Where it stands in its state."""

    attempts: int = 0
    losses: int = 0
    changed_priority: int = 0
    is_stopping: bool = False
    claim: tuple[str, str] | None = None
    """Mode and hash of its unique claim."""
    follower: str | None = None
    has_info: bool = False
    info: dict[str, str] = field(default_factory=dict)
    lease: Lease | None = None
    result: bytes = b""
    is_awaited: bool = False

    @property
    def priority(self) -> int:
        return self.changed_priority or int(self.spec[:3])

    @property
    def has_started(self) -> bool:
        return bool(self.attempts or self.losses or self.follower)

    @property
    def size(self) -> int:
        return len(self.spec) + len(self.result)

    def tell(self, kind: str, text: str) -> None:
        """Append a numbered line and forget the oldest over the bound."""
        number = int(self.info.get(f"{kind}s", "0")) + 1
        self.info[f"{kind}s"] = str(number)
        self.info[f"{kind}:{number}"] = text
        self.info.pop(f"{kind}:{number - KEPT[kind]}", None)
        self.has_info = True

    def mark(self) -> dict[str, Any]:
        mode, unique = self.claim or (None, None)
        facts = {
            "a": self.attempts,
            "l": self.losses,
            "i": int(self.has_info),
            "p": self.changed_priority,
            "c": int(self.is_stopping),
            "u": unique,
            "m": mode,
            "n": self.follower,
        }
        return {name: value for name, value in facts.items() if value}


@dataclass
class World:
    conf: dict[str, str]
    now: int
    edited: set[str] = field(default_factory=set)
    jobs: dict[str, Job] = field(default_factory=dict)
    claims: dict[tuple[str, str], str] = field(default_factory=dict)
    throttles: dict[str, tuple[str, int]] = field(default_factory=dict)
    holds: dict[str, tuple[int, str, int]] = field(default_factory=dict)
    windows: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    workers: dict[str, int] = field(default_factory=dict)
    records: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    calls: dict[str, tuple[str, Any]] = field(default_factory=dict)
    clock: dict[str, int] = field(default_factory=dict)
    is_awake: bool = False
    granted: list[tuple[int, int]] = field(default_factory=list)
    """Every claim there ever was: instant and number."""
    limited_since: dict[int, int] = field(default_factory=dict)
    """For each window, how many entries of `granted` came before it was defined."""

    # -- settings -------------------------------------------------------------------------------

    def number(self, name: str) -> int | None:
        text = self.conf.get(name)
        return int(text) if text else None

    def need(self, name: str) -> int:
        return int(self.conf[name])

    @property
    def limits(self) -> list[tuple[int, int]]:
        """(max, window) of each."""
        words = self.conf.get("limits", "").split()
        pairs = [word.split("/") for word in words]
        return [(int(most), int(per)) for most, per in pairs]

    def keeps(self, state: str) -> bool:
        return self.number(f"{state}_count") != 0 and self.number(f"{state}_us") != 0

    # -- jobs -----------------------------------------------------------------------------------

    def state_of(self, job: str) -> str | None:
        return self.jobs[job].state if job in self.jobs else None

    def those(self, state: str) -> list[Job]:
        """The jobs of a state in its order."""
        found = [job for job in self.jobs.values() if job.state == state]
        return sorted(found, key=lambda job: (job.score, job.id.encode()))

    def place(self, stamp: int, job: Job) -> float:
        steps = job.priority - self.need("retry_boost") * job.attempts
        return float(stamp + steps * self.need("age_step_us"))

    def move(self, job: Job, state: str, score: float) -> None:
        job.state, job.score = state, float(score)

    def make_ready(self, job: Job, stamp: int) -> None:
        self.move(job, "ready", self.place(stamp, job))

    def count(self, name: str, number: int) -> None:
        self.clock[name] = self.clock.get(name, 0) + number

    # -- unique claims ----------------------------------------------------------------------------

    def give_up_claim(self, job: Job) -> None:
        if job.claim and self.claims.get(job.claim) == job.id:
            del self.claims[job.claim]

    def follower_of(self, job: Job) -> Job | None:
        follower = self.jobs.get(job.follower or "")
        is_ours = follower and follower.state == "blocked" and follower.claim == job.claim
        return follower if is_ours else None

    def pass_claim(self, job: Job) -> None:
        """Free the follower of a live job that ends."""
        self.give_up_claim(job)
        follower = self.follower_of(job)
        if follower is None or job.claim is None:
            return
        self.claims[job.claim] = follower.id
        if follower.score > self.now:
            follower.state = "delayed"
        else:
            self.make_ready(follower, self.now)
        self.is_awake = True

    # -- endings --------------------------------------------------------------------------------

    def finish(self, job: Job, state: str) -> None:
        """`job` has left its former state; several are finished one after the other."""
        self.pass_claim(job)
        job.lease = None
        self.move(job, state, self.now)
        if self.keeps(state):
            job.is_awaited = False
            self.weigh(job, 1)
        else:
            self.forget(job)

    def weigh(self, job: Job, sign: int) -> None:
        if self.number(f"{job.state}_bytes") is None:
            return
        is_counted = job.score >= self.clock.get(f"{job.state}_since", 0)
        self.count(f"{job.state}_bytes", sign * job.size * is_counted)

    def forget(self, job: Job) -> None:
        self.give_up_claim(job)
        del self.jobs[job.id]
        self.count("removed", 1)

    def drop(self, job: Job) -> None:
        self.weigh(job, -1)
        self.forget(job)

    def edges(self) -> list[int]:
        """The instants ahead at which something ends or opens."""
        ages = [(state, self.number(f"{state}_us")) for state in FINISHED]
        found = [
            int(job.score) for job in self.jobs.values() if job.state in ("delayed", "running")
        ]
        found += [until for until, _, _ in self.holds.values()]
        found += [entries[0][0] + per for per, entries in self.windows.items() if entries]
        found += [until for _, until in self.throttles.values()]
        found += [int(job.score) + age for state, age in ages if age for job in self.those(state)]
        found.append(self.clock.get("prune_at", 0))
        return sorted({at for at in found if at > self.now})

    # -- what must be on the server ---------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """The contents of every key but records of calls, events and counters."""
        found: dict[str, Any] = {
            "conf": self.conf | {"edited": " ".join(sorted(self.edited))},
            "clock": self.clock | self._window_sums(),
            "specs": {job.id: job.spec for job in self.jobs.values()},
            "marks": {job.id: mark for job in self.jobs.values() if (mark := job.mark())},
            "leases": {job.id: _record(job.lease) for job in self.jobs.values() if job.lease},
            "results": {job.id: job.result for job in self.jobs.values() if job.result},
            "waiters": {job.id: "1" for job in self.jobs.values() if job.is_awaited},
            "holds": {
                reason: f"{at} {by} {since}" for reason, (at, by, since) in self.holds.items()
            },
            "workers": sorted(((w, float(at)) for w, at in self.workers.items()), key=_by_score),
            "wake": [("work", 0.0)] if self.is_awake else [],
        }
        for state in STATES:
            found[state] = [(job.id, job.score) for job in self.those(state)]
        found |= {f"info:{job.id}": job.info for job in self.jobs.values()}
        found |= {f"unique:{mode}:{unique}": job for (mode, unique), job in self.claims.items()}
        for unique, (job, until) in self.throttles.items():
            found[f"unique:throttle:{unique}"] = f"{job} {until}"
        for per, entries in self.windows.items():
            found[f"window:{per}"] = [f"{instant} {number}" for instant, number in entries]
        for name, (status, owner, blob) in self.records.items():
            found[f"idem:{name}"] = {"status": status, "owner": owner, "blob": blob}
        return {name: content for name, content in found.items() if content}

    def _window_sums(self) -> dict[str, int]:
        return {
            f"window:{per}": sum(number for _, number in entries)
            for per, entries in self.windows.items()
        }


def _record(lease: Lease) -> tuple[str, int, str, float]:
    return lease.id, lease.claimed_at, lease.worker, lease.score


def _by_score(entry: tuple[str, float]) -> tuple[float, bytes]:
    return entry[1], entry[0].encode()
