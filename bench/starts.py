"""A ledger that knows every job: which have started, when, and whether one did so twice.

A file that the worker writes and the harness reads, both through memory. Only the standard library
is used: every peer's interpreter imports this module. Little-endian 64-bit slots:

    0 handlers that returned · 1 starts of jobs that had started before · 2… each job's start, ns

Times are CLOCK_MONOTONIC, which all processes of one machine share.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from time import monotonic_ns

FINISHED, AGAIN, JOBS = range(3)


def create_starts(path: Path, jobs: int) -> Path:
    """Make an empty ledger for so many jobs."""
    path.unlink(missing_ok=True)
    path.write_bytes(bytes(8 * (JOBS + jobs)))
    return path


class Starts:
    """Which jobs have started; written by one thread."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._slots = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")

    def start(self, number: int) -> None:
        """Note that the handler of a job began."""
        if self._slots[JOBS + number]:
            self._slots[AGAIN] += 1
        else:
            self._slots[JOBS + number] = monotonic_ns()

    def end(self) -> None:
        """Note that a handler returned."""
        self._slots[FINISHED] += 1

    @property
    def finished(self) -> int:
        """Handlers that have returned."""
        return self._slots[FINISHED]

    @property
    def again(self) -> int:
        """Starts of jobs that had started before."""
        return self._slots[AGAIN]

    def started_ns(self) -> list[int]:
        """When each job started; 0 for one that has not."""
        return self._slots[JOBS:].tolist()
