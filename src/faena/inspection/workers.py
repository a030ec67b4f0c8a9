"""The workers of a queue, as it knows them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from faena.engine.overview import WorkerView


def merged(workers: Iterable[WorkerView]) -> tuple[WorkerView, ...]:
    """Each worker once, as it was first known."""
    found: dict[str, WorkerView] = {}
    for worker in workers:
        known = found.get(worker.name, worker)
        is_first = worker.since is not None and (known.since is None or worker.since < known.since)
        until = max(known.listed_until or 0, worker.listed_until or 0) or None
        found[worker.name] = replace(worker if is_first else known, listed_until=until)
    return tuple(found.values())
