"""The Valkey that the tests of one process share."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from faena.embedded import Embedded


@cache  # one server a process: starting costs a tenth of a second, a namespace costs nothing
def shared_url() -> str:
    """Where this process's private server is; started at the first call, gone with the process.

    Tests keep apart by namespace. A killed process takes its server along, for the embedded server
    watches its members.
    """
    directory = Path(tempfile.mkdtemp(prefix="faena-test-"))
    server = Embedded.join(directory)
    atexit.register(_end, server, directory, os.getpid())
    return server.url


def _end(server: Embedded, directory: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child inherits the duty but not the server
        server.leave()
        shutil.rmtree(directory, ignore_errors=True)
