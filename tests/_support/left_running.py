"""What a program has left running."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil


def left_running(directory: Path) -> list[psutil.Process]:
    """Servers, watchers and workers whose data is in a directory: all of them are told it."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(str(directory) in word for word in process.cmdline()):
                found.append(process)
    return found
