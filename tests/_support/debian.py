"""Debian's programs that tests use, installed where they are missing and that is possible.

    needed("prometheus", "prometheus", "promtool")

Where a package cannot be installed, tests that need it are skipped, unless FAENA_REQUIRED names it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import pytest

_UPDATE_S: Final = 60
_INSTALL_S: Final = 300


def needed(package: str, *programs: str) -> None:
    """Skip the test where these programs of a package are missing, or fail it if it must not be."""
    if _are_there(programs) or _installed(package, programs):
        return
    missing = f"Debian's {package} is not installed, and cannot be"
    if package in os.environ.get("FAENA_REQUIRED", "").split():
        pytest.fail(missing)
    pytest.skip(missing)


def _are_there(programs: tuple[str, ...]) -> bool:
    return all(shutil.which(one) for one in programs)


def _installed(package: str, programs: tuple[str, ...]) -> bool:
    """Install it, unless another process has done so meanwhile."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    with (Path(tempfile.gettempdir()) / "faena-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _are_there(programs):
            _install(package)
        return _are_there(programs)


def _install(package: str) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        _apt(_UPDATE_S, "update")
        _apt(_INSTALL_S, "install", "-y", "--no-install-recommends", package)


def _apt(within_s: float, *words: str) -> None:
    # In runlevel 1 Debian starts no service.
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    subprocess.run(
        ["apt-get", "-qq", *words],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=within_s,
    )
