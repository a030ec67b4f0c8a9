"""The processes of a stage: started, looked after, and ended with it, however it ends."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_LEAVE_WITHIN_S: Final = 40.0


class Fallen(Exception):
    """A process ended by itself; its last words are the message."""


class Crew:
    """Processes by name. Each ends when its standard input does, so none outlives its starter."""

    def __init__(self, directory: Path, environ: Mapping[str, str]) -> None:
        self._directory, self._environ = directory, dict(environ)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *arguments: str) -> None:
        """Start `apps.stage.part` with these arguments."""
        with self.log_of(name).open("wb") as log:
            self._processes[name] = subprocess.Popen(  # noqa: S603 - this very program
                [sys.executable, "-m", "apps.stage.part", str(self._directory), *arguments],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._environ,
                start_new_session=True,  # Ctrl-C is for the program, which then ends its processes
            )

    def log_of(self, name: str) -> Path:
        """Where a process writes."""
        return self._directory / f"{name}.log"

    def check(self) -> None:
        """Raise Fallen when a process has ended though nobody asked it to."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                lines = self.log_of(name).read_text("utf-8", "replace").splitlines()
                raise Fallen(f"{name} ended with {process.returncode}: {(lines or ['?'])[-1]}")

    async def leave(self) -> None:
        """Let every process finish what it has begun."""
        for process in self._processes.values():
            _close(process)
        async with asyncio.TaskGroup() as waiting:
            for process in self._processes.values():
                waiting.create_task(asyncio.to_thread(_wait, process))
        self._processes.clear()

    def kill_all(self) -> None:
        """The last resort, when the program itself has failed."""
        for process in self._processes.values():
            process.kill()
            process.wait()
            _close(process)
        self._processes.clear()


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_LEAVE_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
