"""Members of an embedded server as processes of their own, to be killed at will.

A member obeys one word per line on its standard input and answers with one line. It ends when
that pipe closes, so none outlives the test process.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import redis

from faena.embedded import Embedded
from faena.errors import FaenaError


class Member:
    """One process that may join, repair, fork, leave or die."""

    def __init__(self, directory: Path) -> None:
        self._process = subprocess.Popen(
            # -P: this file's neighbour `valkey` is not the package of that name.
            [sys.executable, "-P", __file__, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.hear()

    def say(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ask(self, word: str) -> str:
        self.say(word)
        return self.hear()

    def join(self) -> Self:
        assert self.ask("join").startswith("unix://")
        return self

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()


def server_pid(url: str) -> int:
    with redis.Redis.from_url(url) as client:
        return int(client.info("server")["process_id"])


def watcher_pid(directory: Path) -> int:
    (watcher,) = [process for process in _inside(directory) if "-I" in process.cmdline()]
    return watcher.pid


def wait_until_free(lock: Path) -> None:
    """Blocks in the kernel until no process holds the lock alone: nothing is polled."""
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)


def is_held(lock: Path) -> bool:
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def data_directory() -> Iterator[Path]:
    """Short, unlike pytest's own temporary directories, so that the socket fits."""
    with tempfile.TemporaryDirectory(prefix="fae-", ignore_cleanup_errors=True) as base:
        directory = Path(base).resolve() / ".faena"
        yield directory
        sweep(directory)


def sweep(directory: Path) -> None:
    """Kill what a failed test left at work in its own private directory."""
    for process in _inside(directory):
        with suppress(psutil.Error):
            process.send_signal(signal.SIGKILL)


def _inside(directory: Path) -> list[psutil.Process]:
    """Server and watcher both work in the data directory, and nobody else does."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cwd().removesuffix(" (deleted)") == str(directory):
                found.append(process)
    return found


def _obey(directory: Path) -> None:
    member: Embedded | None = None
    _answer("ready")
    for line in sys.stdin:
        try:
            match line.strip():
                case "join":
                    member = Embedded.join(directory)
                    _answer(member.url)
                case "ensure" if member:
                    _answer(member.ensure())
                case "leave" if member:
                    member.leave()
                    _answer("left")
                case "fork" if member and os.fork():
                    member.leave()
                    os._exit(0)
                case "fork":
                    _answer("forked")
                case other:
                    _answer(f"unknown word {other}")
        except FaenaError as error:
            _answer(f"{type(error).__name__}: {error}")


def _answer(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _obey(Path(sys.argv[1]))
