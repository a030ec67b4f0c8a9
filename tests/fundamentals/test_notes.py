"""A running job can tell how far it is."""

from __future__ import annotations

import asyncio

from faena import Faena, Job
from tests._support.eventually import eventually
from tests._support.working import Working


async def test_progress_and_log_lines_of_a_finished_job_are_kept(
    app: Faena, working: Working
) -> None:
    @app.queue("exports").task
    async def export(rows: int, job: Job) -> int:
        for row in range(rows):
            job.log(f"row {row}")
            job.progress(100 * (row + 1) // rows)
        return rows

    receipt = await export.enqueue(4)
    async with working():
        assert await receipt.handle.result(timeout="60s") == 4
    view = await receipt.handle.view()
    assert view is not None
    assert view.progress == 100
    assert view.log == ("row 0", "row 1", "row 2", "row 3")


async def test_the_newest_hundred_log_lines_are_kept(app: Faena, working: Working) -> None:
    @app.queue("exports").task
    async def export(job: Job) -> None:
        for row in range(150):
            job.log(f"row {row}")

    receipt = await export.enqueue()
    async with working():
        await receipt.handle.result(timeout="60s")
    view = await receipt.handle.view()
    assert view is not None
    assert view.log == tuple(f"row {row}" for row in range(50, 150))


async def test_progress_is_seen_while_the_job_runs(app: Faena, working: Working) -> None:
    go_on = asyncio.Event()

    @app.queue("exports").task
    async def export(job: Job) -> None:
        job.progress({"done": 3, "of": 9})
        await go_on.wait()

    receipt = await export.enqueue()

    async def is_told() -> bool:
        view = await receipt.handle.view()
        return view is not None and view.progress == {"done": 3, "of": 9}

    async with working():
        await eventually(is_told)
        go_on.set()
        await receipt.handle.result(timeout="60s")


async def test_a_thread_may_tell_its_progress_too(app: Faena, working: Working) -> None:
    @app.queue("exports").task
    def export(job: Job) -> None:
        job.log("from a thread")
        job.progress(50)

    receipt = await export.enqueue()
    async with working():
        await receipt.handle.result(timeout="60s")
    view = await receipt.handle.view()
    assert view is not None
    assert (view.log, view.progress) == (("from a thread",), 50)
