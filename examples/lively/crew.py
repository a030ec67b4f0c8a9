"""The worker processes: started, stopped, and killed when the story wants it."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from pathlib import Path

_LEAVE_WITHIN_S = 15.0


class Fallen(Exception):
    """A worker ended by itself; its last words are the message."""


class Crew:
    """Worker processes by name. Nothing of it outlives the demo."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = itertools.count(1)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def names(self) -> list[str]:
        return list(self._processes)

    def hire(self) -> str:
        """Start one more worker."""
        name = f"worker-{next(self._numbers)}"
        with (self._directory / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", "examples.lively.worker", str(self._directory), name],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the demo, which then ends its workers
            )
        return name

    def kill(self, name: str) -> None:
        """Kill -9: the worker has no chance to say goodbye."""
        process = self._processes.pop(name)
        process.kill()
        _reap(process)

    def check(self) -> None:
        """Raise Fallen when a worker has ended though nobody asked it to."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                lines = (self._directory / f"{name}.log").read_text("utf-8").splitlines()
                raise Fallen(f"{name} ended with {process.returncode}: {(lines or ['?'])[-1]}")

    async def leave(self) -> None:
        """Let every worker finish what it has begun."""
        for process in self._processes.values():
            if process.stdin is not None:
                process.stdin.close()
        await asyncio.gather(
            *(asyncio.to_thread(_wait, process) for process in self._processes.values())
        )
        self._processes.clear()

    def kill_all(self) -> None:
        """The last resort, when the demo itself has failed."""
        for name in self.names:
            self.kill(name)


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_LEAVE_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        _reap(process)


def _reap(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
