"""The supervisor alone, with children of a few lines that do as they are told."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from faena.errors import ConfigError
from faena.worker.supervise.lifeline import VARIABLE, Lifeline
from faena.worker.supervise.supervisor import Supervisor, SupervisorOptions
from faena.worker.supervise.worker_process import describe
from faena.worker.supervise.worker_slot import WorkerSlotOptions
from tests._support.command import is_alive
from tests._support.eventually import eventually

CHILD = """
import os, signal, socket, sys, time
from pathlib import Path
shard, do = Path(sys.argv[1]), sys.argv[2]
with (shard / "starts").open("a") as starts:
    patient = os.environ.get("FAENA_LIFELINE_PATIENT", "")
    starts.write(f"{os.getpid()} {time.monotonic()} {patient}\\n")
line = socket.socket(fileno=int(os.environ["FAENA_LIFELINE"]))
if (shard / "broken").exists() or do == "refuse":
    sys.exit(1)
if do == "die":
    os.kill(os.getpid(), signal.SIGKILL)
if do == "leave":
    line.send(b"serving 1\\n")
    sys.exit(75)
signal.signal(signal.SIGTERM, signal.SIG_IGN if do == "ignore" else lambda *_: sys.exit(0))
line.send(f"serving {do if do.isdigit() else 1}\\n".encode())
while line.recv(100):
    pass
"""


class Children:
    """The worker processes of one test, and where they write down that they started."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def supervisor(self, do: str, options: SupervisorOptions) -> Supervisor:
        return Supervisor([sys.executable, "-I", "-c", CHILD, str(self.directory), do], options)

    def starts(self) -> list[tuple[int, float, bool]]:
        path = self.directory / "starts"
        lines = path.read_text().splitlines() if path.exists() else []
        words = [line.split(" ") for line in lines]
        return [(int(pid), float(at), patient == "1") for pid, at, patient in words]


def options(*, instances: int | None = None, **patience: float) -> SupervisorOptions:
    quick = {"grace_s": 60.0, "margin_s": 0.3, "pause_s": 0.02, "longest_pause_s": 0.2}
    return SupervisorOptions(instances=instances, slot=WorkerSlotOptions(**{**quick, **patience}))


@pytest.fixture
def children(tmp_path: Path) -> Children:
    return Children(tmp_path)


@asynccontextmanager
async def running(supervisor: Supervisor) -> AsyncIterator[Awaitable[int]]:
    task = asyncio.create_task(supervisor.run())
    try:
        yield task
    finally:
        if not task.done():
            supervisor.stop()
            await task


async def test_as_many_workers_are_kept_as_the_first_one_asks_for(children: Children) -> None:
    supervisor = children.supervisor("3", options())
    async with running(supervisor) as end:
        await eventually(lambda: len(children.starts()) == 3)
        supervisor.stop()
        assert await end == 0
    assert supervisor.instances == 3
    assert not any(is_alive(pid) for pid, _, _ in children.starts())


async def test_the_number_given_goes_before_what_the_first_one_asks_for(children: Children) -> None:
    supervisor = children.supervisor("3", options(instances=2))
    async with running(supervisor):
        await eventually(lambda: len(children.starts()) == 2)
    assert supervisor.instances == 2


async def test_a_first_start_that_explained_its_failure_is_not_repeated(children: Children) -> None:
    supervisor = children.supervisor("refuse", options(instances=5))
    assert await supervisor.run() == 1
    assert len(children.starts()) == 1
    assert not supervisor.is_stopping


async def test_deaths_in_youth_are_followed_by_longer_and_longer_pauses(children: Children) -> None:
    supervisor = children.supervisor("die", options(pause_s=0.1, longest_pause_s=0.4))
    async with running(supervisor):
        await eventually(lambda: len(children.starts()) >= 6)
    instants = [at for _, at, _ in children.starts()]
    gaps = [later - sooner for sooner, later in itertools.pairwise(instants)]
    for gap, pause in zip(gaps[:5], (0.1, 0.2, 0.4, 0.4, 0.4), strict=True):
        assert gap >= pause


async def test_after_a_long_life_the_next_pause_is_short_again(children: Children) -> None:
    supervisor = children.supervisor("die", options(pause_s=0.01, longest_pause_s=60, young_s=0.0))
    async with running(supervisor):
        await eventually(lambda: len(children.starts()) >= 15)


async def test_a_worker_over_its_memory_is_replaced_at_once_but_not_endlessly(
    children: Children,
) -> None:
    supervisor = children.supervisor("leave", options(pause_s=60.0, longest_pause_s=60.0))
    async with running(supervisor):
        await eventually(lambda: len(children.starts()) == 2)
        began = time.monotonic()
    assert time.monotonic() - began < 30
    assert len(children.starts()) == 2


async def test_a_worker_that_will_not_end_is_killed_and_spoils_the_exit_code(
    children: Children,
) -> None:
    supervisor = children.supervisor("ignore", options(grace_s=0.2))
    async with running(supervisor) as end:
        await eventually(lambda: len(children.starts()) == 1 and supervisor.has_served)
        supervisor.stop()
        assert await end == 1
    assert not is_alive(children.starts()[0][0])


async def test_a_relief_that_cannot_start_leaves_the_old_workers_in_place(
    children: Children,
) -> None:
    supervisor = children.supervisor("2", options())
    async with running(supervisor):
        await eventually(lambda: len(children.starts()) == 2)
        (children.directory / "broken").touch()
        supervisor.reload()
        await eventually(lambda: len(children.starts()) == 3)
        await eventually(lambda: not is_alive(children.starts()[2][0]))
        assert all(is_alive(pid) for pid, _, _ in children.starts()[:2])
        (children.directory / "broken").unlink()
        supervisor.reload()
        await eventually(lambda: len(children.starts()) == 5)
        await eventually(lambda: not any(is_alive(pid) for pid, _, _ in children.starts()[:2]))


async def test_a_relief_asked_for_in_a_pause_ends_the_pause(children: Children) -> None:
    supervisor = children.supervisor("1", options(pause_s=60.0, longest_pause_s=60.0))
    async with running(supervisor):
        await eventually(lambda: supervisor.has_served)
        (children.directory / "broken").touch()
        os.kill(children.starts()[0][0], signal.SIGKILL)
        await eventually(lambda: not is_alive(children.starts()[0][0]))
        (children.directory / "broken").unlink()
        supervisor.reload()
        await eventually(lambda: len(children.starts()) >= 2)


async def test_a_command_that_does_not_exist_is_tried_again_until_the_stop() -> None:
    supervisor = Supervisor(["/nonexistent/faena"], options())
    async with running(supervisor) as end:
        await asyncio.sleep(0)
        supervisor.stop()
        assert await end == 0


@pytest.mark.parametrize("number", ["nine", "-1", "99999"])
def test_a_lifeline_that_is_none_is_refused(number: str) -> None:
    environ = {VARIABLE: number}
    with pytest.raises(ConfigError, match="must be the number of an open socket"):
        Lifeline.from_environ(environ)
    assert VARIABLE not in environ


def test_ends_are_described_in_words() -> None:
    assert describe(0) == "ended with code 0"
    assert describe(75) == "ended with code 75 (its memory was over the limit)"
    assert describe(-9) == "was killed by SIGKILL"
    assert describe(-200) == "was killed by signal 200"
