"""The process that starts the embedded server, and stops it when no member is left.

The process that holds door.lock runs it as
`python -I -S watcher.py <directory> <patience> [<server command> ...]`. It takes watcher.lock, or
returns at once if another watcher has it. Then it starts the server if none is running, connects,
and forks: the parent returns so that the member can continue, and the child watches. Without a
command it only watches a running server whose watcher was killed.

The watcher identifies the server by its connection, because a process id or a path may be reused by
another process. SHUTDOWN over the connection stops only this server, and if the connection ends and
cannot be opened again, the server is gone. The watcher works in the directory with relative names,
so the directory may be moved or deleted while it runs.

It imports only a few modules of the standard library, because it runs as long as the server.
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

# The server has the token in a free-text setting that has no effect on a single server.
TOKEN_SETTING = "availability-zone"  # noqa: S105  the name of a setting
SHUTDOWN = b"SHUTDOWN NOSAVE NOW FORCE\r\n"
ANSWER_WITHIN = 1.0
PAUSE = 0.005


def open_lock(path: Path) -> int:
    """A new descriptor: locks of two descriptors exclude each other even within a process."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def try_lock(descriptor: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def release(descriptor: int) -> None:
    """Unlock before closing, because a fork in another thread may have copied the descriptor."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def is_free(path: Path) -> bool:
    """Whether no process holds the lock exclusively; concurrent checks do not conflict."""
    descriptor = open_lock(path)
    try:
        return try_lock(descriptor, fcntl.LOCK_SH)
    finally:
        release(descriptor)


def connect(address: Path, token: Path) -> socket.socket | None:
    """A connection to the server that has our token, even while it loads its data; or None."""
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
    """Keeps a connection to the server, and waits for an exclusive lock on members.lock."""

    def __init__(self, conversation: socket.socket) -> None:
        """Open the lock files now, while a member waits and the directory exists."""
        self._conversation: socket.socket | None = conversation
        self._members = open_lock(Path(MEMBERS))
        self._server = open_lock(Path(SERVER))
        self._is_deserted = False

    def run(self) -> None:
        """Return when the server is gone, for any reason."""
        threading.Thread(target=self._close_when_deserted, daemon=True).start()
        while self._conversation is not None:
            _read_to_end(self._conversation)
            # CLIENT KILL also ends the connection; only a dead server cannot be reached again.
            self._conversation = connect(Path(SOCKET), Path(TOKEN))
            if self._is_deserted:
                self._shut_down()
        if self._is_deserted:
            fcntl.flock(self._server, fcntl.LOCK_EX)
            _remove_alias()

    def _close_when_deserted(self) -> None:
        # Held until this process ends: a new member waits until then, and starts a new server.
        fcntl.flock(self._members, fcntl.LOCK_EX)
        self._is_deserted = True
        self._shut_down()

    def _shut_down(self) -> None:
        try:
            if self._conversation is not None:
                self._conversation.sendall(SHUTDOWN)
        except OSError:
            pass  # the server is already gone, and `run` notices it


def _read_to_end(conversation: socket.socket) -> None:
    conversation.settimeout(None)
    try:
        while conversation.recv(4096):
            pass
    except OSError:
        pass  # a reset also ends the connection
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
    """Start a server unless one is running; returns its process id, or None.

    Only the server keeps server.lock, which it inherits. This process closes its descriptor without
    unlocking, because unlocking would release the lock of the server too.
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
            os.kill(started, signal.SIGKILL)  # not yet waited for, so the id is not reused
        return 1
    watcher = Watcher(conversation)
    if os.fork() == 0:
        watcher.run()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
