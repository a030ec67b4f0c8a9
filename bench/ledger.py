"""A counter outside the worker: a small file both the worker and the harness map into memory.

The worker writes, the harness reads while it runs, so nothing about a measurement depends on what a
queue library reports about itself. Only the standard library is used: every peer's interpreter
imports this module. The layout is little-endian 64-bit slots, the same for the Node adapter:

    0 jobs finished · 1 first start, ns · 2 last finish, ns · 3 samples taken · 4… the samples, ns

Times are CLOCK_MONOTONIC, which all processes of one machine share.
"""

from __future__ import annotations

import mmap
import threading
from pathlib import Path
from time import monotonic_ns

FINISHED, FIRST, LAST, SAMPLED, SAMPLES = range(5)
MAX_SAMPLES = 4096
_BYTES = 8 * (SAMPLES + MAX_SAMPLES)


def create_ledger(path: Path) -> Path:
    """Make an empty ledger file for the worker that is about to start."""
    path.unlink(missing_ok=True)
    path.write_bytes(bytes(_BYTES))
    return path


class Ledger:
    """One worker's record of what its handlers did; safe to write from several threads."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._slots = memoryview(mmap.mmap(file.fileno(), _BYTES)).cast("q")
        self._lock = threading.Lock()

    def begin(self) -> int:
        """Note a handler's start and return its instant."""
        now = monotonic_ns()
        if not self._slots[FIRST]:
            self._slots[FIRST] = now
        return now

    def end(self) -> None:
        """Note that a handler returned."""
        with self._lock:
            self._slots[LAST] = monotonic_ns()
            self._slots[FINISHED] += 1

    def sample(self, elapsed_ns: int) -> None:
        """Keep one latency; those beyond the room of the file are dropped."""
        with self._lock:
            index = self._slots[SAMPLED]
            if index < MAX_SAMPLES:
                self._slots[SAMPLES + index] = elapsed_ns
                self._slots[SAMPLED] = index + 1

    @property
    def finished(self) -> int:
        """Handlers that have returned so far."""
        return self._slots[FINISHED]

    @property
    def first_ns(self) -> int:
        """When the first handler started; 0 before that."""
        return self._slots[FIRST]

    @property
    def last_ns(self) -> int:
        """When the latest handler returned; 0 before that."""
        return self._slots[LAST]

    @property
    def samples(self) -> list[int]:
        """The latencies kept so far, in nanoseconds."""
        return self._slots[SAMPLES : SAMPLES + self._slots[SAMPLED]].tolist()
