"""The measurements: each starts from an empty server and returns figures by work name."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.adapter import Adapter, PeerFailed, Worker
from bench.server import Server

Figures = dict[str, float]

IO_SLOTS = 100
_PILOT_JOBS = 300
_PILOT_S = 0.1  # a pilot over sooner says more about start-up than about speed
_SETTLE_S = 20.0
_ALIVE_JOBS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long each measurement lasts; the number of jobs follows from the peer's own speed."""

    drain_s: float = 4.0  # the backlog is sized to drain in about this long
    jobs_min: int = 1000
    jobs_max: int = 150_000
    single_s: float = 2.0
    latency_samples: int = 200
    latency_interval_s: float = 0.02
    io_jobs: int = 6000
    io_window_s: float = 8.0  # a peer that cannot finish in time is rated on what it did
    idle_calm_s: float = 3.0  # pollers that back off reach their slowest pace first
    idle_s: float = 10.0


QUICK = Plan(
    drain_s=1.0,
    jobs_min=500,
    jobs_max=50_000,
    single_s=0.5,
    latency_samples=60,
    io_jobs=1500,
    io_window_s=3.0,
    idle_calm_s=1.5,
    idle_s=3.0,
)


class Meter:
    """Measures one adapter at a time on the shared server."""

    def __init__(self, server: Server, plan: Plan) -> None:
        self._server = server
        self._plan = plan
        self._backlog: dict[str, int] = {}

    def groups(self) -> dict[str, Callable[[Adapter], Figures]]:
        """The measurements by the group name that the catalogue uses."""
        return {
            "backlog": self.backlog,
            "single": self.single,
            "latency": self.latency,
            "io": self.io,
            "idle": self.idle,
        }

    def backlog(self, adapter: Adapter) -> Figures:
        """Fill the queue, then let one worker empty it."""
        name = adapter.peer.name
        if name not in self._backlog:
            wanted = int(self._pilot(adapter) * self._plan.drain_s)
            self._backlog[name] = min(max(wanted, self._plan.jobs_min), self._plan.jobs_max)
        return self._fill_and_drain(adapter, self._backlog[name])

    def _pilot(self, adapter: Adapter) -> float:
        jobs = _PILOT_JOBS
        while (rate := self._fill_and_drain(adapter, jobs)["drain"]) * _PILOT_S > jobs:
            jobs *= 10
        return rate

    def _fill_and_drain(self, adapter: Adapter, jobs: int) -> Figures:
        self._server.flush()
        empty = self._server.used_memory()
        filled = adapter.ask("bulk", "noop", str(jobs))
        full, before = self._server.used_memory(), self._server.cost()
        with adapter.worker() as worker:
            worker.wait_for(jobs)
            self._wait_settled(adapter)
            settled_ns, after = time.monotonic_ns(), self._server.cost()
            _refuse_repeats(worker, jobs)
        return {
            "enqueue_bulk": filled["jobs"] / filled["seconds"],
            "memory_per_job": (full - empty) / jobs,
            "drain": jobs / (settled_ns - worker.ledger.first_ns) * 1e9,
            "server_us_per_job": (after.commands_us - before.commands_us) / jobs,
            "server_cpu_us_per_job": (after.cpu_us - before.cpu_us) / jobs,
        }

    def _wait_settled(self, adapter: Adapter) -> None:
        until = time.monotonic() + _SETTLE_S
        while left := self._server.unsettled(adapter.peer.pending):
            if time.monotonic() > until:
                raise PeerFailed(f"{left} jobs were still unsettled {_SETTLE_S:g} s after the last")
            time.sleep(0.001)

    def single(self, adapter: Adapter) -> Figures:
        """One producer that waits for every answer."""
        self._server.flush()
        answer = adapter.ask("single", str(self._plan.single_s))
        return {"enqueue_single": answer["jobs"] / answer["seconds"]}

    def latency(self, adapter: Adapter) -> Figures:
        """Lone jobs to a worker that has nothing else to do."""
        plan = self._plan
        self._server.flush()
        with adapter.worker() as worker:
            self._prove_alive(adapter, worker)
            adapter.ask("pace", str(plan.latency_samples), str(plan.latency_interval_s))
            worker.wait_for(_ALIVE_JOBS + plan.latency_samples)
        samples = sorted(worker.ledger.samples)
        return {
            "latency_p50": percentile(samples, 0.50) / 1000,
            "latency_p99": percentile(samples, 0.99) / 1000,
        }

    def io(self, adapter: Adapter) -> Figures:
        """Jobs that wait 50 ms each, a hundred at a time where the peer can."""
        self._server.flush()
        adapter.ask("bulk", "nap", str(self._plan.io_jobs))
        with adapter.worker(IO_SLOTS) as worker:
            worker.wait_for(1)
            worker.wait_for(self._plan.io_jobs, until=time.monotonic() + self._plan.io_window_s)
            book = worker.ledger
            finished, last_ns = book.finished, book.last_ns
        return {"io50": finished / (last_ns - book.first_ns) * 1e9}

    def idle(self, adapter: Adapter) -> Figures:
        """What a worker with an empty queue keeps asking the server."""
        self._server.flush()
        with adapter.worker() as worker:
            self._prove_alive(adapter, worker)
            time.sleep(self._plan.idle_calm_s)
            seen = self._server.count_commands(self._plan.idle_s)
        return {"idle_commands_per_s": seen / self._plan.idle_s}

    def _prove_alive(self, adapter: Adapter, worker: Worker) -> None:
        adapter.ask("bulk", "noop", str(_ALIVE_JOBS))
        worker.wait_for(_ALIVE_JOBS)


def _refuse_repeats(worker: Worker, jobs: int) -> None:
    if (ran := worker.ledger.finished) != jobs:
        raise PeerFailed(f"handlers ran {ran} times for {jobs} jobs")


def percentile(ordered: list[int], share: float) -> float:
    """The least value that so great a share does not exceed."""
    return float(ordered[max(math.ceil(share * len(ordered)) - 1, 0)])
