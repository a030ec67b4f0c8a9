"""Workers that several shards know."""

from __future__ import annotations

from msgspec.structs import replace

from faena.engine.overview import WorkerView
from faena.inspection.workers import merged

FIRST = WorkerView("w", since=5, host="box", pid=17, version="0.1.0")
LATER = WorkerView("w", since=9, host="box", pid=17, version="0.1.0")
OTHER = WorkerView("x", since=7, host="box", pid=18, version="0.1.0")


def test_each_worker_is_there_once_and_since_its_first_call() -> None:
    assert merged([FIRST, OTHER, LATER]) == merged([LATER, OTHER, FIRST]) == (FIRST, OTHER)


def test_a_worker_is_listed_until_the_last_shard_takes_it_for_gone() -> None:
    early, late = replace(LATER, listed_until=40), replace(FIRST, listed_until=70)
    assert merged([late, early]) == merged([early, late]) == (late,)


def test_what_a_worker_has_said_anywhere_counts() -> None:
    assert merged([WorkerView("w"), LATER]) == merged([LATER, WorkerView("w")]) == (LATER,)
