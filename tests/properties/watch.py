"""Watches a queue from one call to the next: what may follow a dump depends on the one before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from faena.engine.scripts import Exchanged, Turn
from tests.properties.facts import facts_of
from tests.properties.promises import broken
from tests.properties.sight import Seen, Sight

FULL = 1e18
"""Where a lane is parked until one of its jobs ends."""


class Watch:
    """Remembers claims and turns, which no key keeps."""

    def __init__(self) -> None:
        self.last = Sight(0, {})
        self._granted: dict[str, list[int]] = {}
        """The instants of all claims of a lane."""
        self._since: dict[tuple[str, int], int] = {}
        """For a lane's window, how many entries of `granted` came before it was in force."""
        self._newest: dict[str, float] = {}
        """The last place that a chain gave to a job that came without delay."""
        self._excused: set[str] = set()
        """Lanes parked at a later time than it is, since the clock was set back."""

    def look(self, now: int, keys: Mapping[str, Any]) -> list[str]:
        """Compare with the dump before; returns what is wrong."""
        sight, before = Sight(now, keys), self.last
        if now < before.now:
            self._start_over(before)
        self._excused &= set(sight.scores("parked"))
        problems = [*broken(sight), *self._spend(sight), *self._arrive(sight)]
        problems += _turns_pass_in_order(before, sight)
        self.last = sight
        return problems

    def _start_over(self, before: Sight) -> None:
        """A clock that was set back begins a new time; no window knows what that one claimed."""
        self._since = {key: len(self._granted.get(key[0], ())) for key in self._since}
        self._excused |= set(before.scores("parked"))

    # -- bounds -----------------------------------------------------------------------------------

    def _spend(self, sight: Sight) -> Iterator[str]:
        claimed = self._claims(sight)
        for lane in {job.lane for job in sight.jobs.values() if job.lane}:
            granted = self._granted.setdefault(lane, [])
            windows = sight.windows(lane)
            self._since = {
                key: since
                for key, since in self._since.items()
                if key[0] != lane or key[1] in windows
            }
            for per in windows:
                self._since.setdefault((lane, per), len(granted))
            number = sum(job.lane == lane for job in claimed)
            granted += [sight.now] * number
            if number:  # only a claim can break a bound; a bound can come too late
                yield from self._bounds_hold(sight, lane, windows)

    def _claims(self, sight: Sight) -> list[Seen]:
        known = {(job.id, job.lease) for job in self.last.jobs.values()}
        return [
            job for job in sight.jobs.values() if job.lease and (job.id, job.lease) not in known
        ]

    def _bounds_hold(self, sight: Sight, lane: str, windows: Mapping[int, int]) -> Iterator[str]:
        for per, most in windows.items():
            inside = self._granted[lane][self._since[lane, per] :]
            number = sum(at > sight.now - per for at in inside)
            if number > most:
                yield f"{number} jobs of {lane} were claimed in {per} us, {most} may be"
        running = [job.id for job in sight.live(lane=lane) if job.state == "running"]
        most = sight.bound(lane, "max_running")
        if most is not None and len(running) > int(most):
            yield f"{running} of {lane} run at once, {most} may"

    # -- order ------------------------------------------------------------------------------------

    def _arrive(self, sight: Sight) -> Iterator[str]:
        """Jobs that come without delay stand behind all that came so before."""
        fresh = [job for job in sight.jobs.values() if job.chain and job.id not in self.last.jobs]
        for job in sorted(fresh, key=lambda job: job.score):
            is_prompt = "delay" not in facts_of(sight.keys["specs"][job.id])
            is_placed = job.state == "ready" or job.id in sight.sets("tail:").get(
                job.chain or "", ()
            )
            if is_prompt and is_placed and job.chain:
                if job.score <= self._newest.get(job.chain, 0):
                    yield f"{job.id} came last to chain {job.chain}, and stands before others"
                self._newest[job.chain] = job.score

    # -- service ----------------------------------------------------------------------------------

    def idle(self, answer: Exchanged, turn: Turn) -> Iterator[str]:
        """Whoever is given less than it wants has left nothing that it could have been given."""
        sight = self.last
        if answer.gate or len(answer.claimed) >= turn.want:
            return
        parked = sight.scores("parked")
        for job in sight.jobs.values():
            if job.state == "ready" and job.lane not in parked:
                yield f"{job.id} was left in {job.lane} by one that wanted more"
        for lane, until in parked.items():
            if until <= sight.now:
                yield f"lane {lane} should have been looked at"
            if lane not in self._excused and not _is_closed(sight, lane):
                yield f"lane {lane} is parked without a reason"


def _is_closed(sight: Sight, lane: str) -> bool:
    """Whether a hold or a bound of its own keeps a lane from being served."""
    held_until = sight.hash("tenants").get(lane, {}).get("held_until")
    if held_until == 0 or (held_until or 0) > sight.now:
        return True
    running = sum(job.state == "running" for job in sight.live(lane=lane))
    most = sight.bound(lane, "max_running")
    if most is not None and running >= int(most):
        return True
    return any(
        _used(sight, lane, per) >= most or f"claims:{per}{lane}" in sight.hash("learned")
        for per, most in sight.windows(lane).items()
    )


def _used(sight: Sight, lane: str, per: int) -> int:
    _, *entries = sight.keys.get(f"claims:{per}{lane}", [0])
    pairs = zip(entries[::2], entries[1::2], strict=True)
    return sum(number for at, number in pairs if at > sight.now - per)


def _turns_pass_in_order(before: Sight, sight: Sight) -> Iterator[str]:
    """The turn goes to the first of those that were behind it, and nobody comes between."""
    for chain, head in sight.hash("heads").items():
        if head == before.hash("heads").get(chain):
            continue
        tail, former = sight.sets("tail:").get(chain, {}), before.sets("tail:").get(chain, {})
        passed_over = {job for job in tail if job in former}
        if head in former:
            passed_over = {job for job in passed_over if former[job] < former[head]}
        if passed_over:
            yield f"{head} has the turn of chain {chain} before {passed_over}"
