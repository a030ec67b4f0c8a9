"""The demo, run as a viewer runs it, only shorter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests._support import guard
from tests._support.left_running import left_running

pytestmark = pytest.mark.timeout(600)
ROOT = Path(__file__).parents[3]
SHORT = ("--orgs", "4", "--speed", "1500")


@pytest.fixture
def home() -> Path:
    """A directory that PostgreSQL may enter, whose server runs as another user under root."""
    return Path(tempfile.mkdtemp(prefix="demo-", dir=guard.begin()))


@contextmanager
def demo(directory: Path, *arguments: str) -> Generator[subprocess.Popen[str]]:
    """The demo with its files in `directory`; whatever it left there is killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "apps.demo", *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(directory), "FAENA_URL": "redis://127.0.0.1:1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
        for left in left_running(directory):
            with suppress(psutil.Error):
                left.kill()


def document(process: subprocess.Popen[str]) -> dict[str, Any]:
    output, told = process.communicate()
    assert output, told
    return json.loads(output)


def figures(process: subprocess.Popen[str]) -> dict[str, str]:
    """The closing figures; every one that can be wrong is right."""
    return checked(process, document(process))


def checked(process: subprocess.Popen[str], found: dict[str, Any]) -> dict[str, str]:
    assert [one for one in found["lines"] if one["isGood"] is False] == []
    assert process.returncode == 0
    return {one["name"]: one["value"] for one in found["lines"]}


def test_a_day_with_an_outage_and_killed_workers_loses_and_doubles_nothing(home: Path) -> None:
    with demo(home, "--once", "--json", *SHORT) as process:
        ended = document(process)
        found = checked(process, ended)
        assert left_running(home) == []
    for one in ended["alerts"]:  # which fire, depends on how busy the machine is
        assert one["resolved_s"] is None or one["resolved_s"] > one["fired_s"] > 0, one
    assert [one["pool"] for one in ended["advice"]] == ["high", "normal", "low", "scheduler"]
    assert all(one["in_use"] > 0 and one["wait_p95_s"] > 0 for one in ended["advice"])
    must_be_none = ("lost", "not issued", "doubled at AFIP", "gaps", "inversions", "dead")
    assert [found[name] for name in must_be_none] == ["0"] * len(must_be_none)
    assert int(found["invoices"]) == 4 * 5 + 30
    assert int(found["workers killed"]) >= 1
    assert int(found["payments"]) > 0
    assert int(found["written to us"]) == 4 * 3 + 2
    assert list(home.glob("faena-demo-*")) == []


def test_ctrl_c_ends_the_demo_cleanly_and_it_still_knows_where_everything_is(
    home: Path,
) -> None:
    with demo(home, "--json", *SHORT) as process:
        wait_for("the tax office is out", process)
        process.send_signal(signal.SIGINT)
        found = figures(process)
        assert left_running(home) == []
    assert int(found["invoices"]) > 0
    assert list(home.glob("faena-demo-*")) == []


def test_a_demo_killed_with_minus_9_takes_its_processes_and_its_servers_along(
    home: Path,
) -> None:
    with demo(home, "--json", *SHORT) as process:
        wait_for("all workers serve", process)
        process.kill()
        process.wait()
        assert psutil.wait_procs(left_running(home), timeout=60)[1] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--orgs", "1"), "--orgs must be 2 to 5000, got 1"),
        (("--speed", "1"), "--speed must be 10 to 2000, got 1"),
        (("--ai-budget", "0"), "--ai-budget must be dollars, 0.01 or more, got 0"),
    ],
)
def test_a_wrong_option_is_named(home: Path, arguments: tuple[str, ...], words: str) -> None:
    with demo(home, *arguments) as process:
        _, told = process.communicate()
    assert process.returncode == 2
    assert words in told


def wait_for(words: str, process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    told: list[str] = []
    for line in process.stderr:
        told.append(line)
        if words in line:
            return
    raise AssertionError(f"the demo must say {words!r}, got {told}")
