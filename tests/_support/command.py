"""The command `faena` as a process: run to its end, or started, watched, killed.

    run("queues", "shop:app", cwd=tmp_path)               # → Ran(code, out, err)
    with Service("worker", "shop:app", log=…) as service:  # ended with the block, children included

Nothing of the environment that faena reads comes from outside, and no process outlives the tests.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NamedTuple, Self

import psutil

from faena.cli import main
from tests._support.eventually import PATIENCE_S
from tests._support.forked import ROOT, Forked

_OURS = ("FAENA_", "WORKER_", "REDIS_", "LOG_")


class Ran(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output, which must be one JSON document."""
        return json.loads(self.out)


def run(*args: str, cwd: Path = ROOT, **environ: str) -> Ran:
    """Run the command to its end."""
    with TemporaryDirectory(prefix="faena-") as where:
        out, err = Path(where) / "out", Path(where) / "err"
        process = Forked(main, args, log=err, out=out, cwd=cwd, environ=_environ(environ))
        try:
            code = process.wait(PATIENCE_S)
        finally:
            process.kill()
        return Ran(code, out.read_text(), err.read_text())


class Service(Forked):
    """A command that runs until it is told to stop."""

    def __init__(self, *args: str, log: Path, cwd: Path = ROOT, **environ: str) -> None:
        self._log, self._out = log, log.with_name(f"{log.name}.out")
        super().__init__(main, args, log=log, out=self._out, cwd=cwd, environ=_environ(environ))

    @property
    def is_alive(self) -> bool:
        return self.code is None

    def children(self) -> list[int]:
        """Its worker processes, oldest first."""
        with suppress(psutil.Error):
            found = [one for one in psutil.Process(self.pid).children() if _lives(one)]
            return [one.pid for one in sorted(found, key=lambda one: one.create_time())]
        return []

    def log(self) -> str:
        """What it and its children wrote to standard error."""
        return self._log.read_text(errors="replace")

    def serving(self) -> int:
        """How often a worker has said that it serves."""
        return self.log().count(" serves ")

    async def ended(self) -> tuple[int, str]:
        """Exit code and standard output, once it has ended."""
        code = await asyncio.to_thread(self.wait, PATIENCE_S)
        return code, self._out.read_text()

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
        self.kill()
        for one in family:
            with suppress(psutil.Error):
                one.kill()


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return _lives(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def is_frozen(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def _environ(given: dict[str, str]) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith(_OURS)}
    return kept | {"FAENA_SERVE": "off"} | given  # tests run at once, and there is one usual port
