"""What really happened, written down outside the broker.

Every start of a handler is one line, appended in one write, by the process that runs it. The broker
has no part in this file, so it can tell whether the broker's account is true.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from faena import Job, Middleware, RateLimited


class Ledger(Middleware):
    """Writes a line when a handler starts, ends, or is told to wait."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def execute(self, job: Job, call_next: Callable[[Job], Awaitable[Any]]) -> Any:
        self._write("start", job)
        try:
            return await call_next(job)
        except RateLimited:
            self._write("limited", job)
            raise
        finally:
            self._write("end", job)

    def _write(self, word: str, job: Job) -> None:
        os.write(self._file, f"{word} {job.queue} {job.id} {job.worker}\n".encode())


class Reader:
    """Reads the ledger as it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.starts: Counter[str] = Counter()
        self.limited: Counter[str] = Counter()
        self._open: dict[tuple[str, str], str] = {}

    def read(self) -> None:
        """Take in the lines written since the last time; half a line waits for its end."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            whole = file.read().rpartition(b"\n")[0]
        self._offset += len(whole) + 1 if whole else 0
        for line in whole.decode().splitlines():
            self._take(*line.split())

    def _take(self, word: str, queue: str, job_id: str, worker: str) -> None:
        match word:
            case "start":
                self.starts[job_id] += 1
                self._open[job_id, worker] = queue
            case "limited":
                self.limited[job_id] += 1
            case _:
                self._open.pop((job_id, worker), None)

    def running_on(self, worker: str) -> dict[str, str]:
        """Jobs a worker has begun and not ended: id → queue."""
        return {job: queue for (job, name), queue in self._open.items() if name == worker}
