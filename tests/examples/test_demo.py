"""The demo, run as a viewer runs it, only shorter; and the small examples."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests._support.guard import VARIABLE

ROOT = Path(__file__).parents[2]


@contextmanager
def demo(directory: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The demo with its files in `directory`; whatever it left there is killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "examples.lively", "--jobs", "300", *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(directory), "FAENA_URL": "redis://127.0.0.1:1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        for left in left_at_work(directory):
            with suppress(psutil.Error):
                left.kill()


def wait_for(words: str, process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert any(words in line for line in process.stdout), f"the demo must say {words!r}"


def rest_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.read()


def left_at_work(directory: Path) -> list[psutil.Process]:
    """Servers, watchers and workers of a demo: all of them are told its directory."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(str(directory) in word for word in process.cmdline()):
                found.append(process)
    return found


def figures_in(output: str) -> dict[str, int]:
    """The rows of the closing table."""
    rows = re.findall(r"^│ (\w+) +│ +([\d,]+) │", output, re.MULTILINE)
    return {name: int(number.replace(",", "")) for name, number in rows}


def test_a_day_with_failures_and_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    with demo(tmp_path, "--once") as process:
        output = rest_of(process)
        assert process.wait() == 0, output
        assert left_at_work(tmp_path) == []
    figures = figures_in(output)
    assert figures["lost"] == figures["doubled"] == figures["astray"] == figures["waiting"] == 0
    assert figures["jobs"] == figures["completed"] + figures["dead"] + figures["cancelled"]
    assert figures["jobs"] > 300
    assert figures["cancelled"] == 2
    assert figures["retries"] > 0
    assert figures["rescued"] > 0
    assert figures["starts"] == figures["expected"] > figures["jobs"]
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_the_demo_cleanly_and_it_still_knows_where_every_job_is(tmp_path: Path) -> None:
    with demo(tmp_path) as process:
        wait_for("was killed with -9", process)
        process.send_signal(signal.SIGINT)
        output = rest_of(process)
        assert process.wait() == 0, output
        assert left_at_work(tmp_path) == []
    figures = figures_in(output)
    assert figures["lost"] == figures["doubled"] == figures["astray"] == 0
    assert figures["waiting"] > 0
    assert list(tmp_path.iterdir()) == []


def test_a_demo_killed_with_minus_9_takes_its_workers_and_its_server_along(tmp_path: Path) -> None:
    with demo(tmp_path) as process:
        wait_for("was cancelled", process)
        process.kill()
        assert psutil.wait_procs(left_at_work(tmp_path), timeout=60)[1] == []


SMALL = ["archives", "batches", "fastapi_app", "partitions", "pools", "quickstart", "retention"]


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
    assert left_at_work(tmp_path) == []
