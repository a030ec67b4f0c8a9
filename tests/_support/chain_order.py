"""What the ledger says of chains: in which order attempts began, and whether two ran at once.

A delivery lasts from the line of its start to the line of its end, or to the death of its process;
all by the machine's monotonic clock. Lines are written before an ending is settled and after a
claim was answered, so whatever the broker kept apart is apart here too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from tests._support.ledger import Entry, Ledger

Naming = Callable[[str], str]


class Delivery(NamedTuple):
    """One run of a job's handler."""

    job: str
    attempt: int
    began_ns: int
    ended_ns: float
    end: str
    """finish, fail, stop, died; or open."""


def tenant_of(job: str) -> str:
    return job.partition(".")[0]


def key_of(job: str) -> str:
    return job.rpartition(".")[0]


def deliveries(ledger: Ledger) -> list[Delivery]:
    """By the instant they began."""
    found: list[Delivery] = []
    begun: dict[tuple[int, str], Entry] = {}
    for one in sorted(ledger.entries(), key=lambda entry: entry.at_ns):
        if one.kind == "start":
            begun[one.pid, one.job] = one
        elif one.kind in {"finish", "fail", "stop"}:
            found.append(_ended(begun.pop((one.pid, one.job)), one.at_ns, one.kind))
        elif one.kind == "died":
            lost = [place for place in begun if str(place[0]) == one.detail]
            found += [_ended(begun.pop(place), one.at_ns, "died") for place in lost]
    found += [_ended(start, math.inf, "open") for start in begun.values()]
    return sorted(found, key=lambda one: one.began_ns)


def _ended(start: Entry, at_ns: float, kind: str) -> Delivery:
    return Delivery(start.job, start.attempt, start.at_ns, at_ns, kind)


def by_chain(found: Iterable[Delivery], naming: Naming) -> dict[str, list[Delivery]]:
    chains: dict[str, list[Delivery]] = defaultdict(list)
    for one in found:
        chains[naming(one.job)].append(one)
    return dict(chains)


def overlaps(found: Iterable[Delivery], naming: Naming) -> list[tuple[Delivery, Delivery]]:
    """Neighbours in a chain of which the later began before the earlier had ended."""
    return [
        (earlier, later)
        for chain in by_chain(found, naming).values()
        for earlier, later in pairwise(chain)
        if later.began_ns < earlier.ended_ns
    ]


def overtakings(found: Iterable[Delivery], naming: Naming) -> list[tuple[str, str]]:
    """Jobs of a chain that began, at whichever attempt, before one that came earlier."""
    return [
        pair
        for chain in by_chain(found, naming).values()
        for pair in pairwise(one.job for one in chain)
        if pair[0] > pair[1]
    ]


def first_overtakings(found: Iterable[Delivery], naming: Naming) -> list[tuple[str, str]]:
    """The same of first deliveries only: what holds where failures pass."""
    seen: set[str] = set()
    firsts: list[Delivery] = []
    for one in found:
        if one.job not in seen:
            seen.add(one.job)
            firsts.append(one)
    return overtakings(firsts, naming)


def began_between(found: Iterable[Delivery], since_ns: float, until_ns: float) -> list[Delivery]:
    return [one for one in found if since_ns < one.began_ns < until_ns]


def fewest_us(instants: Sequence[int], most: int) -> float:
    """The shortest time in which one claim more than `most` were granted."""
    ordered = sorted(instants)
    gaps = (later - earlier for earlier, later in zip(ordered, ordered[most:], strict=False))
    return min(gaps, default=math.inf)
