"""The harness's hand on one peer: give its adapter an order, or keep its worker running."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bench.catalogue import Peer
from bench.environment import last_line, prepare, working_directory
from bench.ledger import Ledger, create_ledger
from bench.process import child

_ORDER_S = 180
_STALL_S = 30


class PeerFailed(Exception):
    """An adapter broke, stalled or ran a job more than once; the message goes into the report."""


class Worker:
    """A running worker process, watched through its ledger."""

    def __init__(self, process: subprocess.Popen[str], ledger: Ledger, log: Path) -> None:
        self.ledger = ledger
        self._process = process
        self._log = log

    @property
    def cpu_us(self) -> float:
        """CPU time that it has used so far."""
        started = psutil.Process(self._process.pid)
        used = [one.cpu_times() for one in (started, *started.children(recursive=True))]
        return sum(one.user + one.system for one in used) * 1e6

    def wait_for(self, jobs: int, *, until: float | None = None) -> None:
        """Return when `jobs` handlers have finished, or at the instant `until`; refuse to hang."""
        seen, moved_at = 0, time.monotonic()
        while (finished := self.ledger.finished) < jobs:
            now = time.monotonic()
            if until is not None and now >= until:
                return
            if finished > seen:
                seen, moved_at = finished, now
            self._check(f"{finished} of {jobs} jobs", now - moved_at)
            time.sleep(0.002)

    def _check(self, progress: str, still_s: float) -> None:
        if self._process.poll() is not None:
            reason = last_line(self._log.read_text(errors="replace"))
            raise PeerFailed(f"the worker ended after {progress}: {reason}")
        if still_s > _STALL_S:
            raise PeerFailed(f"the worker stood still for {_STALL_S} s after {progress}")


@dataclass(frozen=True, slots=True)
class Adapter:
    """A peer made ready to be measured on one server."""

    peer: Peer
    command: list[str]
    url: str
    scratch: Path

    def ask(self, *order: str) -> dict[str, Any]:
        """Run one order to its end and return the adapter's answer."""
        said, log = self.scratch / "order.out", self.scratch / "order.log"
        with (
            said.open("w") as output,
            log.open("w") as errors,
            child(
                [*self.command, *order],
                cwd=working_directory(self.peer),
                env=self._environment(),
                stdout=output,
                stderr=errors,
            ) as process,
        ):
            try:
                failed = process.wait(timeout=_ORDER_S)
            except subprocess.TimeoutExpired:
                raise PeerFailed(f"{order[0]} took more than {_ORDER_S} s") from None
        if failed:
            raise PeerFailed(f"{order[0]} failed: {last_line(log.read_text(errors='replace'))}")
        return json.loads(said.read_text().splitlines()[-1])

    @contextmanager
    def worker(self, slots: int = 0) -> Generator[Worker]:
        """Keep one worker process running; 0 slots means the adapter's own choice."""
        log, book = self.scratch / "worker.log", create_ledger(self.scratch / "ledger")
        with (
            log.open("w") as errors,
            child(
                [*self.command, "worker", str(slots)],
                cwd=working_directory(self.peer),
                env=self._environment(),
                stderr=errors,
            ) as process,
        ):
            yield Worker(process, Ledger(book), log)

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        ledger = str(self.scratch / "ledger")
        return {**inherited, "BENCH_URL": self.url, "BENCH_LEDGER": ledger}


def make_ready(peer: Peer, url: str, scratch: Path) -> Adapter:
    """Install the peer if needed and prove that its adapter loads."""
    adapter = Adapter(peer, prepare(peer), url, scratch)
    adapter.ask("probe")
    return adapter
