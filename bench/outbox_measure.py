"""The measurements of `./dev bench outbox`: each starts from a new database and an empty broker."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests._support.postgres import Cluster

from bench.adapter import Adapter, PeerFailed
from bench.catalogue import Peer
from bench.environment import ROOT, last_line, prepare
from bench.measure import percentile
from bench.process import child
from bench.server import Server
from bench.starts import Starts, create_starts

_UNSETTLED = {
    "faena": "SELECT EXISTS (SELECT FROM faena.outbox)",
    "procrastinate": "SELECT EXISTS (SELECT FROM procrastinate_jobs)",
    "pgqueuer": "SELECT EXISTS (SELECT FROM pgqueuer)",
}
"""Whether any job is still to be settled."""
_BROKER_KEYS = ("ZCARD bench:{bench}:ready", "ZCARD bench:{bench}:running")
_WARM = 20
_STALL_S = 60.0
_LISTENS_S = 3.0
"""How long a worker has to begin listening before the latency is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is measured."""

    commits: int
    jobs: int
    samples: int
    interval_s: float = 0.02


class Bench:
    """Measures one system at a time on the shared servers."""

    def __init__(self, cluster: Cluster, broker: Server, scratch: Path, plan: Plan) -> None:
        self._cluster, self._broker, self._scratch, self._plan = cluster, broker, scratch, plan

    def works(self) -> dict[str, Callable[[Adapter], dict[str, float]]]:
        """The measurements of a round."""
        return {"commits": self.commits, "backlog": self.backlog, "latency": self.latency}

    def ready(self, peer: Peer) -> Adapter:
        """Install the peer, and make the database that every measurement copies."""
        command = [one if one != "bench.peers" else "bench.transactional" for one in prepare(peer)]
        template = f"{peer.name}_template"
        adapter = Adapter(peer, command, self._cluster.tcp_url(template), self._scratch)
        adapter.ask("probe")
        self._cluster.create(template)
        with self._cluster.connected(template) as connection:
            connection.execute("CREATE TABLE orders (id bigint PRIMARY KEY, note text NOT NULL)")
        adapter.ask("prepare")
        return adapter

    def commits(self, adapter: Adapter) -> dict[str, float]:
        """Producers alone, and then their jobs, so that none is lost."""
        adapter = self._fresh(adapter)
        done = adapter.ask("commits", str(self._plan.commits), "1")
        self._analyze(adapter)
        with self._worker(adapter, done["jobs"]) as worker:
            self._drain(adapter, worker)
        return {"commits": self._plan.commits / done["seconds"]}

    def backlog(self, adapter: Adapter) -> dict[str, float]:
        """From the first handler's start until everything is settled."""
        adapter = self._fresh(adapter)
        transactions = self._plan.jobs // 100 - _WARM
        done = adapter.ask("commits", str(transactions), "100")
        self._analyze(adapter)
        with self._worker(adapter, done["jobs"]) as worker:
            over_ns = self._drain(adapter, worker)
        first_ns = min(worker.book.started_ns())
        return {
            "bulk": 100 * transactions / done["seconds"],
            "drain": done["jobs"] / (over_ns - first_ns) * 1e9,
        }

    def latency(self, adapter: Adapter) -> dict[str, float]:
        """From just before COMMIT to the handler's first line."""
        adapter, plan = self._fresh(adapter), self._plan
        with self._worker(adapter, plan.samples) as worker:
            time.sleep(_LISTENS_S)
            paced = adapter.ask("pace", str(plan.samples), str(plan.interval_s))
            self._drain(adapter, worker)
        pairs = zip(worker.book.started_ns(), paced["instants"], strict=True)
        waits = sorted(started - before for started, before in pairs)
        return {
            "latency_p50": percentile(waits, 0.5) / 1e6,
            "latency_p99": percentile(waits, 0.99) / 1e6,
        }

    def _fresh(self, adapter: Adapter) -> Adapter:
        """A new database and an empty broker."""
        name = adapter.peer.name
        self._cluster.drop(f"{name}_run")
        self._cluster.create(f"{name}_run", f"{name}_template")
        self._broker.flush()
        with self._cluster.connected() as connection:
            connection.execute("CHECKPOINT")
        return Adapter(
            adapter.peer, adapter.command, self._cluster.tcp_url(f"{name}_run"), self._scratch
        )

    def _analyze(self, adapter: Adapter) -> None:
        """What autovacuum does within a minute: without it, procrastinate's plan reads all jobs."""
        with self._cluster.connected(f"{adapter.peer.name}_run") as connection:
            connection.execute("VACUUM ANALYZE")

    @contextmanager
    def _worker(self, adapter: Adapter, jobs: int) -> Generator[Worker]:
        log, book = self._scratch / "worker.log", self._scratch / "ledger"
        create_starts(book, jobs)
        environment = {**os.environ, "BENCH_URL": adapter.url, "BENCH_LEDGER": str(book)}
        environment.pop("PYTHONPATH", None)
        with (
            log.open("w") as errors,
            child([*adapter.command, "worker"], cwd=ROOT, env=environment, stderr=errors) as run,
        ):
            yield Worker(run, Starts(book), log, jobs)

    def _drain(self, adapter: Adapter, worker: Worker) -> int:
        """Until nothing is left; returns that instant."""
        worker.wait()
        name = adapter.peer.name
        with self._cluster.connected(f"{name}_run") as connection:
            while True:
                found = connection.execute(_UNSETTLED[name].encode()).fetchone()
                left = bool(found and found[0])
                if not left and not self._broker.unsettled(_BROKER_KEYS):
                    break
                time.sleep(0.002)
        over_ns = time.monotonic_ns()
        worker.check()
        return over_ns


@dataclass
class Worker:
    """A running worker process and its ledger."""

    process: subprocess.Popen[str]
    book: Starts
    log: Path
    jobs: int

    def wait(self) -> None:
        """Until every handler has returned; refuses to hang."""
        seen, moved_at = -1, time.monotonic()
        while (finished := self.book.finished) < self.jobs:
            if finished != seen:
                seen, moved_at = finished, time.monotonic()
            if self.process.poll() is not None:
                words = last_line(self.log.read_text(errors="replace"))
                raise PeerFailed(f"the worker ended after {finished} jobs: {words}")
            if time.monotonic() > moved_at + _STALL_S:
                raise PeerFailed(f"{finished} of {self.jobs} jobs ran, then none for a minute")
            time.sleep(0.002)

    def check(self) -> None:
        """Each job has started, and none twice."""
        lost = self.book.started_ns().count(0)
        if lost or self.book.again:
            raise PeerFailed(f"{lost} jobs were lost, {self.book.again} ran again")
