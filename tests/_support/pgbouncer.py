"""A disposable PgBouncer in transaction mode before a PostgreSQL, where Debian's is installed.

    with PgBouncer(cluster) as bouncer:
        bouncer.url("shop")               # postgresql://…/shop through PgBouncer

Few server connections serve all clients, so what one client leaves in a session, others meet.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from tests._support import guard
from tests._support.postgres import READY_WITHIN, Cluster, as_user
from tests._support.valkey import free_port

_SETTINGS = """
[databases]
* = host={host} port={port} user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
admin_users = admin
pool_mode = transaction
default_pool_size = {servers}
max_client_conn = 200
server_login_retry = 1
"""


def binary() -> str | None:
    """Where it is; Debian installs it where only root looks."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class PgBouncer:
    """One PgBouncer, on a free port of loopback."""

    def __init__(self, cluster: Cluster, *, servers: int = 4) -> None:
        """`servers` is the number of connections to each database."""
        self._cluster, self._servers = cluster, servers
        self.port = free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="bouncer-", dir=guard.begin()))
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        """Through PgBouncer."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        found, who = binary(), as_user()
        assert found is not None, "PgBouncer must be installed"
        settings = self.directory / "pgbouncer.ini"
        settings.write_text(
            _SETTINGS.format(
                host=self._cluster.directory,
                port=self._cluster.port,
                listen=self.port,
                servers=self._servers,
            )
        )
        for path in (self.directory.parent, self.directory):
            path.chmod(0o711)
        settings.chmod(0o644)
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen([found, str(settings)], stdout=log, stderr=log, **who)
        self._await_ready()

    def _await_ready(self) -> None:
        until = time.monotonic() + READY_WITHIN
        while True:
            assert self._process is not None
            if self._process.poll() is not None:
                raise RuntimeError((self.directory / "log").read_text()[-2000:])
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url()):
                return
            assert time.monotonic() < until, "PgBouncer does not answer"
            time.sleep(0.02)

    def show(self, what: str) -> list[Any]:
        """The rows of an administrator's SHOW."""
        url = f"postgresql://admin@127.0.0.1:{self.port}/pgbouncer"
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = psycopg.ClientCursor(connection)
            return cursor.execute(f"SHOW {what}".encode()).fetchall()

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)
            process.wait(READY_WITHIN)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)
