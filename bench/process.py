"""Child processes that cannot outlive the harness, however it ends.

Each child runs in a session of its own, under a shell that kills it when the harness's end of a
pipe closes: that happens on a clean stop, on Ctrl-C, and on kill -9 alike.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_KEEPER = """
exec 3<&0
"$@" </dev/null 3<&- &
child=$!
{ cat <&3; kill -9 "$child"; } >/dev/null 2>&1 &
wait "$child"
"""


@contextmanager
def child(
    command: Sequence[str],
    *,
    cwd: Path,
    env: dict[str, str] | None = None,
    stdout: int | IO[Any] = subprocess.DEVNULL,
    stderr: int | IO[Any] = subprocess.DEVNULL,
) -> Generator[subprocess.Popen[str]]:
    """Run `command` for the length of the block, then end it and everything it started."""
    process = subprocess.Popen(
        ["sh", "-c", _KEEPER, "sh", *command],
        cwd=cwd,
        env=env,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
