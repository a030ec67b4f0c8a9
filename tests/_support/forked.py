"""Processes that run at once: forked from one that has already imported what they need.

    process = Forked(serve, plan, log=path)      # serve(plan), its output in the file at `path`
    process.send(signal.SIGSTOP); process.kill()

Starting Python and importing faena takes most of a second of a busy machine; a fork of Python's
own fork server, of which each test process has one, takes a few milliseconds. No process outlives
the tests (`guard.py`).
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests._support import guard

ROOT = Path(__file__).parents[2]


_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests._support.preloaded"])


class Forked:
    """One process, with the few things that tests do to processes."""

    def __init__(
        self,
        run: Callable[..., object],
        *args: Any,
        log: Path,
        out: Path | None = None,
        cwd: Path = ROOT,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`run` and `args` are pickled; what `run` returns or raises becomes the exit code."""
        for file in (log, out or log):
            file.touch()
        surroundings = (str(log), str(out or log), str(cwd), dict(environ or os.environ))
        guard.begin()
        self._process = _context.Process(target=_become, args=(surroundings, run, args))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code, negative when a signal ended it; None while it runs."""
        return self._process.exitcode

    def send(self, number: signal.Signals) -> None:
        if self.code is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """kill -9; returns when it is gone."""
        self._process.kill()
        self._process.join()

    def wait(self, within: float) -> int:
        """Its exit code, once it has ended."""
        self._process.join(within)
        if self.code is None:
            raise TimeoutError(f"process {self.pid} must end within {within:g} s")
        return self.code


def _become(
    surroundings: tuple[str, str, str, dict[str, str]],
    run: Callable[..., object],
    args: tuple[Any, ...],
) -> None:
    log, out, cwd, environ = surroundings
    os.setsid()
    for path, number in ((out, 1), (log, 2)):
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = run(*args)
    finally:
        atexit._run_exitfuncs()  # multiprocessing leaves them out
    raise SystemExit(code)
