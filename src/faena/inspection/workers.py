"""The workers of a queue, as it knows them."""

from __future__ import annotations

from collections.abc import Iterable

from faena.values.view import View


class WorkerView(View, frozen=True):
    """A worker that was heard of lately."""

    name: str
    since: int | None = None
    """Server microseconds of its first call; None, as the rest, while it has said nothing."""
    host: str | None = None
    pid: int | None = None
    version: str | None = None


def merged(workers: Iterable[WorkerView]) -> tuple[WorkerView, ...]:
    """Each worker once, as it was first known."""
    found: dict[str, WorkerView] = {}
    for worker in workers:
        known = found.setdefault(worker.name, worker)
        if worker.since is not None and (known.since is None or worker.since < known.since):
            found[worker.name] = worker
    return tuple(found.values())


def read_worker(name: str, said: bytes | None) -> WorkerView:
    """What a worker has said of itself, if it has."""
    if not said:
        return WorkerView(name)
    since, pid, version, host = said.decode().split(" ", 3)
    return WorkerView(name, since=int(since), host=host, pid=int(pid), version=version)
