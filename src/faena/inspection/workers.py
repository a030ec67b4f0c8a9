"""The workers of a queue, as it knows them."""

from __future__ import annotations

from collections.abc import Iterable

from faena.engine.overview import WorkerView


def merged(workers: Iterable[WorkerView]) -> tuple[WorkerView, ...]:
    """Each worker once, as it was first known."""
    found: dict[str, WorkerView] = {}
    for worker in workers:
        known = found.setdefault(worker.name, worker)
        if worker.since is not None and (known.since is None or worker.since < known.since):
            found[worker.name] = worker
    return tuple(found.values())
