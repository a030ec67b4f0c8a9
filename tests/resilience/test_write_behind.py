"""Writes that become jobs when they are slow, under one id."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from faena import Faena, Job, Queued, Task, Written, write_behind
from faena.errors import ConfigError, PayloadError
from faena.resilience.breaker import Breaker
from faena.states import State
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.falling import Down, trip
from tests._support.forked import Forked
from tests._support.valkey import Server
from tests._support.working import Working, serving

ID = "order-0123456789abcdef"


def declare(app: Faena, file: Path) -> Task[str, str]:
    """A task that writes a line, unless that was done before under its id."""
    queue = app.queue("writes", lease="2s")

    @queue.task
    async def save(text: str, job: Job) -> str:
        async with queue.idempotency.once(job.origin, job) as record:
            if not record.is_done:
                write(file, job.origin, text)
                record.result = f"job {text}"
        return str(record.result)

    return save


def write(file: Path, write_id: str, text: str) -> None:
    with file.open("a") as out:
        out.write(f"{write_id} {text}\n")


async def hang(_id: str) -> str:
    await asyncio.sleep(600)
    return "never"


async def test_a_quick_write_is_done_here_and_no_job_is_made(app: Faena, tmp_path: Path) -> None:
    save = declare(app, tmp_path / "out")

    async def directly(write_id: str) -> str:
        return write_id

    done = await write_behind(save, "a", directly)
    assert isinstance(done, Written)
    assert done.result == done.id
    assert sum((await app.queues["writes"].counts()).values()) == 0


async def test_a_slow_write_becomes_a_job_of_the_same_id(
    app: Faena, tmp_path: Path, working: Working
) -> None:
    save, asked = declare(app, tmp_path / "out"), list[str]()

    async def slowly(write_id: str) -> str:
        asked.append(write_id)
        return await hang(write_id)

    queued = await write_behind(save, "a", slowly, within="20ms", tenant="acme")
    assert isinstance(queued, Queued)
    assert [queued.id] == asked
    async with working():
        assert await queued.receipt.handle.result("60s") == "job a"
    view = await queued.receipt.handle.view()
    assert view is not None
    assert view.tenant == "acme"


async def test_a_write_whose_upstream_is_out_becomes_a_job_at_once(
    shop: Faena, tmp_path: Path
) -> None:
    database = shop.upstream("database", breaker=Breaker(volume=4, open="10m"))
    save = declare(shop, tmp_path / "out")

    @database
    async def directly(write_id: str) -> str:
        return write_id

    await trip(database)
    assert isinstance(await write_behind(save, "a", directly, within="10m"), Queued)


async def test_other_errors_are_the_callers(app: Faena, tmp_path: Path) -> None:
    save = declare(app, tmp_path / "out")

    async def fail(_id: str) -> str:
        raise Down

    with pytest.raises(Down):
        await write_behind(save, "a", fail)
    assert sum((await app.queues["writes"].counts()).values()) == 0


async def test_a_try_that_succeeds_while_it_is_stopped_is_written(
    app: Faena, tmp_path: Path
) -> None:
    save = declare(app, tmp_path / "out")

    async def stubborn(_id: str) -> str:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            return "after all"
        return "never"

    done = await write_behind(save, "a", stubborn, within="20ms")
    assert isinstance(done, Written)
    assert done.result == "after all"


async def test_a_try_that_succeeds_late_leaves_its_job_nothing_to_do(
    app: Faena, tmp_path: Path, working: Working
) -> None:
    file, go = tmp_path / "out", asyncio.Event()
    save = declare(app, file)

    async def deaf(write_id: str) -> str:
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue
        write(file, write_id, "direct")
        return "direct"

    queued = await write_behind(save, "a", deaf, within="20ms")
    assert isinstance(queued, Queued)
    go.set()
    record = app.queues["writes"].idempotency

    async def is_recorded() -> bool:
        return (await record.begin(queued.id, owner=queued.id)).is_done

    await eventually(file.exists)
    await eventually(is_recorded)
    async with working():
        assert await queued.receipt.handle.result("60s") == "direct"
    assert file.read_text() == f"{queued.id} direct\n"


async def test_a_repeated_call_is_answered_by_what_was_done_before(
    app: Faena, tmp_path: Path
) -> None:
    save, calls = declare(app, tmp_path / "out"), list[str]()

    async def directly(write_id: str) -> str:
        calls.append(write_id)
        return "direct"

    for _ in range(2):
        done = await write_behind(save, "a", directly, id=ID)
        assert done == Written(id=ID, result="direct")
    other = await write_behind(save, "b", hang, within="20ms", id=f"{ID}2")
    again = await write_behind(save, "b", directly, id=f"{ID}2")
    assert isinstance(other, Queued)
    assert isinstance(again, Queued)
    assert (again.receipt.status, calls) == ("duplicate", [ID])


async def test_a_caller_that_is_cancelled_stops_the_try(app: Faena, tmp_path: Path) -> None:
    save, stopped = declare(app, tmp_path / "out"), asyncio.Event()

    async def slowly(_id: str) -> str:
        try:
            await asyncio.sleep(600)
        finally:
            stopped.set()
        return "never"

    writing = asyncio.create_task(write_behind(save, "a", slowly, within="10m"))
    await asyncio.sleep(0.01)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await stopped.wait()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"within": "0s"}, ConfigError, "within must be"),
        ({"within": 2}, ConfigError, "within must be"),
        ({"id": "short"}, ConfigError, "id must be"),
        ({"operation": 7}, ConfigError, "operation must be a function"),
        ({"operation": len}, ConfigError, "operation must return an awaitable"),
        ({"payload": 7}, PayloadError, "expected `?str"),
        ({"colour": "red"}, ConfigError, "colour"),
        ({"task": 7}, ConfigError, "task must be a task"),
    ],
)
async def test_what_cannot_be_written_is_refused_before_anything_is(
    app: Faena, tmp_path: Path, given: dict[str, Any], error: type[Exception], words: str
) -> None:
    called: list[str] = []

    async def directly(write_id: str) -> str:
        called.append(write_id)
        return ""

    save = declare(app, tmp_path / "out")
    with pytest.raises(error, match=words):
        await write_behind(**{"task": save, "payload": "a", "operation": directly, **given})
    assert called == []


# -- kill -9 ---------------------------------------------------------------------------------------


def write_and_die(url: str, file: Path, when: str) -> None:
    """Be killed after the direct write, or after the job was enqueued."""

    async def directly(write_id: str) -> str:
        if when == "queued":
            return await hang(write_id)
        write(file, write_id, "direct")
        os.kill(os.getpid(), signal.SIGKILL)
        return "never"

    async def main() -> None:
        async with Faena("shop", url) as app:
            save = declare(app, file)
            await write_behind(save, "a", directly, within="20ms", id=ID)
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(main())


@pytest.mark.parametrize("when", ["written", "queued"])
async def test_a_call_is_repeated_under_its_id_wherever_its_process_died(
    server: Server, tmp_path: Path, when: str
) -> None:
    file = tmp_path / "out"
    process = Forked(write_and_die, server.url, file, when, log=tmp_path / "log")
    assert await asyncio.to_thread(process.wait, PATIENCE_S) == -signal.SIGKILL

    async def directly(write_id: str) -> str:
        write(file, write_id, "again")
        return "again"

    async with Faena("shop", server.url) as app:
        save = declare(app, file)
        done = await write_behind(save, "a", directly, id=ID)
        async with serving(app):
            if isinstance(done, Queued):
                await done.receipt.handle.result("60s")
        assert (await save.handle(ID).state()) in {None, State.COMPLETED}
    lines = file.read_text().splitlines()
    if when == "queued":
        assert isinstance(done, Queued)
        assert lines == [f"{ID} a"]
    else:  # nobody knows that it was written: its id tells the receiver
        assert isinstance(done, Written)
        assert lines == [f"{ID} direct", f"{ID} again"]
