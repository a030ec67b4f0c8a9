"""What a queue is, in plain Python: the engine must agree with it after every step.

A `World` is one queue. Jobs carry their own facts and counters; nothing is stored in columns here,
so the model cannot share a mistake of layout with the scripts. `enqueue` is in `intake.py`,
`exchange` in `turn.py`, everything else in `desk.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.properties.facts import facts_of
from tests.properties.ring import FULL, Ring

FINISHED = ("completed", "dead", "cancelled")
WAITING = ("ready", "delayed", "blocked")
STATES = (*WAITING, "running", *FINISHED)
KEPT = {"error": 20, "log": 100}
PER_LIVE_JOB = 1_000_000
"""A lane's count: so much for a live job, and one more when it runs."""


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
    is_in_tail: bool = False
    """Blocked in its chain, and not behind the job whose claim it follows."""
    kept_score: float | None = None
    """Its place in its chain, to which it comes back."""
    expires: int | None = None
    lane: str | None = field(init=False)
    chain: str | None = field(init=False)

    def __post_init__(self) -> None:
        facts = facts_of(self.spec)
        self.lane, self.chain = facts.get("lane"), facts.get("chain")

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
            "e": self.expires,
            "s": None if self.kept_score is None else f"{self.kept_score:.17g}",
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
    records: dict[str, tuple[str, str, str, str]] = field(default_factory=dict)
    calls: dict[str, tuple[str, Any]] = field(default_factory=dict)
    clock: dict[str, int] = field(default_factory=dict)
    ring: Ring = field(default_factory=Ring)
    heads: dict[str, str] = field(default_factory=dict)
    """Chain and the job whose turn it is."""
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
        """A job comes up: it is ready, or blocked in its chain behind the one whose turn it is."""
        score = self.place(stamp, job)
        if job.chain:
            score = stamp if job.kept_score is None else job.kept_score
        if job.chain and self.heads.setdefault(job.chain, job.id) != job.id:
            self.move(job, "blocked", score)
            job.is_in_tail = True
            return
        if not job.lane and not job.chain and self.laned():
            self.share_lane(job)
        self.stand(job, score)

    def share_lane(self, job: Job) -> None:
        job.lane, job.spec = "@", job.spec[:3] + b" lane=@" + job.spec[3:]

    def stand(self, job: Job, score: float) -> None:
        self.move(job, "ready", score)
        job.is_in_tail = False
        if job.lane:
            self.ring.enter(job.lane)

    def fresh_stamp(self, job: Job) -> int:
        """Where a job stands that comes up now: in a chain behind all that have come so far."""
        if not job.chain:
            return self.now
        self.clock["stamp"] = max(self.clock.get("stamp", 0), self.now) + 1
        return self.clock["stamp"]

    def leave(self, job: Job) -> None:
        """A waiting job leaves the place it stands in, and is nowhere until it is moved."""
        was_ready, job.state, job.is_in_tail = job.state == "ready", "ending", False
        if was_ready and job.lane and not self.ready_in(job.lane):
            self.ring.quit(job.lane)

    def pass_turn(self, job: Job) -> bool:
        """A job has no use for its chain's turn; whether another is ready in its place."""
        if not job.chain or self.heads.get(job.chain) != job.id:
            return False
        tail = self.tail(job.chain)
        if not tail:
            del self.heads[job.chain]
            return False
        self.heads[job.chain] = tail[0].id
        self.stand(tail[0], tail[0].score)
        return True

    def ready_in(self, lane: str) -> list[Job]:
        return [job for job in self.those("ready") if job.lane == lane]

    def tail(self, chain: str) -> list[Job]:
        return [job for job in self.those("blocked") if job.is_in_tail and job.chain == chain]

    def live(self, lane: str) -> list[Job]:
        states = (*WAITING, "running")
        return [job for job in self.jobs.values() if job.lane == lane and job.state in states]

    def laned(self) -> int:
        return sum(job.lane is not None for job in self.those("ready"))

    def note_laned(self) -> None:
        """At the end of a call, where it has changed."""
        if self.laned() != self.clock.get("laned", 0):
            self.clock["laned"] = self.laned()

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
            self.make_ready(follower, self.fresh_stamp(follower))
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
        found += [job.expires for job in self.jobs.values() if job.expires]
        found += [entries[0][0] + per for per, entries in self.windows.items() if entries]
        found += [until for _, until in self.throttles.values()]
        found += [int(job.score) + age for state, age in ages if age for job in self.those(state)]
        found.append(self.clock.get("prune_at", 0))
        found += [int(until) for until in self.ring.parked.values() if until < FULL]
        for control in self.ring.controls.values():
            found += [int(control.get(name, 0)) for name in ("ends_at", "held_until")]
        return sorted({at for at in found if at > self.now})

    # -- what must be on the server ---------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """The contents of every key but records of calls, events and counters."""
        found: dict[str, Any] = {
            "conf": self.conf | {"edited": " ".join(sorted(self.edited))},
            "clock": self.clock | self._window_sums() | self._virtual(),
            "specs": {job.id: job.spec for job in self.jobs.values()},
            "marks": {job.id: mark for job in self.jobs.values() if (mark := job.mark())},
            "leases": {job.id: _record(job, job.lease) for job in self.jobs.values() if job.lease},
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
        found |= self._lanes()
        found |= {f"info:{job.id}": job.info for job in self.jobs.values()}
        found |= {f"unique:{mode}:{unique}": job for (mode, unique), job in self.claims.items()}
        for unique, (job, until) in self.throttles.items():
            found[f"unique:throttle:{unique}"] = f"{job} {until}"
        for per, entries in self.windows.items():
            found[f"window:{per}"] = [f"{instant} {number}" for instant, number in entries]
        fields = ("status", "owner", "blob", "token")
        for name, record in self.records.items():
            found[f"idem:{name}"] = dict(zip(fields, record, strict=True))
        return {name: content for name, content in found.items() if content}

    def _virtual(self) -> dict[str, float]:
        return {"virtual": self.ring.virtual} if self.ring.virtual else {}

    def _lanes(self) -> dict[str, Any]:
        ring, lanes = self.ring, {job.lane for job in self.jobs.values() if job.lane}
        found: dict[str, Any] = {
            "ring": sorted(ring.turns.items(), key=_by_score),
            "parked": sorted(ring.parked.items(), key=_by_score),
            "debts": sorted(ring.debts.items(), key=_by_score),
            "tenants": ring.controls,
            "heads": self.heads,
            "lanes": {lane: count for lane in lanes if (count := self._count(lane))},
        }
        for lane in lanes:
            found[f"lane:{lane}"] = [(job.id, job.score) for job in self.ready_in(lane)]
        for chain in self.heads:
            found[f"tail:{chain}"] = [(job.id, job.score) for job in self.tail(chain)]
        for name, entries in ring.windows.items():
            found[name] = [_sum(entries), *(word for entry in entries for word in entry)]
        return found

    def _count(self, lane: str) -> str:
        live = self.live(lane)
        running = sum(job.state == "running" for job in live)
        return str(PER_LIVE_JOB * len(live) + running) if live else ""

    def _window_sums(self) -> dict[str, int]:
        return {f"window:{per}": _sum(entries) for per, entries in self.windows.items()}


def _record(job: Job, lease: Lease) -> tuple[Any, ...]:
    places = [f"{name}={of}" for name in ("lane", "chain") if (of := getattr(job, name))]
    return lease.id, lease.claimed_at, lease.worker, lease.score, *places


def _sum(entries: list[tuple[int, int]]) -> int:
    return sum(number for _, number in entries)


def _by_score(entry: tuple[str, float]) -> tuple[float, bytes]:
    return entry[1], entry[0].encode()
