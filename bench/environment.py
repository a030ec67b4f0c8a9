"""One environment per peer under `.bench/`, made once and kept while its pins stay the same."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from bench.catalogue import Peer

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".bench"
_INSTALL_S = 600


class Unavailable(Exception):
    """A peer cannot be measured here; the message is the reason shown in the report."""


def is_ready(peer: Peer) -> bool:
    """Say whether the peer's environment is already there."""
    return not peer.packages or _read_stamp(peer) == _stamp(peer)


def prepare(peer: Peer) -> list[str]:
    """Return the command that runs the peer's adapter, installing the environment when needed."""
    if not is_ready(peer):
        _install(peer)
    if peer.is_node:
        return [_find("node"), str(ROOT / "bench" / "peers" / f"{peer.module}.mjs")]
    python = str(HOME / peer.name / "bin" / "python") if peer.packages else sys.executable
    return [python, "-m", "bench.peers", peer.module]


def working_directory(peer: Peer) -> Path:
    """Where the adapter runs: Python finds `bench` there, Node finds its packages."""
    return HOME / peer.name if peer.is_node else ROOT


def _install(peer: Peer) -> None:
    home = HOME / peer.name
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    if peer.is_node:
        _install_node(peer, home)
    else:
        _run([sys.executable, "-m", "venv", str(home)], home)
        python = str(home / "bin" / "python")
        _run([python, "-m", "pip", "install", "--quiet", *peer.packages], home)
    (home / ".installed").write_text(_stamp(peer))


def _install_node(peer: Peer, home: Path) -> None:
    pins = dict(package.rsplit("@", 1) for package in peer.packages)
    manifest = {"name": "faena-bench-peer", "private": True, "dependencies": pins}
    (home / "package.json").write_text(json.dumps(manifest, indent=2))
    _find("node")
    _run([_find("npm"), "install", "--no-package-lock", "--no-audit", "--no-fund"], home)


def _find(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise Unavailable(f"{program} is not installed")
    return path


def _run(command: list[str], home: Path) -> None:
    try:
        subprocess.run(
            command, cwd=home, check=True, capture_output=True, text=True, timeout=_INSTALL_S
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"installing took more than {_INSTALL_S} s") from None
    except subprocess.CalledProcessError as failure:
        raise Unavailable(f"install failed: {last_line(failure.stderr)}") from None


def last_line(text: str) -> str:
    """The line of a program's complaint that says what went wrong."""
    frame = " |+-"  # an exception group is drawn in a box
    lines = [bare for line in text.splitlines() if (bare := line.strip(frame))]
    return lines[-1] if lines else "no message"


def _stamp(peer: Peer) -> str:
    runtime = "node" if peer.is_node else f"python {sys.version_info[0]}.{sys.version_info[1]}"
    return "\n".join((runtime, *peer.packages))


def _read_stamp(peer: Peer) -> str:
    try:
        return (HOME / peer.name / ".installed").read_text()
    except OSError:
        return ""
