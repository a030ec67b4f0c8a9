"""What workers really did, written where no broker can lose it.

Any number of processes append to one file, a line an event and a single O_APPEND write a line, so
that nothing is interleaved and a kill -9 costs at most what had not been written yet. Instants are
the machine's monotonic clock, which all its processes share.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from faena.job import Job


class Entry(NamedTuple):
    """One event. `attempt` and `losses` together name a delivery of a job."""

    kind: str
    """up, claim, start, finish, fail, stop, down; and died, written by whoever killed it."""
    job: str
    attempt: int
    losses: int
    pid: int
    at_ns: int
    detail: str
    """Of a claim the server's instant, of a stop the exception, of a death the process."""


class Ledger:
    """A file of entries."""

    def __init__(self, path: Path | str, *, is_synced: bool = False) -> None:
        """`is_synced`: a line is on the disk when `write` returns."""
        self.path = Path(path)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | (os.O_DSYNC if is_synced else 0)
        self._file = os.open(self.path, flags, 0o600)

    def close(self) -> None:
        os.close(self._file)

    def write(
        self, kind: str, job: str = "-", attempt: int = 0, losses: int = 0, detail: object = "-"
    ) -> None:
        facts = (kind, job, attempt, losses, os.getpid(), time.monotonic_ns(), detail)
        os.write(self._file, (" ".join(map(str, facts)) + "\n").encode())

    @contextmanager
    def attempt(self, job: Job) -> Iterator[None]:
        """Around a handler: how it began and how it ended."""
        self.write("start", job.id, job.attempt, job.losses)
        try:
            yield
        except Exception:
            self.write("fail", job.id, job.attempt, job.losses)
            raise
        except BaseException as error:
            self.write("stop", job.id, job.attempt, job.losses, type(error).__name__)
            raise
        self.write("finish", job.id, job.attempt, job.losses)

    # -- reading --------------------------------------------------------------------------------

    def entries(self, *kinds: str, since_ns: int = 0) -> list[Entry]:
        """In the order they were written; a line that is just being written is left out."""
        lines = self.path.read_text().split("\n")[:-1]
        found = [entry_of(line) for line in lines]
        return [one for one in found if (not kinds or one.kind in kinds) and one.at_ns >= since_ns]

    def jobs(self, kind: str, *, since_ns: int = 0) -> Counter[str]:
        """How often each job has an entry of a kind."""
        return Counter(one.job for one in self.entries(kind, since_ns=since_ns))

    def unexplained(self) -> list[tuple[str, int, int]]:
        """Deliveries whose handler started more than once; no fault explains one."""
        started = Counter((one.job, one.attempt, one.losses) for one in self.entries("start"))
        return [delivery for delivery, times in started.items() if times > 1]

    def most_at_once(self) -> int:
        """The largest number of handlers under way at any instant, the dead not counted."""
        begun: dict[tuple[str, int, int], str] = {}
        most = 0
        for one in sorted(self.entries(), key=lambda entry: entry.at_ns):
            delivery = (one.job, one.attempt, one.losses)
            if one.kind == "start":
                begun[delivery] = str(one.pid)
            elif one.kind in {"finish", "fail", "stop"}:
                begun.pop(delivery, None)
            elif one.kind == "died":
                begun = {job: pid for job, pid in begun.items() if pid != one.detail}
            most = max(most, len(begun))
        return most


def entry_of(line: str) -> Entry:
    kind, job, attempt, losses, pid, at_ns, detail = line.split(" ")
    return Entry(kind, job, int(attempt), int(losses), int(pid), int(at_ns), detail)
