"""`./dev chaos` as a process: it accounts for its jobs, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import psutil

from tests._support.command import ROOT
from tests._support.eventually import eventually

AGAIN = "./dev chaos --minutes 60 --seed 19 --workers 2"


async def test_an_interrupted_run_waits_for_its_jobs_tells_and_cleans_up(tmp_path: Path) -> None:
    chaos = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.chaos", *AGAIN.split()[2:], "--json"),
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )

    def accepted() -> int:
        return sum(len(path.read_bytes().split(b"\n")) for path in tmp_path.glob("*/accepted"))

    await eventually(lambda: accepted() > 100)
    family = psutil.Process(chaos.pid).children(recursive=True)
    chaos.send_signal(signal.SIGINT)
    out, _ = await asyncio.wait_for(chaos.communicate(), 100)
    report = json.loads(out)
    assert (chaos.returncode, report["is_sound"], report["found"]) == (130, True, {})
    assert report["total"]["accepted"] >= 100
    assert report["again"] == AGAIN
    assert accepted() == 0
    await eventually(lambda: not any(one.is_running() for one in family))
