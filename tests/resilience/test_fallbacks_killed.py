"""A worker that is killed while it falls back: the job is handed over once, and not run again."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from faena import Escalate, Escalation, Faena, Job, Middleware, Retry
from faena.engine import Engine
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.forked import Forked
from tests._support.valkey import Server
from tests._support.working import serving

SETTLING = "settling"
WAYS = ["before", "after", SETTLING]
"""When the worker dies: before the escalation is enqueued, after, or when it was told of."""


class Dying(Middleware):
    """kill -9 around the enqueue of an escalation."""

    def __init__(self, when: str) -> None:
        self._when = when

    async def enqueue(self, queue: str, spec: Any, call_next: Any) -> Any:
        if queue == "people" and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        receipt = await call_next(queue, spec)
        if queue == "people" and self._when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return receipt


def build(url: str, runs: Path, *layers: Middleware) -> Faena:
    """The app; its handler fails in the first delivery and would succeed in the next."""
    app = Faena("shop", url, middleware=layers)

    @app.queue("people").task
    async def attend(escalation: Escalation) -> str:
        return escalation.job_id

    queue = app.queue("answers", lease="2s", retry=Retry.never())

    @queue.task(fallback=Escalate(attend, answer="soon"))
    async def answer(job: Job) -> str:
        with runs.open("a") as file:
            file.write(f"{job.losses}\n")
        if not job.losses:
            raise ConnectionResetError("down")
        return "called"

    return app


def serve(url: str, runs: Path, when: str) -> None:
    """Serve `answers` until death."""

    async def main() -> None:
        async with build(url, runs, Dying(when)) as app:
            if when == SETTLING:
                die_when_told((await app.runtime()).patient_engine)
            await app.run_worker(["answers"])

    asyncio.run(main())


def die_when_told(engine: Engine) -> None:
    ask = engine.ask

    async def dying(script: str, *args: Any, **named: Any) -> Any:
        answer = await ask(script, *args, **named)
        if script == "fallback":
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    engine.ask = dying  # pyright: ignore[reportAttributeAccessIssue] - dies in between


@pytest.mark.parametrize("when", WAYS)
async def test_an_escalation_is_enqueued_once_wherever_its_worker_dies(
    server: Server, tmp_path: Path, when: str
) -> None:
    runs = tmp_path / "runs"
    async with build(server.url, runs) as app:
        receipt = await app.queues["answers"].tasks["answer"].enqueue()
        worker = Forked(serve, server.url, runs, when, log=tmp_path / "log")
        assert await asyncio.to_thread(worker.wait, PATIENCE_S) == -signal.SIGKILL
        async with serving(app):
            result = await receipt.handle.result("60s")
            people = app.queues["people"]

            async def is_attended() -> bool:
                counts = await people.counts()
                return counts["completed"] == int(when != "before") and not counts["ready"]

            await eventually(is_attended)
        if when == "before":  # nothing was handed over: the job runs as after any lost delivery
            assert (result, runs.read_text()) == ("called", "0\n1\n")
        else:
            assert (result, runs.read_text()) == ("soon", "0\n")
