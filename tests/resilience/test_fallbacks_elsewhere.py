"""Fallbacks of handlers in threads and processes, of stuck ones, and in users' tests."""

from __future__ import annotations

import threading

import pytest

from faena import Escalate, Escalation, Faena, Job, Retry
from faena.testing import Harness, run_inline
from faena.worker.execute import time_limits
from tests._support.eventually import eventually
from tests._support.falling import Down
from tests._support.working import Working


def fail_apart(text: str) -> str:
    raise Down(text)


def instead(text: str) -> str:
    return f"instead of {text}"


async def test_a_handler_in_a_process_falls_back_in_the_worker(
    app: Faena, working: Working
) -> None:
    queue = app.queue("q", retry=Retry.never())
    task = queue.task(run="process", fallback=instead)(fail_apart)
    receipt = await task.enqueue("it")
    async with working():
        assert await receipt.handle.result("60s") == "instead of it"


async def test_a_thread_that_does_not_stop_keeps_its_slot_and_its_job_falls_back(
    app: Faena, working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limits, "_STUCK_AFTER_S", 0.01)
    go, free, ran = threading.Event(), threading.Event(), list[str]()
    queue = app.queue("q", retry=Retry.never(), concurrency=1)

    @queue.task(timeout="2s", fallback=instead)
    def stuck(text: str) -> str:
        while not go.is_set():
            try:
                go.wait(60)
            except BaseException:  # noqa: BLE001 - it does not stop
                ran.append("interrupted")
        return text

    @queue.task
    def next_one() -> None:
        free.set()

    receipt = await stuck.enqueue("it")
    async with working():
        assert await receipt.handle.result("60s") == "instead of it"
        await next_one.enqueue()
        assert not free.is_set()
        go.set()
        await eventually(free.is_set)


async def test_jobs_of_users_tests_fall_back(app: Faena, h: Harness) -> None:
    told: list[str] = []

    @app.queue("people").task
    async def attend(escalation: Escalation) -> None:
        told.append(escalation.reason)

    @app.queue("q", retry=Retry.never()).task(fallback=Escalate(attend, answer="soon"))
    async def answer(_job: Job) -> str:
        raise Down("no")

    receipt = await answer.enqueue()
    await h.drain()
    assert await receipt.handle.result("60s") == "soon"
    assert told == ["its attempts are used up: Down: no"]


async def test_a_function_stands_in_when_a_task_is_run_inline(app: Faena) -> None:
    @app.queue("q", retry=Retry.never()).task(fallback=instead)
    async def answer(text: str) -> str:
        raise Down(text)

    assert await run_inline(answer, "it") == "instead of it"
