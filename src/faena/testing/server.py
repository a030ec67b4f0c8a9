"""The Valkey that the tests of one process share."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from faena.embedded import Embedded


@cache  # one server per process: a start takes a tenth of a second, a namespace nothing
def shared_url() -> str:
    """The URL of this process's private server, started at the first call.

    Each test has its own namespace. The server ends with the process, even if that is killed,
    because the embedded server watches its members.
    """
    directory = Path(tempfile.mkdtemp(prefix="faena-test-"))
    server = Embedded.join(directory)
    atexit.register(_end, server, directory, os.getpid())
    return server.url


def _end(server: Embedded, directory: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child inherits this exit handler, but not the server
        server.leave()
        shutil.rmtree(directory, ignore_errors=True)
