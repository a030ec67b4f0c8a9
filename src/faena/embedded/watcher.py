"""The process that starts the server and, asleep otherwise, ends it when no member is left.

Run as `python -I -S watcher.py <directory> <patience> [<server command> ...]` by whoever holds
door.lock. It takes watcher.lock (or returns at once: somebody watches), starts the server if none
lives, connects, and forks: the parent returns so that the member may go on, the child watches.
Without a command it only adopts a server whose watcher was killed.

The connection is the watcher's hold on the server: exact where a process id or a path may have
passed to a stranger. It brings SHUTDOWN to this server and no other, and its end means that the
server is gone. The watcher works inside the directory with relative names, so a directory that is
moved or deleted under it changes nothing.

Only the standard library, and little of it: this process lives as long as the server does.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

MEMBERS = "members.lock"
SERVER = "server.lock"
WATCHER = "watcher.lock"
SOCKET = "valkey.sock"
TOKEN = "token"  # noqa: S105  the name of a file
ALIAS = "alias"

# The server carries the token in a setting of free text that means nothing to a lone server.
TOKEN_SETTING = "availability-zone"  # noqa: S105  the name of a setting
SHUTDOWN = b"SHUTDOWN NOSAVE NOW FORCE\r\n"
ANSWER_WITHIN = 1.0
PAUSE = 0.005


def open_lock(path: Path) -> int:
    """A descriptor of its own: locks of two descriptors exclude each other within a process."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def try_lock(descriptor: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def release(descriptor: int) -> None:
    """Unlock, then close: a fork of another thread may have copied the descriptor meanwhile."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock alone; looking does not disturb others who look."""
    descriptor = open_lock(path)
    try:
        return try_lock(descriptor, fcntl.LOCK_SH)
    finally:
        release(descriptor)


def connect(address: Path, token: Path) -> socket.socket | None:
    """A connection to the server that carries our token, also while it loads its data."""
    conversation = socket.socket(socket.AF_UNIX)
    conversation.settimeout(ANSWER_WITHIN)
    try:
        conversation.connect(os.fspath(address))
        if _carries(conversation, token.read_text()):
            return conversation
    except OSError:
        pass
    conversation.close()
    return None


def says(conversation: socket.socket, command: str, reply: str) -> bool:
    """Whether the server answers `command` with exactly `reply`."""
    conversation.sendall(f"{command}\r\n".encode())
    expected, got = reply.encode(), b""
    while got != expected:
        part = conversation.recv(len(expected) - len(got))
        got += part
        if not part or not expected.startswith(got):
            return False
    return True


def _carries(conversation: socket.socket, token: str) -> bool:
    name = f"${len(TOKEN_SETTING)}\r\n{TOKEN_SETTING}\r\n"
    reply = f"*2\r\n{name}${len(token)}\r\n{token}\r\n"
    return bool(token) and says(conversation, f"CONFIG GET {TOKEN_SETTING}", reply)


class Watcher:
    """Holds one connection to the server, and waits for the members' lock, exclusively."""

    def __init__(self, conversation: socket.socket) -> None:
        """All that is ever needed of the directory is opened here, while a member waits for us."""
        self._conversation: socket.socket | None = conversation
        self._members = open_lock(Path(MEMBERS))
        self._server = open_lock(Path(SERVER))
        self._is_deserted = False

    def run(self) -> None:
        """Returns when the server is gone, for whichever reason."""
        threading.Thread(target=self._close_when_deserted, daemon=True).start()
        while self._conversation is not None:
            _read_to_end(self._conversation)
            # CLIENT KILL looks like a death from here; a dead server cannot be reached again.
            self._conversation = connect(Path(SOCKET), Path(TOKEN))
            if self._is_deserted:
                self._shut_down()
        if self._is_deserted:
            fcntl.flock(self._server, fcntl.LOCK_EX)
            _remove_alias()

    def _close_when_deserted(self) -> None:
        # Held until this process ends: a joiner waits meanwhile, and then finds a clean start.
        fcntl.flock(self._members, fcntl.LOCK_EX)
        self._is_deserted = True
        self._shut_down()

    def _shut_down(self) -> None:
        try:
            if self._conversation is not None:
                self._conversation.sendall(SHUTDOWN)
        except OSError:
            pass  # it is gone already, which `run` sees too


def _read_to_end(conversation: socket.socket) -> None:
    conversation.settimeout(None)
    try:
        while conversation.recv(4096):
            pass
    except OSError:
        pass  # a reset is an end as well
    conversation.close()


def _remove_alias() -> None:
    try:
        private = Path(Path(ALIAS).read_text())
        (private / "data").unlink()
        private.rmdir()
        Path(ALIAS).unlink()
    except OSError:
        pass  # most directories have none


def _start(command: list[str]) -> int | None:
    """Start a server unless one lives; it inherits server.lock, and nobody else keeps it.

    Here the lock is closed and never released, which would release it for the server as well.
    """
    lock = open_lock(Path(SERVER))
    try:
        if not try_lock(lock) or not command:
            return None
        token = os.urandom(16).hex()
        fresh = Path(f"{TOKEN}.new")
        fresh.write_text(token)
        fresh.replace(TOKEN)
        os.set_inheritable(lock, True)
        arguments = [*command, f"--{TOKEN_SETTING}", token]
        return os.posix_spawn(command[0], arguments, os.environ)
    finally:
        os.close(lock)


def _reach(patience: float) -> socket.socket | None:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and not is_free(Path(SERVER)):
        conversation = connect(Path(SOCKET), Path(TOKEN))
        if conversation is not None:
            return conversation
        time.sleep(PAUSE)
    return None


def main(directory: str, patience: str, *command: str) -> int:
    os.umask(0o077)
    os.chdir(directory)
    if not try_lock(open_lock(Path(WATCHER))):
        return 0
    started = _start(list(command))
    conversation = _reach(float(patience))
    if conversation is None:
        if started is not None:
            os.kill(started, signal.SIGKILL)  # our own child, not yet waited for: surely it
        return 1
    watcher = Watcher(conversation)
    if os.fork() == 0:
        watcher.run()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
