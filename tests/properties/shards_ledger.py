"""What was promised of the jobs of a queue with several shards, kept apart from what scripts count.

The ledger is told what producers were answered, and looks at dumps of all shards. It knows nothing
of relocations: whatever they do, a job is in one place, and lanes keep order and bounds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from faena.sharding.routing_table import Table, read_table
from tests.properties.promises import broken
from tests.properties.sight import LIVE, Seen, Sight


@dataclass
class Entry:
    """A job that was taken in."""

    number: int
    """In which order the answers came."""
    lane: str
    chain: str | None
    is_plain: bool
    """Whether it came to the end of its chain at once, and was never brought back by hand."""
    claim: str
    """What it is the last of, where only the last one counts."""
    has_started: bool = False
    is_asked: bool = False
    """Whether it is to stop, whatever becomes of it."""
    is_removed: bool = False
    """Whether another has replaced it."""


class Rules(NamedTuple):
    """What the queue is declared with."""

    blocks: bool
    """Whether a chain waits for the retries of its first job."""
    limits: Mapping[int, int]
    """How many claims of a lane in how many microseconds."""
    max_running: int | None


class View:
    """All shards at one instant."""

    def __init__(self, queue: str, now: int, shards: Mapping[str, Mapping[str, Any]]) -> None:
        self.now = now
        self.shards = {name: Sight(now, keys) for name, keys in shards.items()}
        self.table: Table = read_table(shards.get(queue, {}).get("shards", {}))

    def jobs(self) -> Iterator[tuple[str, Seen]]:
        for shard, sight in self.shards.items():
            for job in sight.jobs.values():
                yield shard, job

    def travelling(self) -> Iterator[tuple[str, str, str]]:
        """(id, state, where to) of jobs that are in an outbox and have not arrived."""
        for shard, sight in self.shards.items():
            for to, (number, jobs) in sight.hash("transfer_out").items():
                target = self.shards.get(to)
                if number > int(target.hash("transfer_in").get(shard, 0) if target else 0):
                    yield from ((job, state, to) for job, state in jobs)

    def live(self) -> set[str]:
        """Jobs that have not ended, wherever they are."""
        seen = [(job.id, job.state) for _, job in self.jobs()]
        seen += [(job, state) for job, state, _ in self.travelling()]
        return {job for job, state in seen if state in LIVE}


class Ledger:
    """Every job that was ever answered for."""

    def __init__(self, queue: str, rules: Rules) -> None:
        self.queue = queue
        self.rules = rules
        self.entries: dict[str, Entry] = {}
        self.view = View(queue, 0, {})
        self._held_until: dict[str, int] = defaultdict(int)
        self._claims: dict[str, list[int]] = defaultdict(list)

    def take_in(self, job: str, facts: Mapping[str, str]) -> None:
        is_plain = not ({"delay", "unique"} & set(facts))
        claim = facts["unique"] if facts.get("mode") == "last" else ""
        place = facts["lane"], facts.get("chain")
        self.entries[job] = Entry(len(self.entries), *place, is_plain, claim)

    def look(self, now: int, shards: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Compare with the look before; returns what is wrong."""
        view, before = View(self.queue, now, shards), self.view
        claimed = _new_claims(before, view)
        problems = [f"{name}: {one}" for name, at in view.shards.items() for one in broken(at)]
        problems += [*self._places(view), *self._chains(view), *self._bounds(view, claimed)]
        for shard, job in claimed:
            problems += self._start(view, shard, job)
        self.view = view
        return problems

    # -- places -----------------------------------------------------------------------------------

    def _places(self, view: View) -> Iterator[str]:
        places: dict[str, list[str]] = defaultdict(list)
        for shard, job in view.jobs():
            places[job.id].append(f"{job.state} at {shard}")
        for job, state, to in view.travelling():
            places[job].append(f"{state} on the way to {to}")
        self._give_way(set(places))
        for job, entry in self.entries.items():
            if len(places[job]) != (not entry.is_removed):
                yield f"{job} must be in one place, is {places[job]}"
        for job in set(places) - set(self.entries):
            yield f"{job} was never taken in, and is {places[job]}"

    def _give_way(self, seen: set[str]) -> None:
        """A follower that comes where a newer one waits behind the same job is replaced by it."""
        newest = {one.claim: job for job, one in self.entries.items() if one.claim}
        for job, entry in self.entries.items():
            if entry.claim and newest[entry.claim] != job and job not in seen:
                entry.is_removed |= not entry.has_started

    # -- order ------------------------------------------------------------------------------------

    def _chains(self, view: View) -> Iterator[str]:
        running = Counter(job.chain for _, job in view.jobs() if job.state == "running")
        for chain, number in running.items():
            if chain and number > 1:
                yield f"{number} jobs of chain {chain} run at once"

    def _start(self, view: View, shard: str, claimed: Seen) -> Iterator[str]:
        """A job starts: where it may, and after those that come before it."""
        entry = self.entries[claimed.id]
        if view.table.shard_of(self.queue, entry.lane) != shard:
            yield f"{claimed.id} was claimed at {shard}, where {entry.lane} does not live"
        waiting = view.live() - {claimed.id}
        if entry.chain:
            yield from self._out_of_turn(claimed.id, entry, waiting)
        entry.has_started = True

    def _out_of_turn(self, job: str, entry: Entry, waiting: set[str]) -> Iterator[str]:
        for other in waiting:
            its = self.entries[other]
            if its.chain != entry.chain:
                continue
            # one that came otherwise than plainly may stand before a job that was given back
            if self.rules.blocks and its.has_started and entry.is_plain:
                yield f"{job} started while {other} had the turn of chain {its.chain}"
            is_new = not entry.has_started and not its.has_started
            if is_new and entry.is_plain and its.is_plain and its.number < entry.number:
                yield f"{job} started before {other}, which came before it to chain {its.chain}"

    def rerun(self, job: str) -> None:
        """It begins anew at the end of its chain, and nobody knows behind whom."""
        entry = self.entries[job]
        entry.is_plain = entry.has_started = entry.is_asked = False

    def holds(self, job: str, lease: str) -> bool:
        """Whether somebody runs a job under this lease."""
        return any(seen.id == job and seen.lease == lease for _, seen in self.view.jobs())

    def hold(self, job: str, until: int) -> None:
        """A provider has said that a job's lane may not be served before an instant."""
        entry = self.entries[job]
        if not entry.is_asked:
            self._held_until[entry.lane] = max(self._held_until[entry.lane], until)

    # -- bounds -----------------------------------------------------------------------------------

    def _bounds(self, view: View, claimed: list[tuple[str, Seen]]) -> Iterator[str]:
        for _, job in claimed:
            self._claims[job.lane or ""].append(view.now)
        for lane in {job.lane or "" for _, job in claimed}:
            if view.now < self._held_until[lane]:
                yield f"{lane} was served before {self._held_until[lane]}, as a provider forbade"
            for per, most in self.rules.limits.items():
                number = sum(at > view.now - per for at in self._claims[lane])
                if number > most:
                    yield f"{number} jobs of {lane} were claimed in {per} us, {most} may be"
            running = [j.id for _, j in view.jobs() if j.lane == lane and j.state == "running"]
            if self.rules.max_running is not None and len(running) > self.rules.max_running:
                yield f"{running} of {lane} run at once, {self.rules.max_running} may"


def _new_claims(before: View, view: View) -> list[tuple[str, Seen]]:
    known = {(job.id, job.lease) for _, job in before.jobs() if job.lease}
    return [
        (shard, job)
        for shard, job in view.jobs()
        if job.lease and job.state == "running" and (job.id, job.lease) not in known
    ]
