"""The command `faena` as a process: run to its end, or started, watched, killed.

    run("queues", "shop:app", cwd=tmp_path)               # → Ran(code, out, err)
    with Service("worker", "shop:app", log=…) as service:  # ended with the block, children included

Nothing of the environment that faena reads comes from outside, and no process outlives the tests.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import psutil

ROOT = Path(__file__).parents[2]
_OURS = ("FAENA_", "WORKER_", "REDIS_", "LOG_LEVEL")


class Ran(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output, which must be one JSON document."""
        return json.loads(self.out)


def run(*args: str, cwd: Path = ROOT, said: str = "", **environ: str) -> Ran:
    """Run the command to its end; `said` is typed into it."""
    done = subprocess.run(
        _argv(*args),
        cwd=cwd,
        env=_environ(environ),
        input=said,
        capture_output=True,
        text=True,
        timeout=25,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


class Service:
    """A command that runs until it is told to stop."""

    def __init__(self, *args: str, log: Path, cwd: Path = ROOT, **environ: str) -> None:
        self._log = log
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                _argv(*args),
                cwd=cwd,
                env=_environ(environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                start_new_session=True,
            )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", 'read -r _; kill -9 "$0"', str(self._process.pid)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def children(self) -> list[int]:
        """Its worker processes, oldest first."""
        with suppress(psutil.Error):
            found = [one for one in psutil.Process(self.pid).children() if _lives(one)]
            return [one.pid for one in sorted(found, key=lambda one: one.create_time())]
        return []

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def log(self) -> str:
        """What it and its children wrote to standard error."""
        return self._log.read_text(errors="replace")

    def serving(self) -> int:
        """How often a worker has said that it serves."""
        return self.log().count(" serves ")

    async def ended(self, *, within: float = 20.0) -> tuple[int, str]:
        """Exit code and standard output, once it has ended."""
        out, _ = await asyncio.to_thread(self._process.communicate, None, within)
        return self._process.returncode, out

    def kill(self) -> None:
        """kill -9 of the parent alone."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        family: list[psutil.Process] = []
        with suppress(psutil.Error):
            family = psutil.Process(self.pid).children(recursive=True)
        self._guard.kill()
        self._guard.communicate()
        self._process.kill()
        self._process.communicate()
        for one in family:
            with suppress(psutil.Error):
                one.kill()


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return _lives(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def _argv(*args: str) -> list[str]:
    return [sys.executable, "-P", "-m", "faena.cli", *args]


def _environ(given: dict[str, str]) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith(_OURS)}
    return kept | given
