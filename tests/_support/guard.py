"""Sees that no process outlives the tests, however they end.

    guard.begin()         # before the first process is started; Server and Forked do it too

Whatever is started afterwards inherits an environment variable: through fork servers, in sessions
of its own, frozen or not. A process beside the tests waits on a pipe that only the first of them
holds. When that one ends, by kill -9 too, it kills whoever has the variable, and removes the
directory that the variable names. Only a bare fork of the first one has no such variable: no test
makes any, and one would keep nothing else alive.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

VARIABLE = "TESTS_DIRECTORY"
_ROUNDS, _PAUSE_S = 1000, 0.01


def begin() -> Path:
    """The directory for what must not stay either, made by the first call of all processes."""
    if VARIABLE not in os.environ:
        directory = tempfile.mkdtemp(prefix="faena-")
        reader, writer = os.pipe()  # the other end is closed by the death of this process
        held = os.fdopen(writer, "wb")
        os.register_at_fork(after_in_child=held.close)
        argv = [sys.executable, "-P", __file__, directory]
        os.posix_spawn(
            sys.executable, argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0)]
        )
        os.close(reader)
        os.environ[VARIABLE] = directory
    return Path(os.environ[VARIABLE])


def _watch(directory: str) -> None:
    theirs = os.getsid(0)
    os.setsid()  # Ctrl-C is for the tests
    sys.stdin.read()
    for _ in range(_ROUNDS):  # who is being killed may just have started another
        found = _find(directory, theirs)
        for process in found:
            with suppress(psutil.Error):
                process.kill()
        if not found:
            break
        time.sleep(_PAUSE_S)
    shutil.rmtree(directory, ignore_errors=True)


def _find(directory: str, theirs: int) -> list[psutil.Process]:
    """Whoever the tests started. A Valkey writes its title over its environment: it is known by
    where it works, or by the session that it shares with whoever started it."""
    session_of = {process: _session(process) for process in psutil.process_iter()}
    marked = {process for process in session_of if _is_marked(process, directory)}
    sessions = {session_of[process] for process in marked} - {theirs, None}
    return [one for one, session in session_of.items() if one in marked or session in sessions]


def _session(process: psutil.Process) -> int | None:
    with suppress(OSError):
        return os.getsid(process.pid)
    return None


def _is_marked(process: psutil.Process, directory: str) -> bool:
    with suppress(psutil.Error):
        return process.environ().get(VARIABLE) == directory or Path(process.cwd()).is_relative_to(
            directory
        )
    return False


if __name__ == "__main__":
    _watch(sys.argv[1])
