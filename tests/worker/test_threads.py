"""Threads for handlers: how many there are, and what a stuck one keeps."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from faena import Faena, Job
from faena.engine.scripts import Claim
from faena.job import Spec
from faena.worker.execute.attempt_state import Attempt
from faena.worker.execute.threads import Interrupted, Threads
from tests._support.eventually import eventually
from tests._support.valkey import Server

STUCK = """
import asyncio, sys, threading
from faena import Faena

app = Faena("shop", sys.argv[1])
begun = threading.Event()

@app.queue("q").task(timeout="100ms")
def wait_in_c() -> None:
    begun.set()
    threading.Semaphore(0).acquire()

async def main() -> None:
    async with app:
        await wait_in_c.enqueue()
        working = asyncio.create_task(app.run_worker(grace="0s"))
        await asyncio.to_thread(begun.wait)
        working.cancel()
        await asyncio.wait([working])
    print("left", flush=True)

asyncio.run(main())
"""


def attempt_of(function: Callable[..., Any]) -> Attempt:
    handler = Faena("shop").queue("q").task(name="it")(function).handler
    job = Job("q", "j", Spec(task="it"))
    return Attempt(Claim("j", "lease", b"", 0.0, 0, 0, 0), handler, job, 60.0)


@pytest.fixture
def threads() -> Iterator[Threads]:
    threads = Threads(3)
    yield threads
    threads.close()


def alive(before: set[threading.Thread]) -> int:
    """Threads for jobs, without those that another test has left to end."""
    others = set(threading.enumerate()) - before
    return sum(thread.name.startswith("faena-job") for thread in others)


async def test_threads_are_started_as_calls_need_them_and_never_more_than_allowed(
    threads: Threads,
) -> None:
    before, go_on = set(threading.enumerate()), threading.Event()

    def quick() -> str:
        return threading.current_thread().name

    def wait() -> str:
        go_on.wait()
        return threading.current_thread().name

    one_by_one = {await threads.call(attempt_of(quick))[0] for _ in range(5)}
    assert len(one_by_one) == 1
    assert alive(before) == 1
    together = [threads.call(attempt_of(wait))[0] for _ in range(7)]
    assert alive(before) == 3
    go_on.set()
    assert len(set(await asyncio.gather(*together))) <= 3
    threads.close()
    await eventually(lambda: alive(before) == 0)


async def test_a_handler_sees_the_context_of_its_caller_and_changes_only_its_own(
    threads: Threads,
) -> None:
    colour = ContextVar("colour", default="none")

    def paint() -> str:
        seen = colour.get()
        colour.set("red")
        return seen

    colour.set("blue")
    assert await threads.call(attempt_of(paint))[0] == "blue"
    assert colour.get() == "blue"
    assert await threads.call(attempt_of(paint))[0] == "blue"


async def test_what_a_handler_raises_reaches_the_caller_and_the_thread_serves_on(
    threads: Threads,
) -> None:
    def leave() -> None:
        sys.exit(3)

    def answer() -> int:
        return 42

    with pytest.raises(SystemExit):
        await threads.call(attempt_of(leave))[0]
    assert await threads.call(attempt_of(answer))[0] == 42


async def test_a_call_that_is_interrupted_before_its_turn_never_runs() -> None:
    threads, go_on, ran = Threads(1), threading.Event(), threading.Event()
    first, _ = threads.call(attempt_of(go_on.wait))
    second, interrupt = threads.call(attempt_of(ran.set))
    interrupt()
    go_on.set()
    assert await first
    with pytest.raises(Interrupted):
        await second
    assert not ran.is_set()
    threads.close()


async def test_calls_that_still_wait_when_the_pool_closes_are_cancelled() -> None:
    threads, begun, go_on = Threads(1), threading.Event(), threading.Event()

    def wait() -> bool:
        begun.set()
        return go_on.wait()

    first, _ = threads.call(attempt_of(wait))
    second, _ = threads.call(attempt_of(wait))
    await asyncio.to_thread(begun.wait)
    threads.close()
    go_on.set()
    assert await first
    assert second.cancelled()


async def test_a_handler_stuck_in_c_code_does_not_keep_the_process(valkey: Server) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", STUCK, valkey.url, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(60):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    with valkey.client() as client:
        client.flushall()
    assert (process.returncode, said) == (0, b"left\n")
