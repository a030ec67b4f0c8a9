"""The model of enqueue."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from faena.engine.scripts import CREATED, Answer
from tests.properties.facts import facts_of
from tests.properties.late import note_expiry
from tests.properties.model import WAITING, Job, World
from tests.properties.ring import Control

MAX_DELAY_US = 5_000_000
OVERTAKEN = "overtaken"
_COMMON_LANE = re.compile(rb"^(...) lane=@(?=[ \n])")
"""Producers write the lane first; a queue without lanes knows the same job without it."""


def is_overtaken(world: World, caller: str, call: str) -> bool:
    last = world.calls.get(caller)
    return last is not None and (len(call), call) < (len(last[0]), last[0])


def enqueue(
    world: World, caller: str, call: str, jobs: Sequence[tuple[str, bytes]]
) -> list[Answer] | str:
    last = world.calls.get(caller)
    if last is not None and last[0] == call:
        return list(last[1])
    if is_overtaken(world, caller, call):
        return OVERTAKEN
    answers = _Intake(world).take(jobs)
    world.calls[caller] = (call, tuple(answers))
    return answers


@dataclass
class _Intake:
    world: World
    stamp: int = 0
    depth: int = 0
    seen: dict[str, bytes] = field(default_factory=dict)
    controls: dict[str, Control] = field(default_factory=dict)
    """What was decided for the lanes of this batch, each looked up once."""
    has_controls: bool | None = None

    def take(self, jobs: Sequence[tuple[str, bytes]]) -> list[Answer]:
        world = self.world
        self.stamp = max(world.clock.get("stamp", 0), world.now)
        self.depth = sum(job.state in (*WAITING, "running") for job in world.jobs.values())
        self.seen = {job.id: job.spec for job in world.jobs.values()}
        before = len(self.seen)
        answers = [self._answer(job, spec) for job, spec in jobs]
        if len(self.seen) > before:
            world.clock["stamp"] = self.stamp
        return answers

    def _answer(self, job: str, spec: bytes) -> Answer:
        if job in self.seen:
            is_same = _is_same(self.seen[job], spec)
            state = self.world.state_of(job) or "removed"
            return Answer("DUPLICATE" if is_same else "CONFLICT", job, state)
        facts = facts_of(spec)
        pressed = self._press(facts.get("lane"))
        if pressed.code.endswith("OVERLOADED"):
            return pressed
        mode = facts.get("mode")
        if mode is None:
            self._add(Job(job, spec, "", 0), facts)
            return pressed
        if mode == "throttle":
            return self._throttle(job, spec, facts, pressed)
        return self._unique(job, spec, facts, pressed)

    def _press(self, lane: str | None) -> Answer:
        world = self.world
        pressed = self._judge(self.depth, world.number("soft"), world.number("hard"))
        if lane is None or pressed.code == "OVERLOADED":
            return pressed
        soft, hard = world.number("tenant_soft"), world.number("tenant_hard")
        if soft is None and hard is None and not self._has_controls():
            return pressed
        own = self._control(lane).get("size")
        hard = hard if own is None else int(own)
        is_soft = soft is not None and pressed is CREATED and (hard is None or soft < hard)
        judged = self._judge(len(world.live(lane)), soft if is_soft else None, hard)
        return pressed if judged is CREATED else judged._replace(code=f"TENANT_{judged.code}")

    def _has_controls(self) -> bool:
        if self.has_controls is None:
            self.has_controls = bool(self.world.ring.controls)
        return self.has_controls

    def _control(self, lane: str) -> Control:
        if lane not in self.controls:
            self.controls[lane] = self.world.ring.control(lane, self.world.now) or {}
        return self.controls[lane]

    def _judge(self, depth: int, soft: int | None, hard: int | None) -> Answer:
        longest = self.world.number("max_delay_us")
        longest = MAX_DELAY_US if longest is None else longest
        if hard is not None and depth >= hard:
            return Answer("OVERLOADED", longest, depth)
        if soft is not None and depth >= soft:
            share = (depth - soft) / (hard - soft) if hard is not None else 1
            return Answer("SLOWED", int(share * longest), depth)
        return CREATED

    def _add(self, job: Job, facts: dict[str, str], delay: int | None = None) -> None:
        world = self.world
        delay = int(facts.get("delay", 0)) if delay is None else delay
        self._admit(job)
        if delay > 0:
            first = next(iter(world.those("delayed")), None)
            world.move(job, "delayed", world.now + delay)
            if world.those("delayed")[0] is not first:
                world.is_awake = True
        else:
            self.stamp += 1
            world.make_ready(job, self.stamp)
            world.is_awake = True

    def _admit(self, job: Job) -> None:
        lasts = facts_of(job.spec).get("lasts")
        job.expires = self.world.now + int(lasts) if lasts else None
        note_expiry(self.world, job)
        self.world.jobs[job.id] = job
        self.seen[job.id] = job.spec
        self.depth += 1
        self.world.count("enqueued", 1)

    def _throttle(self, job: str, spec: bytes, facts: dict[str, str], answer: Answer) -> Answer:
        world, unique = self.world, facts["unique"]
        holder, until = world.throttles.get(unique, ("", 0))
        if until > world.now:
            return Answer("DUPLICATE", holder, world.state_of(holder) or "removed")
        world.throttles[unique] = (job, world.now + int(facts["ttl"]))
        self._add(Job(job, spec, "", 0), facts)
        return answer

    def _unique(self, job: str, spec: bytes, facts: dict[str, str], answer: Answer) -> Answer:
        world, claim = self.world, (facts["mode"], facts["unique"])
        new = Job(job, spec, "", 0, claim=claim)
        holder = world.jobs.get(world.claims.get(claim, ""))
        if holder is not None and _is_duplicate(claim[0], holder):
            return Answer("DUPLICATE", holder.id, holder.state)
        if holder is not None and _may_be_followed(claim[0], holder):
            return self._follow(new, facts, holder, answer)
        if holder is not None and _may_be_replaced(facts, holder):
            answer = self._replace(holder, answer)
        world.claims[claim] = job
        delay = facts.get("delay") or (facts.get("ttl", "0") if claim[0] == "debounce" else "0")
        self._add(new, facts, int(delay))
        return answer

    def _follow(self, job: Job, facts: dict[str, str], leader: Job, answer: Answer) -> Answer:
        former = self.world.follower_of(leader)
        if former is not None:
            answer = self._replace(former, answer)
        leader.follower = job.id
        self._admit(job)
        self.world.move(job, "blocked", self.world.now + int(facts.get("delay", 0)))
        return answer

    def _replace(self, job: Job, answer: Answer) -> Answer:
        self.world.leave(job)
        self.world.is_awake |= self.world.pass_turn(job)
        self.world.forget(job)
        self.depth -= 1
        return answer._replace(replaced=job.id)


def _is_duplicate(mode: str, holder: Job) -> bool:
    if mode == "debounce":
        return False
    if mode == "last" and (holder.has_started or holder.state == "running"):
        return False
    return holder.state in WAITING or (mode == "live" and holder.state == "running")


def _may_be_followed(mode: str, holder: Job) -> bool:
    return mode == "last" and holder.state in (*WAITING, "running")


def _may_be_replaced(facts: dict[str, str], holder: Job) -> bool:
    is_spared = holder.has_started and "ttl" in facts
    return facts["mode"] == "debounce" and holder.state in WAITING and not is_spared


def _is_same(known: bytes, spec: bytes) -> bool:
    digest = facts_of(spec).get("digest")
    is_same = spec in {known, _COMMON_LANE.sub(rb"\1", known)}
    return is_same or (digest is not None and digest == facts_of(known).get("digest"))
