"""The small examples, run as a reader runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests._support.guard import VARIABLE
from tests._support.left_running import left_running

ROOT = Path(__file__).parents[2]


SMALL = [
    "archives",
    "batches",
    "fastapi_app",
    "partitions",
    "pools",
    "quickstart",
    "retention",
    "traces",
]


@pytest.mark.parametrize("name", SMALL)
def test_a_small_example_runs_and_leaves_nothing_running(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"examples.{name}"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)} | {name: os.environ[name] for name in ("PATH", VARIABLE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 3
    assert left_running(tmp_path) == []
