"""Handlers in processes of their own: how many there are, what they say, how they die."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from faena import Job, Task
from faena.engine.scripts import Claim
from faena.errors import JobCancelled, JobFailed
from faena.job import Input, Spec
from faena.worker.execute import process_runner as child
from faena.worker.execute.attempt_state import Attempt
from faena.worker.execute.processes import Processes
from tests._support import process_app
from tests._support.eventually import eventually
from tests._support.process_app import Gate
from tests._support.valkey import Server


@pytest.fixture
async def gate(short: Path) -> AsyncIterator[Gate]:
    async with Gate(short / "gate") as gate:
        yield gate


@pytest.fixture
async def processes() -> AsyncIterator[Processes]:
    processes = Processes(asyncio.get_running_loop())
    yield processes
    processes.close()
    assert not children()


@pytest.fixture
async def worker(valkey: Server, namespace: str) -> AsyncIterator[None]:
    with process_app.app.override(url=valkey.url, namespace=namespace):
        working = asyncio.create_task(process_app.app.run_worker(grace="0s"))
        yield
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working
        await process_app.work.obliterate(force=True)
        await process_app.app.close()
    assert not children()


class Recorder:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def progress(self, job_id: str, value: Any) -> None: ...

    def log(self, job_id: str, line: str) -> None:
        self.lines.append(line)


def attempt_of(task: Task[Any, Any], payload: bytes = b"null") -> tuple[Attempt, Recorder]:
    """Another attempt of always the same job."""
    notes, job = Recorder(), Job("work", "j", Spec(task=task.name))
    job.attach(notes)
    attempt = Attempt(Claim("j", "lease", b"", 0.0, 0, 0, 0), task.handler, job, 60.0)
    attempt.payload = payload
    return attempt, notes


def children() -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if any("spawn_main" in word for word in process.cmdline()):
                found.append(process)
    return found


async def test_all_jobs_that_hold_a_slot_run_at_the_same_time(worker: None, gate: Gate) -> None:
    receipts = await process_app.stand.enqueue_many([gate.path] * 6)
    arrived = [await gate.arrival() for _ in range(6)]
    for handler in arrived:
        handler.write(b".")
    pids = {await receipt.handle.result("60s") for receipt in receipts}
    assert len(pids) == 6
    views = [await receipt.handle.view() for receipt in receipts]
    assert [len(view.errors) for view in views if view] == [0] * 6


def test_a_handler_in_a_process_sees_what_one_beside_the_worker_would() -> None:
    spec = Spec(
        task="it",
        tenant="acme",
        key="k",
        headers={"trace": "7"},
        parents={"first": Input("completed", msgspec.Raw(b"41"))},
        group={"total": 3},
    )
    job = Job("work", "j", spec, attempt=2)
    job.origin = "first"
    item = child.Item.of(job, b"null", token=1)
    seen = msgspec.json.decode(item.spec, type=Spec)
    assert (seen.tenant, seen.key, seen.headers) == ("acme", "k", {"trace": "7"})
    assert (seen.parents["first"].value(), seen.group) == (41, {"total": 3})
    assert (item.job_id, item.origin, item.attempt) == ("j", "first", 2)


async def test_a_process_is_started_for_a_call_that_finds_none_idle_and_kept(
    processes: Processes,
) -> None:
    pids = {await processes.call(attempt_of(process_app.here)[0])[0] for _ in range(3)}
    assert len(pids) == 1
    assert len(children()) == 1


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("large", "must be at most 60000 bytes, got 100002"),
        ("keys", "must be a JSON value, got dict"),
        ("type", "must be a JSON value, got object"),
    ],
)
async def test_progress_that_cannot_be_told_is_refused_in_the_handler(
    worker: None, kind: str, told: str
) -> None:
    receipt = await process_app.report.enqueue(kind)
    assert told in await receipt.handle.result("60s")


async def test_long_lines_and_odd_characters_reach_the_log(worker: None) -> None:
    receipt = await process_app.chat.enqueue()
    await receipt.handle.result("60s")
    view = await receipt.handle.view()
    assert view is not None
    assert view.log == ("\N{GRINNING FACE}" * 4096, "\\udc80 alone")
    assert view.progress == {"done": 7}


async def test_a_note_that_cannot_be_read_costs_no_result_and_no_later_note(
    processes: Processes, gate: Gate, short: Path, caplog: pytest.LogCaptureFixture
) -> None:
    attempt, notes = attempt_of(process_app.stand, f'"{gate.path}"'.encode())
    result, _ = processes.call(attempt)
    handler = await gate.arrival()
    (path,) = short.glob("*/notes")  # noqa: ASYNC240 - one look at a directory of two files
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(b"\xc1", str(path))
        stranger.sendto(b"x" * 100_000, str(path))
    handler.write(b".")
    assert int(await result) in {child.pid for child in children()}
    assert notes.lines == ["through"]
    assert "progress, log or costs of a child process were dropped" in caplog.text


async def test_the_end_of_one_attempt_does_not_silence_another_of_the_same_job(
    processes: Processes, gate: Gate
) -> None:
    payload = f'"{gate.path}"'.encode()
    (old, said_before), (new, said_after) = (
        attempt_of(process_app.stand, payload) for _ in range(2)
    )
    first, _ = processes.call(old)
    at_first = await gate.arrival()
    second, _ = processes.call(new)
    at_second = await gate.arrival()
    at_first.write(b".")
    await first
    at_second.write(b".")
    await second
    assert (said_before.lines, said_after.lines) == (["through"], ["through"])


async def test_an_interrupted_call_ends_at_once_and_the_next_one_has_another_process(
    processes: Processes, gate: Gate
) -> None:
    attempt, _ = attempt_of(process_app.stand, f'"{gate.path}"'.encode())
    result, kill = processes.call(attempt)
    await gate.arrival()
    (victim,) = children()
    kill()
    with pytest.raises(asyncio.CancelledError):
        await result
    assert int(await processes.call(attempt_of(process_app.here)[0])[0]) != victim.pid
    await eventually(lambda: not victim.is_running() or victim.status() == "zombie")


async def test_an_idle_process_that_dies_is_replaced(worker: None) -> None:
    pid = await (await process_app.here.enqueue()).handle.result("60s")
    os.kill(pid, signal.SIGKILL)
    assert await (await process_app.here.enqueue()).handle.result("60s") != pid


async def test_a_batch_runs_in_one_process_and_each_job_has_its_own_ending(worker: None) -> None:
    receipts = await process_app.pack.enqueue_many(["abc", "bad", "off"])
    assert await receipts[0].handle.result("60s") == "ABC"
    with pytest.raises(JobFailed, match="Discard: off"):
        await receipts[2].handle.result("60s")
    views = [await receipt.handle.view() for receipt in receipts]
    lines = [view.log[0].split(" in ") for view in views if view]
    assert [word for word, _ in lines] == ["abc", "bad", "off"]
    assert len({pid for _, pid in lines}) == 1
    more = await process_app.pack.enqueue_many(["odd", "def"])  # with "bad", which comes again
    assert await more[1].handle.result("60s") == "DEF"
    odd = await more[0].handle.view()
    assert odd is not None
    assert (odd.state, odd.result, odd.errors) == ("completed", None, ())
    assert odd.log[-1].startswith("its result was dropped: result must be str, got 1 bad field")


async def test_a_process_that_dies_fails_every_job_of_its_batch(worker: None) -> None:
    receipts = await process_app.pack.enqueue_many(["abc", "def", "die"])
    for receipt in receipts:
        with pytest.raises(JobFailed, match="its process ended with code 3"):
            await receipt.handle.result("60s")


async def test_the_process_of_a_batch_is_killed_when_all_its_jobs_are_cancelled(
    worker: None, gate: Gate
) -> None:
    receipts = await process_app.pack.enqueue_many([gate.path, "abc", "def"])
    await gate.arrival()
    for receipt in receipts:
        assert await receipt.handle.cancel() == "asked"
    for receipt in receipts:
        with pytest.raises(JobCancelled):
            await receipt.handle.result("60s")
