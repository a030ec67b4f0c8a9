"""One dump of a queue, read as jobs, lanes and chains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.properties.facts import facts_of
from tests.properties.model import STATES, WAITING

LIVE = (*WAITING, "running")


class Seen(NamedTuple):
    """A job as it stands in a dump."""

    id: str
    state: str
    score: float
    lane: str | None
    chain: str | None
    lease: str | None


@dataclass
class Sight:
    """The contents of all keys at one instant."""

    now: int
    keys: Mapping[str, Any]
    jobs: dict[str, Seen] = field(default_factory=dict)

    def __post_init__(self) -> None:
        specs = self.keys.get("specs", {})
        for state in STATES:
            for job, score in self.keys.get(state, []):
                facts, lease = facts_of(specs[job]), self.keys.get("leases", {}).get(job)
                place = facts.get("lane"), facts.get("chain")
                self.jobs[job] = Seen(job, state, score, *place, lease and lease[0])

    def hash(self, name: str) -> dict[str, Any]:
        return dict(self.keys.get(name, {}))

    def scores(self, name: str) -> dict[str, float]:
        return dict(self.keys.get(name, []))

    def sets(self, family: str) -> dict[str, dict[str, float]]:
        """The sorted sets of a family, by what they are named after."""
        found = [name for name in self.keys if name.startswith(family)]
        return {name.removeprefix(family): self.scores(name) for name in found}

    def live(self, **same: str) -> list[Seen]:
        """Live jobs of a lane or of a chain."""
        return [
            job
            for job in self.jobs.values()
            if job.state in LIVE and all(getattr(job, name) == of for name, of in same.items())
        ]

    def followers(self) -> set[str]:
        """Jobs that wait blocked for the end of another with their unique claim."""
        marks = self.hash("marks")
        found: set[str] = set()
        for leader in self.live():
            mark = marks.get(leader.id, {})
            its = marks.get(mark.get("n"), {})
            if its and (its.get("u"), its.get("m")) == (mark.get("u"), mark.get("m")):
                found.add(mark["n"])
        leaving = {lane for lane, why in self.hash("moves").items() if why.startswith("out")}
        for job in self.live():  # whose leader may have gone before
            if job.lane in leaving and marks.get(job.id, {}).get("m") == "last":
                found.add(job.id)
        found -= {job for tail in self.sets("tail:").values() for job in tail}
        return {job for job in found if job in self.jobs and self.jobs[job].state == "blocked"}

    def bound(self, lane: str, name: str) -> Any:
        """`limits` or `max_running` of a lane as they are in force: its own or the queue's."""
        control = self.hash("tenants").get(lane, {})
        is_over = control.get("ends_at", self.now + 1) <= self.now
        own = None if is_over else control.get(name)
        return own if own is not None else self.hash("conf").get(f"tenant_{name}")

    def windows(self, lane: str) -> dict[int, int]:
        """The limits in force for a lane: how long, how many."""
        words = (self.bound(lane, "limits") or "").split()
        return {int(per): int(most) for most, per in (word.split("/") for word in words)}
