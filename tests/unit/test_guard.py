"""No process outlives the tests, whatever ends them."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from tests._support import guard
from tests._support.command import is_alive
from tests._support.eventually import eventually

OWNER = """
import subprocess, sys, time
from tests._support import guard
directory = guard.begin()
started = subprocess.Popen(
    ["/bin/sh", "-c", "env -i sleep 600 & echo $!; kill -STOP $$"],
    stdout=subprocess.PIPE, text=True, start_new_session=True,
)
print(directory, started.pid, started.stdout.readline().strip(), flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_frozen_processes_and_grandchildren_end_with_whoever_began(
    number: signal.Signals,
) -> None:
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    environ = {name: text for name, text in os.environ.items() if name != guard.VARIABLE}
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OWNER, env=environ, stdout=pipe, stderr=null
    )
    assert owner.stdout is not None
    directory, *pids = (await owner.stdout.readline()).decode().split()
    assert len(pids) == 2
    owner.send_signal(number)
    await owner.wait()
    await eventually(lambda: not any(is_alive(int(pid)) for pid in pids))
    await eventually(lambda: not Path(directory).exists())


FORKING = """
import os, time
from tests._support import guard
directory = guard.begin()
forked = os.fork()
if forked:
    print(directory, forked, flush=True)
time.sleep(600)
"""


async def test_a_fork_of_whoever_began_does_not_keep_the_rest_alive() -> None:
    pipe = asyncio.subprocess.PIPE
    environ = {name: text for name, text in os.environ.items() if name != guard.VARIABLE}
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FORKING, env=environ, stdout=pipe
    )
    assert owner.stdout is not None
    directory, forked = (await owner.stdout.readline()).decode().split()
    owner.kill()
    try:
        await eventually(lambda: not Path(directory).exists())
    finally:
        os.kill(int(forked), signal.SIGKILL)
        await owner.communicate()


LEAKS = {
    "keys": "async def test(wire):\n    await wire.call('SET', 'left', 1)\n",
    "tasks": "async def test():\n    kept.append(asyncio.create_task(asyncio.sleep(600)))\n",
}


@pytest.mark.parametrize("what", LEAKS)
async def test_a_test_that_leaves_something_behind_fails(what: str, tmp_path: Path) -> None:
    file = tmp_path / "test_leak.py"
    file.write_text(f"import asyncio\nkept = []\n{LEAKS[what]}")
    root = Path(__file__).parents[2]
    options = ("-p", "tests.conftest", "-c", root / "pyproject.toml", "-n", "0", "-q")
    run = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", *options, file), cwd=root, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await run.communicate()
    assert run.returncode == 1
    assert re.search(rf"{what}.* must not outlive a test", said.decode())
